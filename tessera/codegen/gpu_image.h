#pragma once

#include <span>
#include <vector>

#include "tessera/codegen/image.h"
#include "tessera/codegen/ptx/ptx.h"

namespace tessera::codegen {

/// Kernels as texts of PTX, each with one entry, `kGpuEntry`, and ended by a zero.
struct GpuImage {
  struct Entry {
    std::int64_t offset = 0;
    int threads = 0, shared_bytes = 0, programs = 1;  // as PtxKernel has them
  };
  Bytes text = {};
  std::vector<Entry> entries = {};  // one per kernel
  std::int64_t from_cache = 0;      // kernels whose text was there already
};

/// What is written for a GPU: `sm_80` or `sm_90a`, of machine::cuda().
PtxOptions ptx_options(const machine::Machine& gpu, Precision precision);

/// Whether code can be made of a kernel: it is planned and written, but not compiled.
Expected<Done> check_ptx(const tile::Kernel& kernel, const PtxOptions& options);

/// Compiles all kernels for a GPU; as build_image otherwise.
Expected<GpuImage> build_gpu_image(std::span<const tile::Kernel> kernels,
                                   const machine::Machine& gpu, const ImageOptions& options = {});

}  // namespace tessera::codegen
