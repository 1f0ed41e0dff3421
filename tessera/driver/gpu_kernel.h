#pragma once

#include <atomic>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/driver/kernel.h"
#include "tessera/runtime/cuda/device.h"

namespace tessera {

/// Tile kernel compiled for the local GPU in the same way as the kernels of models: for its
/// architecture, with persistent blocks and tensor maps where they pay, and specialized to strides
/// and integers that are 1 (tile/passes/for_ones.h).
class GpuKernel {
 public:
  struct Options {
    codegen::Precision precision = codegen::Precision::Exact;
    bool tf32 = false;  // allow rounding f32 operands to tf32 for tensor cores
  };
  /// Compiles the kernel for launches with arguments like these. Without a supported GPU:
  /// `cuda-missing`, `cuda-architecture`.
  static Expected<GpuKernel> compile(const tile::Kernel& kernel,
                                     std::span<const tile::Argument> arguments,
                                     const Options& options);

  /// Launches the grid on a copy of the data in GPU memory, and copies the results back. Arguments
  /// are checked; an access out of bounds is at best an error of the driver.
  Expected<Done> launch(KernelData& data, const tile::Grid& grid) const;

  /// Launch times in seconds, in ascending order. Several copies of the data are used in turn, to
  /// keep most of it out of the GPU's cache. Ends early when `stop` is set.
  Expected<std::vector<double>> times(const KernelData& data, const tile::Grid& grid,
                                      const std::atomic<bool>& stop) const;

  /// Timer of launches with copies of the data in GPU memory.
  class Timer;
  Expected<Timer> timer(const KernelData& data, const tile::Grid& grid) const;

  const codegen::PtxKernel& ptx() const { return ptx_; }
  const runtime::cuda::Function& function() const { return function_; }
  const std::string& gpu() const { return device_.name(); }

 private:
  GpuKernel(tile::Kernel kernel, runtime::cuda::Device device)
      : kernel_(std::move(kernel)), device_(std::move(device)) {}

  /// Arguments in GPU memory.
  struct DeviceArguments {
    std::vector<runtime::cuda::Memory> memory = {};  // by argument; empty for numbers
    std::vector<std::uint64_t> words = {};
  };
  Expected<DeviceArguments> upload(const KernelData& data) const;
  Expected<Done> check(const KernelData& data, const tile::Grid& grid) const;

  tile::Kernel kernel_;     // the original kernel
  std::vector<bool> ones_;  // words that are 1 in the compiled specialization
  runtime::cuda::Device device_;
  codegen::PtxKernel ptx_;
  runtime::cuda::Function function_;  // declared after its device, which it must not outlive
};

/// CUDA graph of launches of a kernel, each with the next one of several copies of the data. The
/// kernel must outlive it.
class GpuKernel::Timer {
 public:
  /// Mean seconds of a launch over so many runs of the graph, back to back.
  Expected<double> seconds(int runs = 1);

 private:
  friend class GpuKernel;
  std::vector<DeviceArguments> copies_ = {};
  std::size_t launches_ = 0;  // of the graph
  runtime::cuda::Stream stream_ = {};
  runtime::cuda::Graph graph_ = {};
  runtime::cuda::Event before_ = {}, after_ = {};
};

}  // namespace tessera
