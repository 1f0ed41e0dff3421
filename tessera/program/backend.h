#pragma once

#include "tessera/codegen/gpu_image.h"
#include "tessera/codegen/image.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// Backend: how programs for one kind of target machine (CPU, NVIDIA GPU) are made. A further kind,
/// such as the GPU of another vendor, is a row of the table behind backend_of().
struct Backend {
  /// Lowering cache for the machine and the options.
  Lowerings (*lowerings)(const CompileOptions& options);
  /// Generates code for the kernels of a draft; returns the number of cache hits.
  Expected<std::int64_t> (*add_code)(const CompileOptions& options, Draft& draft);
  /// Whether indices that kernels compute are checked before use. On a device, only the indices
  /// that the caller passes are.
  bool checks_computed_indices;
  /// Whether f32 tensors between kernels are stored in CompileOptions::contraction_dtype.
  bool stores_contraction_dtype;
  /// GroupingOptions::recomputes_maps: memory traffic and launches cost more than arithmetic.
  bool recomputes_maps;
};
const Backend& backend_of(const machine::Machine& machine);

/// Properties of the launches of each kernel of a program: the largest power of two, at most
/// runtime::kAlignment, that divides all addresses, and the parameters that are always weights.
std::vector<codegen::LaunchFacts> launch_facts(
    const runtime::Program& program, std::span<const std::shared_ptr<const tile::Kernel>> kernels);

/// Code generation options for a program of `count` kernels.
codegen::ImageOptions image_options(const CompileOptions& options, std::size_t count);

}  // namespace tessera::program
