#pragma once

#include <atomic>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/driver/kernel.h"
#include "tessera/runtime/cuda/device.h"

namespace tessera {

/// A kernel on the GPU of this computer, as programs of models have theirs: written for its
/// generation, with blocks that go on and with tensor maps where those pay; and for launches where
/// the same strides and integers are 1 (tile/passes/for_ones.h).
class GpuKernel {
 public:
  struct Options {
    codegen::Precision precision = codegen::Precision::Exact;
    bool tf32 = false;  // whether factors of f32 may be rounded for tensor cores
  };
  /// For launches on such arguments. Without a GPU, or with one that is too old: `cuda-missing`,
  /// `cuda-architecture`.
  static Expected<GpuKernel> compile(const tile::Kernel& kernel,
                                     std::span<const tile::Argument> arguments,
                                     const Options& options);

  /// Runs every program of the grid on a copy of the memory, which then takes its place. Arguments
  /// are checked; an access outside of their memory is an error of the driver's at best.
  Expected<Done> launch(KernelData& data, const tile::Grid& grid) const;

  /// What launches take, in seconds, from the shortest to the longest. Several copies of the memory
  /// take turns, so that little of it is in the GPU's cache. Ends early where `stop` is set.
  Expected<std::vector<double>> times(const KernelData& data, const tile::Grid& grid,
                                      const std::atomic<bool>& stop) const;

  const codegen::PtxKernel& ptx() const { return ptx_; }
  const runtime::cuda::Function& function() const { return function_; }
  const std::string& gpu() const { return device_.name(); }

 private:
  GpuKernel(tile::Kernel kernel, runtime::cuda::Device device)
      : kernel_(std::move(kernel)), device_(std::move(device)) {}

  /// Arguments whose memory lies on the GPU.
  struct There {
    std::vector<runtime::cuda::Memory> memory = {};  // by argument; none for numbers
    std::vector<std::uint64_t> words = {};
  };
  Expected<There> put(const KernelData& data) const;
  Expected<Done> check(const KernelData& data, const tile::Grid& grid) const;

  tile::Kernel kernel_;     // as it was given
  std::vector<bool> ones_;  // words that it was compiled for
  runtime::cuda::Device device_;
  codegen::PtxKernel ptx_;
  runtime::cuda::Function function_;  // after its device, which it must not outlive
};

}  // namespace tessera
