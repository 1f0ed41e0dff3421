#pragma once

#include <span>
#include <vector>

#include "tessera/codegen/image.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/runtime/program.h"

namespace tessera::codegen {

/// PTX of all kernels of a program: one zero-terminated text per kernel, each with the entry
/// `kGpuEntry`.
struct GpuImage {
  Bytes text = {};
  std::vector<runtime::Program::Kernel> kernels = {};  // launch parameters, without names
  std::int64_t from_cache = 0;                         // number of kernels found in the cache
};

/// PTX options for a GPU of machine::cuda().
PtxOptions ptx_options(const machine::Machine& gpu, const Options& options);

/// Checks whether a kernel can be compiled to PTX: it is scheduled, and no code is written.
Expected<Done> check_ptx(const tile::Kernel& kernel, const PtxOptions& options);

/// Properties that all launches of a kernel in a program have in common.
struct LaunchFacts {
  std::int64_t alignment = 1;        // PtxOptions::alignment
  std::vector<bool> constants = {};  // PtxOptions::constants
};

/// PTX options of a kernel of a program: its launches are those of a session.
PtxOptions program_ptx_options(PtxOptions options, const LaunchFacts& launches);

/// Compiles all kernels for a GPU; otherwise as build_image. `launches` are by kernel.
Expected<GpuImage> build_gpu_image(std::span<const tile::Kernel> kernels,
                                   std::span<const LaunchFacts> launches,
                                   const machine::Machine& gpu, const ImageOptions& options = {});

}  // namespace tessera::codegen
