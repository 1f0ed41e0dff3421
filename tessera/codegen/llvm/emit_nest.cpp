#include <algorithm>
#include <map>

#include "tessera/codegen/llvm/dot_parts.h"
#include "tessera/codegen/llvm/emitter.h"
#include "tessera/codegen/llvm/row.h"

namespace tessera::codegen {

using tile::Code;
using tile::Operation;
using tile::OpId;
using tile::ValueId;
using tile::cpu::Nest;
using tile::cpu::Root;

namespace {

/// Load of a matrix that is contiguous across the vectors of a nest, not along them.
struct Across {
  OpId load = 0;
  std::size_t along = 0, across = 0;  // axes of its view: that of the lanes, and of unit stride
  std::vector<llvm::Value*> at = {};  // start of the tile
};

/// The only load of a nest that writes a buffer, if it is such a transposing load.
class Finder {
 public:
  Finder(Emitter& e, const Nest& nest) : e_(e), nest_(nest) {}

  std::optional<Across> find() {
    if (nest_.roots.size() != 1 || nest_.roots[0].kind != Root::Kind::Write) return std::nullopt;
    const Root& root = nest_.roots[0];
    const auto& buffer = e_.scheduled.buffers[static_cast<std::size_t>(root.buffer)];
    constexpr std::int64_t most = 64;  // lines transposed by straight-line code
    if (buffer.shape != nest_.space || nest_.space.size() != 2 || nest_.fold || nest_.lane != 1 ||
        nest_.width == 1 || nest_.space[1] > most || buffer.dtype == DType::Bool ||
        std::ranges::any_of(root.at, [](std::int64_t at) { return at != 0; }))
      return std::nullopt;
    walk(root.value, tile::cpu::identity_map(2));
    if (!alone_ || loads_.size() != 1) return std::nullopt;
    const auto& [id, map] = loads_[0];
    const Operation& op = e_.op(id);
    const auto axis_of = [&](int axis) {
      return static_cast<std::size_t>(std::ranges::find(map, axis, &tile::cpu::AxisMap::axis) -
                                      map.begin());
    };
    Across found{.load = id, .along = axis_of(1), .across = axis_of(0)};
    const bool both = std::max(found.along, found.across) < map.size();
    const tile::Type& view = e_.type(op.in[0]);
    if (!both || view.dtype != buffer.dtype || view.strides[found.across] != 1) return std::nullopt;
    for (std::size_t i = 0; i < map.size(); ++i)
      found.at.push_back(
          e_.ir.CreateAdd(e_.as_index(e_.ir, op.in[i + 1]), e_.index(map[i].offset)));
    return found;
  }

 private:
  void walk(ValueId id, const tile::cpu::IndexMap& map) {
    const bool own = id == nest_.roots[0].value;
    if (!e_.type(id).is_tile()) return;
    // A buffer that is read may be the one that the nest writes.
    alone_ = alone_ && (own || e_.scheduled.buffer_of[id] < 0);
    if (!alone_ || !e_.definition[id]) return;
    const OpId definition = *e_.definition[id];
    const Operation& op = e_.op(definition);
    if (op.code == Code::Vload) return loads_.emplace_back(definition, map), void();
    if (const auto moved = tile::cpu::operand_map(e_.kernel, op, map))
      return walk(op.in[0], *moved);
    for (const ValueId in : op.in) walk(in, map);
  }

  Emitter& e_;
  const Nest& nest_;
  std::vector<std::pair<OpId, tile::cpu::IndexMap>> loads_;
  bool alone_ = true;  // nothing else is read
};

}  // namespace

/// A matrix in bounds that is read across and written along vectors is transposed in registers
/// first, block by block, into the buffer that the nest writes, and then read there.
void Emitter::emit_nest(const Nest& nest, std::int64_t first) {
  const auto found = options.checked || first > 0 ? std::nullopt : Finder(*this, nest).find();
  if (!found) return emit_rows(nest, first);
  const Operation& load = op(found->load);
  const ViewParts& view = views[load.in[0]];
  const DType dtype = type(load.out[0]).dtype;
  llvm::Value *whole = ir.getTrue(), *offset = index(0);
  for (std::size_t i = 0; i < found->at.size(); ++i) {
    const std::int64_t extent = i == found->across  ? nest.space[0]
                                : i == found->along ? nest.space[1]
                                                    : 1;
    offset = sum_of(ir, offset, product_of(ir, found->at[i], view.strides[i]));
    if (i < load.ints.size() && load.ints[i] == 1) continue;  // known to be in bounds
    llvm::Value* last = ir.CreateSub(view.shape[i], index(extent));
    whole = ir.CreateAnd(whole, ir.CreateAnd(ir.CreateICmpSGE(found->at[i], index(0)),
                                             ir.CreateICmpSLE(found->at[i], last)));
  }
  branch(
      whole,
      [&] {
        llvm::Function* turn = packer(*module, {.from = dtype,
                                                .to = dtype,
                                                .lines = static_cast<int>(nest.space[1]),
                                                .unit = Packer::Unit::K,
                                                .all_lines = true,
                                                .whole_k = nest.space[0] % 16 == 0});
        ir.CreateCall(
            turn, {buffers[static_cast<std::size_t>(nest.roots[0].buffer)],
                   ir.CreateGEP(memory_type(dtype), view.base, offset), view.strides[found->along],
                   index(1), index(nest.space[1]), index(nest.space[0])});
        turned = found->load;
        emit_rows(nest, first);
        turned.reset();
      },
      [&] { emit_rows(nest, first); });
}

/// Loops over the outer axes of a nest around its rows. A nest that stores to a view is clipped to
/// the view.
void Emitter::emit_rows(const Nest& nest, std::int64_t first) {
  const std::size_t rank = nest.space.size();
  std::vector<llvm::Value*> from(rank, index(0)), to;
  for (const std::int64_t extent : nest.space) to.push_back(index(extent));
  // Several stores in one nest all end at the same place.
  const auto store = std::find_if(nest.roots.begin(), nest.roots.end(),
                                  [](const Root& root) { return root.kind == Root::Kind::Effect; });
  const Operation* effect = store == nest.roots.end() ? nullptr : &op(store->op);
  if (effect != nullptr && effect->code == Code::Vstore) {
    const ViewParts& view = views[effect->in[0]];
    for (std::size_t i = 0; i < rank; ++i) {
      if (i < effect->ints.size() && effect->ints[i] == 1) continue;  // known to be in bounds
      llvm::Value* at = as_index(ir, effect->in[i + 1]);
      const auto clamp = [&](llvm::Value* x) {
        x = greatest_of(ir, x, index(0));
        return least_of(ir, x, index(nest.space[i]));
      };
      from[i] = clamp(ir.CreateNeg(at));
      to[i] = clamp(ir.CreateSub(view.shape[i], at));
    }
  }

  if (first > 0) {
    llvm::Value*& start = from[static_cast<std::size_t>(nest.lane)];
    start = greatest_of(ir, start, index(first));
  }

  // Without vectors along the axis of a fold, the fold's own loop iterates over it.
  const bool folds_lanes = nest.fold && *nest.fold == nest.lane;
  const int lane = folds_lanes && nest.width == 1 ? -1 : nest.lane;
  std::vector<llvm::Value*> outer(rank, nullptr);
  const std::function<void(std::size_t)> descend = [&](std::size_t axis) {
    if (axis == rank) {
      Row row(*this, nest, lane, outer);
      row.emit(lane < 0 ? nullptr : from[static_cast<std::size_t>(lane)],
               lane < 0 ? nullptr : to[static_cast<std::size_t>(lane)]);
      return;
    }
    const bool inner =
        static_cast<int>(axis) == lane || (nest.fold && *nest.fold == static_cast<int>(axis));
    if (inner) return descend(axis + 1);
    loop(from[axis], to[axis], 1, [&](llvm::Value* i) {
      outer[axis] = i;
      descend(axis + 1);
    });
  };
  descend(0);
}

llvm::Value* Emitter::only_element(ValueId id) {
  const Nest nest{.space = tile::Extents(type(id).shape.size(), 1)};
  Row row(*this, nest, -1, std::vector<llvm::Value*>(nest.space.size(), index(0)));
  return row.single(id);
}

}  // namespace tessera::codegen
