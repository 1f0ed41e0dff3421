#pragma once

#include "tessera/codegen/ptx/evaluator.h"
#include "tessera/codegen/ptx/view_access.h"

namespace tessera::codegen::ptx {

/// Writer of stores to views.
class StoreWriter : public CodeWriter {
 public:
  StoreWriter(const Context& context, Evaluator& evaluator, ViewAccess& views)
      : CodeWriter(context), evaluator_(evaluator), views_(views) {}
  void write(const tile::gpu::StoreView& store);

 private:
  void store_through_shared(const Place& place, const tile::gpu::StoreView& store);
  /// Stores a tile box by box within each warp, each with its epilogue.
  void store_boxes(const Place& place, const tile::gpu::StoreView& store);
  /// Registers of a box of the tile, computed by the epilogue.
  Pieces box_of(ValueId x, const tile::gpu::StoreView& store,
                const std::vector<std::size_t>& registers);
  struct WarpStore;

  Evaluator& evaluator_;
  ViewAccess& views_;
};

}  // namespace tessera::codegen::ptx
