#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tessera/codegen/ptx/code_writer.h"
#include "tessera/tile/passes/facts.h"

namespace tessera::codegen::ptx {

/// Address computation of an access to a view.
struct Place {
  const tile::Operation* op;
  tile::OpId id;
  Layout layout;
  tile::Extents shape;
  DType dtype;
  int axis = 0, run = 1;  // elements per vector access along an axis, if `aligned`
  std::optional<KnownAccess> known = {};
  bool is_masked = false;
  llvm::Value* aligned = nullptr;
  llvm::Value* address = nullptr;  // of the thread's first register, i64
  llvm::Value* base = nullptr;     // of the view
  std::vector<llvm::Value*> start = {}, first = {}, extents = {},
                            strides = {};  // of the tile, of the thread

  /// Whether the kernel marks the access as in bounds along an axis.
  bool is_known_inside(std::size_t along) const {
    return along < op->ints.size() && op->ints[along] != 0;
  }
};

/// Facts about the kernel's pointers, computed where they are first asked for.
class PointerFacts {
 public:
  PointerFacts(const tile::Kernel& kernel, const PtxOptions& options)
      : kernel_(kernel), options_(options) {}
  const std::vector<tile::Facts>& by_value();

 private:
  const tile::Kernel& kernel_;
  const PtxOptions& options_;
  std::vector<tile::Facts> facts_;
};

/// Writer of accesses to views: addresses, bounds, alignment, and loads.
class ViewAccess : public CodeWriter {
 public:
  ViewAccess(const Context& context, PointerFacts& facts) : CodeWriter(context), facts_(facts) {}

  void write(const tile::gpu::LoadView& load);
  /// Barrier where accesses overlap.
  void write(const tile::gpu::BarrierIfOverlap& barrier);

  void write(const tile::gpu::AddressView& address);
  const Place& place_of(OpId access) const { return places_.at(access); }
  llvm::Value* is_aligned(const Operation& op, int run);
  llvm::Value* within(const Place& place, int reg);
  llvm::Value* address(const Place& place, int reg);
  /// Emits both versions of an access: by vectors, where it is aligned, and by elements.
  Pieces by_runs(const Place& place, const std::function<Pieces(int run)>& access);
  /// Loads one packed value, by one access or element by element; `pad` where it is out of bounds,
  /// or 0.
  llvm::Value* loaded_run(const Place& place, int reg, int run, llvm::Value* pad);
  void keep_packed(ValueId id, const Place& place, const Pieces& runs);

  /// Whether an element of a part is in the row.
  llvm::Value* within_row(const Layout& layout, int axis, int reg);
  /// Whether all elements of a vector are in the row.
  llvm::Value* is_in_row(const Place& place, int reg, int run);

 private:
  /// Whether neither this grid nor one before it writes what is read: the load may then be moved,
  /// also before the wait for other grids.
  bool is_never_written(const Place& place) const;
  std::int64_t view_alignment(ValueId view);
  llvm::Value* overlap(const Operation& a, const Operation& b);
  llvm::Value* in_row(const Layout& layout, int axis, int reg);  // index of the element in the row
  llvm::Value* touches_row(const Place& place, int reg,
                           int run);  // whether some elements are in it
  /// Vectors as loaded, from shared memory where they are cached there.
  Pieces cached_runs(const Place& place, const tile::gpu::LoadView& load,
                     const BranchBody& from_memory);
  /// Vectors of 16 bytes at addresses that are aligned to one element only.
  static bool may_be_unaligned(const Place& place);
  llvm::Value* load_unaligned(const Place& place, int reg);
  llvm::Value* from_two_words(llvm::Value* low, llvm::Value* high, llvm::Value* bytes, int width);

  PointerFacts& facts_;
  std::map<OpId, Place> places_;
};

}  // namespace tessera::codegen::ptx
