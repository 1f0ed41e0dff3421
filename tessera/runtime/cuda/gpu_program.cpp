#include "tessera/runtime/cuda/gpu_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>

#include "tessera/runtime/object_cache.h"
#include "tessera/support/parallel.h"

namespace tessera::runtime::cuda {
namespace {

/// Whether a GPU runs code for `sm_80`, which all later ones do, or `sm_90a`, which no other does.
Expected<Done> check_architecture(const Device& device, const std::string& architecture) {
  int needed = 0;
  const char* const digits = architecture.c_str() + std::strlen("sm_");
  std::from_chars(digits, architecture.data() + architecture.size(), needed);
  const bool alone = architecture.ends_with('a');
  if (alone ? device.compute() == needed : device.compute() >= needed) return Done{};
  return Diagnostic{
      .id = "cuda-architecture",
      .message = fmt::format("{} has compute capability {}.{}", device.name(),
                             device.compute() / 10, device.compute() % 10),
      .note = fmt::format("the program is for {}{}.{}", alone ? "" : "at least ", needed / 10,
                          needed % 10),
      .help = alone && device.compute() >= 80 ? "compile it with --target cuda:sm_80" : ""};
}

std::string_view ptx_of(const Program& program, const Program::Kernel& kernel) {
  return reinterpret_cast<const char*>(program.image.data() + kernel.entry);
}

/// Assembles all kernels.
Expected<std::vector<std::string>> assembled(const Device& device, const Program& program,
                                             const std::filesystem::path& folder) {
  TESSERA_TRY(const std::optional<ObjectCache> cache, ObjectCache::open_unless_empty(folder));
  const auto one = [&](std::size_t i) -> Expected<std::string> {
    const Program::Kernel& kernel = program.kernels[i];
    TESSERA_TRY_DONE(device.use());  // in this thread
    const std::string ptx(ptx_of(program, kernel));
    if (kernel.is_whole) return ptx;
    const std::string key =
        fmt::format("cuda {} compute {}\n{}", device.driver_version(), device.compute(), ptx);
    if (cache)
      if (const auto found = cache->find(key))
        return std::string(reinterpret_cast<const char*>(found->data()), found->size());
    auto code = device.assembled(ptx);
    if (!code) return located(std::move(code).error(), {.item = kernel.name});
    if (cache) cache->store(key, std::as_bytes(std::span(*code)));
    return code;
  };
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  return in_parallel<std::string>(program.kernels.size(), one,
                                  {.threads = static_cast<int>(threads)});
}

Expected<GpuProgram> load(const Program& program, const std::filesystem::path& cache) {
  TESSERA_TRY(Device device, Device::open());
  TESSERA_TRY_DONE(check_architecture(device, program.architecture));
  GpuProgram made{.device = std::move(device)};
  TESSERA_TRY(std::vector<std::string> codes, assembled(made.device, program, cache));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Program::Kernel& kernel = program.kernels[i];
    auto function = made.device.load({.text = std::move(codes[i]),
                                      .entry = kGpuEntry,
                                      .threads = static_cast<int>(kernel.threads),
                                      .shared_bytes = static_cast<int>(kernel.scratch_bytes),
                                      .programs = static_cast<int>(kernel.programs),
                                      .persistent = kernel.persistent,
                                      .maps = kernel.maps,
                                      .awaits_grids = awaits_grids(ptx_of(program, kernel))});
    if (!function) return located(std::move(function).error(), {.item = kernel.name});
    made.functions.push_back(std::move(*function));
  }
  TESSERA_TRY(made.weights,
              made.device.allocate(static_cast<std::int64_t>(program.weights.size())));
  TESSERA_TRY_DONE(made.weights.write(program.weights.view()));
  return made;
}

}  // namespace

Expected<std::shared_ptr<const GpuProgram>> gpu_program(const LoadedProgram& program,
                                                        const std::filesystem::path& cache) {
  SharedGpuState& shared = program.on_gpu();
  const std::lock_guard lock(shared.mutex);
  if (shared.content == nullptr) {
    TESSERA_TRY(GpuProgram made, load(program.program(), cache));
    shared.content = std::make_shared<const GpuProgram>(std::move(made));
  }
  return std::static_pointer_cast<const GpuProgram>(shared.content);
}

}  // namespace tessera::runtime::cuda
