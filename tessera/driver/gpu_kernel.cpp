#include "tessera/driver/gpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/codegen/gpu_image.h"
#include "tessera/machine/machine.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tile/passes/for_ones.h"

namespace tessera {
namespace {

using runtime::cuda::Device;
using runtime::cuda::Memory;

constexpr int kOldest = 80, kHopper = 90;  // compute capabilities

}  // namespace

Expected<GpuKernel> GpuKernel::compile(const tile::Kernel& kernel,
                                       std::span<const tile::Argument> arguments,
                                       const Options& options) {
  TESSERA_TRY(Device device, Device::open());
  if (device.compute() < kOldest)
    return Diagnostic{.id = "cuda-architecture",
                      .message = fmt::format("{} has compute capability {}.{}", device.name(),
                                             device.compute() / 10, device.compute() % 10),
                      .note = "kernels are for 8.0 and later"};
  GpuKernel made(kernel, std::move(device));
  const machine::Machine gpu =
      machine::cuda(made.device_.compute() == kHopper ? "sm_90a" : "sm_80");
  made.ones_ = tile::ones_of(kernel, arguments);
  TESSERA_TRY(made.ptx_, codegen::ptx_of(tile::for_ones(kernel, made.ones_),
                                         codegen::ptx_options(gpu, {.precision = options.precision,
                                                                    .tf32 = options.tf32})));
  const codegen::PtxKernel& ptx = made.ptx_;
  TESSERA_TRY(made.function_, made.device_.load({.text = ptx.text,
                                                 .entry = ptx.entry,
                                                 .threads = ptx.threads,
                                                 .shared_bytes = ptx.shared_bytes,
                                                 .programs = ptx.programs,
                                                 .persistent = ptx.persistent,
                                                 .maps = ptx.maps}));
  return made;
}

Expected<GpuKernel::DeviceArguments> GpuKernel::upload(const KernelData& data) const {
  DeviceArguments there;
  std::vector<tile::Argument> arguments = data.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    there.memory.emplace_back();
    if (arguments[i].type.is_number()) continue;
    TESSERA_TRY(there.memory.back(),
                device_.allocate(static_cast<std::int64_t>(data.memory[i].size())));
    TESSERA_TRY_DONE(there.memory.back().write(data.memory[i]));
    arguments[i].data = reinterpret_cast<std::byte*>(there.memory.back().address());
  }
  there.words = tile::words_of(arguments);
  return there;
}

Expected<Done> GpuKernel::check(const KernelData& data, const tile::Grid& grid) const {
  TESSERA_TRY_DONE(tile::check_arguments(kernel_, data.arguments, grid));
  if (tile::ones_of(kernel_, data.arguments) == ones_) return Done{};
  return Diagnostic{.id = "launch-argument",
                    .where = {.file = kernel_.name},
                    .message = "other strides or integers are 1 than the code was made for",
                    .help = "compile the kernel for these arguments"};
}

Expected<Done> GpuKernel::launch(KernelData& data, const tile::Grid& grid) const {
  TESSERA_TRY_DONE(check(data, grid));
  TESSERA_TRY(const DeviceArguments there, upload(data));
  TESSERA_TRY_DONE(function_.launch({grid, there.words}));
  TESSERA_TRY_DONE(device_.wait());
  for (std::size_t i = 0; i < there.memory.size(); ++i)
    TESSERA_TRY_DONE(there.memory[i].read(data.memory[i]));
  return Done{};
}

Expected<GpuKernel::Timer> GpuKernel::timer(const KernelData& data, const tile::Grid& grid) const {
  constexpr std::int64_t kMoreThanItsCache = std::int64_t{192} << 20;
  constexpr std::size_t kMostCopies = 16, kInARow = 5;
  TESSERA_TRY_DONE(check(data, grid));
  std::int64_t bytes = 0;
  for (const auto& memory : data.memory) bytes += static_cast<std::int64_t>(memory.size());
  Timer timer;
  do {
    TESSERA_TRY(DeviceArguments copy, upload(data));
    timer.copies_.push_back(std::move(copy));
  } while (static_cast<std::int64_t>(timer.copies_.size()) * bytes < kMoreThanItsCache &&
           timer.copies_.size() < kMostCopies);
  TESSERA_TRY(timer.stream_, device_.stream());
  timer.launches_ = std::max(timer.copies_.size(), kInARow);
  TESSERA_TRY(timer.graph_, timer.stream_.capture([&]() -> Expected<Done> {
    for (std::size_t i = 0; i < timer.launches_; ++i)
      TESSERA_TRY_DONE(function_.launch({grid, timer.copies_[i % timer.copies_.size()].words},
                                        timer.stream_.get()));
    return Done{};
  }));
  TESSERA_TRY_DONE(timer.graph_.launch(timer.stream_.get()));
  TESSERA_TRY_DONE(timer.stream_.wait());
  TESSERA_TRY(timer.before_, device_.event());
  TESSERA_TRY(timer.after_, device_.event());
  return timer;
}

Expected<double> GpuKernel::Timer::seconds(int runs) {
  TESSERA_TRY_DONE(before_.record(stream_.get()));
  for (int i = 0; i < runs; ++i) TESSERA_TRY_DONE(graph_.launch(stream_.get()));
  TESSERA_TRY_DONE(after_.record(stream_.get()));
  TESSERA_TRY(const double milliseconds, after_.since(before_));
  return milliseconds / 1e3 / static_cast<double>(launches_) / runs;
}

Expected<std::vector<double>> GpuKernel::times(const KernelData& data, const tile::Grid& grid,
                                               const std::atomic<bool>& stop) const {
  constexpr std::size_t kLeastRounds = 3, kMostRounds = 1000;
  constexpr double kSeconds = 0.2;
  TESSERA_TRY(Timer timer, this->timer(data, grid));
  std::vector<double> times;
  const Stopwatch watch;
  while (times.size() < kLeastRounds ||
         (watch.seconds() < kSeconds && times.size() < kMostRounds)) {
    TESSERA_TRY(const double seconds, timer.seconds());
    times.push_back(seconds);
    if (stop) break;
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace tessera
