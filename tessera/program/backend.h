#pragma once

#include "tessera/codegen/image.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// What programs for one kind of target machine need beside the strategies of lower/. A further
/// kind, such as the GPU of another vendor, is a row of the table behind backend_of().
struct Backend {
  /// How groups are lowered for the machine and the options.
  Lowerings (*lowerings)(const CompileOptions& options);
  /// Makes code of the kernels of a draft; gives how many were in the cache.
  Expected<std::int64_t> (*add_code)(const CompileOptions& options, Draft& draft);
  /// Whether indices that kernels compute are checked before they are used. Where programs run
  /// apart from the host, only indices that the caller provides are.
  bool checks_computed_indices;
  /// Whether tensors of f32 between kernels are stored in the type of products.
  bool stores_product_types;
};
const Backend& backend_of(const machine::Machine& machine);

/// How `count` kernels of a program are made code.
codegen::ImageOptions image_options(const CompileOptions& options, std::size_t count);

}  // namespace tessera::program
