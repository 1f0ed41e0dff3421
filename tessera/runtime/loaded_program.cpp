#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tessera/machine/features.h"
#include "tessera/runtime/session.h"

namespace tessera::runtime {
namespace {

/// Executable copy of the code. A mapped file may change; the copy is what was validated.
Expected<Bytes> executable(std::span<const std::byte> code) {
  if (code.empty()) return Bytes{};
  void* memory =
      ::mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto failed = [] {
    return Diagnostic{.id = "program-memory",
                      .message = fmt::format("no memory for code: {}", std::strerror(errno))};
  };
  if (memory == MAP_FAILED) return failed();
  const std::size_t size = code.size();
  std::shared_ptr<const void> owner(
      memory, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
  std::memcpy(memory, code.data(), size);
  auto* const first = static_cast<char*>(memory);
  __builtin___clear_cache(first, first + size);
  if (::mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) return failed();
  return Bytes{std::move(owner), {static_cast<const std::byte*>(memory), size}};
}

Expected<Done> check_cpu(const Program& program) {
  if (program.kernels.empty()) return Done{};
  const auto refused = [](std::string message) {
    return Diagnostic{.id = "program-cpu",
                      .message = std::move(message),
                      .help = "compile the model for this computer"};
  };
  const machine::Architecture here = machine::host_architecture();
  if (program.architecture != machine::to_string(here))
    return refused(fmt::format("the program is for {}, this computer is {}", program.architecture,
                               machine::to_string(here)));
  const auto features = machine::features_of(here, machine::host_words());
  for (const std::string& needed : program.features)
    if (std::ranges::find(features, needed) == features.end())
      return refused(fmt::format("the program needs {}, which this CPU does not have", needed));
  return Done{};
}

class Loaded final : public LoadedProgram {
 public:
  explicit Loaded(Program program) : program_(std::move(program)) {}
  const Program& program() const override { return program_; }
  SharedGpuState& on_gpu() const override { return on_gpu_; }

 private:
  Program program_;
  mutable SharedGpuState on_gpu_;
};

}  // namespace

Expected<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(Program program) {
  TESSERA_TRY_DONE(check(program));
  if (!program.is_for_gpu()) {
    TESSERA_TRY_DONE(check_cpu(program));
    TESSERA_TRY(program.image, executable(program.image.view()));
  }
  if (reinterpret_cast<std::uintptr_t>(program.weights.data()) % kAlignment != 0)
    program.weights = Bytes::copy(program.weights.view());
  return std::shared_ptr<const LoadedProgram>(std::make_shared<Loaded>(std::move(program)));
}

}  // namespace tessera::runtime
