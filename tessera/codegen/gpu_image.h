#pragma once

#include <span>
#include <vector>

#include "tessera/codegen/image.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/runtime/program.h"

namespace tessera::codegen {

/// Kernels as texts of PTX, each with one entry, `kGpuEntry`, and ended by a zero.
struct GpuImage {
  Bytes text = {};
  std::vector<runtime::Program::Kernel> kernels = {};  // as they are launched, without names
  std::int64_t from_cache = 0;                         // kernels whose text was there already
};

/// What is written for a GPU: `sm_80` or `sm_90a`, of machine::cuda().
PtxOptions ptx_options(const machine::Machine& gpu, Precision precision);

/// Whether code can be made of a kernel: it is planned and written, but not compiled.
Expected<Done> check_ptx(const tile::Kernel& kernel, const PtxOptions& options);

/// Compiles all kernels for a GPU; as build_image otherwise.
Expected<GpuImage> build_gpu_image(std::span<const tile::Kernel> kernels,
                                   const machine::Machine& gpu, const ImageOptions& options = {});

}  // namespace tessera::codegen
