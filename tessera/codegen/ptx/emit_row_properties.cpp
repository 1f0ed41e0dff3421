#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// Addresses and alignment of rows that are processed in parts: in global memory, and of their
// cached part in shared memory.

namespace tessera::codegen::ptx {

using tile::Code;

bool Emitter::is_fixed(const Operation& op) const {
  return op.code == Code::Vload && std::all_of(op.in.begin(), op.in.end(), [&](ValueId in) {
           const auto found = dependences_.find(in);
           return found != dependences_.end() &&
                  found->second == tile::gpu::ProgramDependence::Uniform;
         });
}

llvm::Value* Emitter::row_address(const Operation& op) {
  const View& view = this->view(op.in[0]);
  llvm::Value* elements = block_.i64(0);
  for (std::size_t axis = 0; axis < view.strides.size(); ++axis) {
    llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
    elements = ir_.CreateAdd(elements, ir_.CreateMul(at, view.strides[axis]));
  }
  return ir_.CreateAdd(view.base,
                       ir_.CreateMul(elements, block_.i64(byte_width(type(op.in[0]).dtype))));
}

// Alignment and overlap of all accesses, computed before the first part.
Emitter::RowProperties Emitter::row_properties(const std::vector<Pass>& passes) {
  const tile::CutRows& cut = *mapping_.cut;
  RowProperties places{.aligned = ir_.getTrue(), .shifted = ir_.getTrue(), .whole = ir_.getTrue()};
  std::vector<Row> loads;
  std::optional<Row> store;
  std::vector<std::pair<Row, int>> own;  // rows of this program, with the bytes of an access
  std::set<tile::OpId> seen;
  define(cut.column, block_.i64(0));
  for (const Pass& pass : passes) {
    for (const tile::OpId id : pass.inside) {
      const Operation& op = kernel_.ops[id];
      if (!seen.insert(id).second) continue;
      if (op.out.size() == 1 && type(op.out[0]).is_scalar() && op.code != Code::Reduce)
        operation(op);  // an address
      if (op.code != Code::Vload && op.code != Code::Vstore) continue;
      const View& view = this->view(op.in[0]);
      const tile::Type& view_type = type(op.in[0]);
      const tile::Extents& shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
      const auto along = static_cast<std::size_t>(*cut_axis(op));
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
        llvm::Value* inside = ir_.CreateICmpULT(at, view.extents[axis]);
        if (axis == along)
          inside = ir_.CreateAnd(inside, ir_.CreateICmpUGE(ir_.CreateSub(view.extents[axis], at),
                                                           block_.i64(cut.extent)));
        places.whole = ir_.CreateAnd(places.whole, inside);
      }
      const int width = byte_width(view_type.dtype);
      const int bytes = width * run_of(view_type, plan_.access(op), shape);
      llvm::Value* first = row_address(op);
      const Row row{first, ir_.CreateAdd(first, block_.i64(cut.extent * width)), width};
      rows_.insert_or_assign(id, row);
      places.aligned = ir_.CreateAnd(places.aligned, is_multiple_of(first, bytes));
      if (!is_fixed(op)) own.emplace_back(row, bytes);
      if (op.code == Code::Vstore) {
        store = row;
      } else {
        loads.push_back(row);
      }
    }
  }
  // Rows with equal misalignment start a few elements after an address that is aligned for all of
  // them.
  const auto narrowest = std::min_element(own.begin(), own.end(), [](const auto& a, const auto& b) {
    return a.first.width < b.first.width;
  });
  places.before = block_.i64(0);
  if (narrowest != own.end()) {
    const auto& [row, bytes] = *narrowest;
    places.before =
        ir_.CreateUDiv(ir_.CreateAnd(row.first, block_.i64(bytes - 1)), block_.i64(row.width));
  }
  for (const auto& [row, bytes] : own) {
    llvm::Value* from =
        ir_.CreateSub(row.first, ir_.CreateMul(places.before, block_.i64(row.width)));
    places.shifted = ir_.CreateAnd(places.shifted, is_multiple_of(from, bytes));
  }
  // A part is stored after it has been loaded, but other parts may not have been. Where the result
  // overlaps with the input, the order of parts is that of memmove.
  llvm::Value *up = ir_.getTrue(), *down = ir_.getTrue();
  places.overlaps = ir_.getFalse();
  for (const Row& load : loads) {
    if (!store) break;
    llvm::Value* apart = ir_.CreateOr(ir_.CreateICmpULE(store->end, load.first),
                                      ir_.CreateICmpULE(load.end, store->first));
    if (store->width == load.width)
      apart = ir_.CreateOr(apart, ir_.CreateICmpEQ(store->first, load.first));
    const auto fits = [&](bool widths, llvm::Value* order) {
      return ir_.CreateOr(apart, widths ? order : ir_.getFalse());
    };
    up = ir_.CreateAnd(
        up, fits(store->width <= load.width, ir_.CreateICmpULE(store->first, load.first)));
    down = ir_.CreateAnd(
        down, fits(store->width >= load.width, ir_.CreateICmpUGE(store->first, load.first)));
    places.overlaps = ir_.CreateOr(places.overlaps, ir_.CreateNot(apart));
  }
  places.backwards = ir_.CreateNot(up);
  block_.when(ir_.CreateNot(ir_.CreateOr(up, down)),
              [&] { ir_.CreateIntrinsic(llvm::Intrinsic::trap, {}, {}); });
  return places;
}

llvm::Value* Emitter::is_multiple_of(llvm::Value* number, int power) {
  return ir_.CreateICmpEQ(ir_.CreateAnd(number, block_.i64(power - 1)), block_.i64(0));
}

// Rows that only this program reads are cached in shared memory from their first pass on, as far as
// there is room: each thread reads the addresses that it wrote itself.
void Emitter::cache_rows(const Pass& pass) {
  const tile::CutRows& cut = *mapping_.cut;
  if (cached_) cached_->filled = true;
  for (const tile::OpId id : pass.inside) {
    const Operation& op = kernel_.ops[id];
    if (op.code != Code::Vload || cached_ || is_fixed(op)) continue;
    const int width = byte_width(type(op.in[0]).dtype);
    const std::int64_t bytes = cut.part * width;
    const std::int64_t most = (cut.extent + kChunk / width - 1 + cut.part - 1) / cut.part;
    const std::int64_t parts = std::min(most, mapping_.cached_bytes / bytes);
    if (parts == 0) return;
    if (!cached_offset_) cached_offset_ = block_.reserve(shared_room(parts * bytes));
    cached_ = CachedRows{.load = id, .parts = parts, .all = parts == most, .filled = false};
  }
}

Pieces Emitter::cached_runs(const Place& place, const BranchBody& from_memory) {
  if (!cached_ || &kernel_.ops[cached_->load] != place.op) return from_memory();
  const std::int64_t line = block_.threads() * kChunk;
  const int width = byte_width(place.dtype);
  const auto slot = [&](int reg) {
    llvm::Value* at = ir_.CreateMul(part_, block_.i32(mapping_.cut->part * width));
    at = ir_.CreateAdd(at, ir_.CreateMul(block_.thread(), block_.i32(kChunk)));
    return block_.shared(ir_.CreateAdd(at, block_.i32(*cached_offset_ + reg / place.run * line)));
  };
  llvm::Value* has_room =
      cached_->all ? nullptr : ir_.CreateICmpULT(part_, block_.i32(cached_->parts));
  const auto take = [&] {
    Pieces runs;
    for (int reg = 0; reg < place.layout.registers(); reg += place.run)
      runs.push_back(ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run), slot(reg),
                                           llvm::Align(kChunk)));
    return runs;
  };
  if (cached_->filled) return has_room == nullptr ? take() : either(has_room, take, from_memory);
  const Pieces runs = from_memory();
  block_.when(has_room, [&] {
    for (std::size_t i = 0; i < runs.size(); ++i)
      ir_.CreateAlignedStore(runs[i], slot(static_cast<int>(i) * place.run), llvm::Align(kChunk));
  });
  return runs;
}

}  // namespace tessera::codegen::ptx
