#include "tessera/tile/passes/version_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tessera/tile/passes/region_copier.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// Bounds and step of loops over blocks, and where the first is in the kernel's body.
struct BlockLoops {
  std::size_t first = 0;
  ValueId from = 0, to = 0, step = 0;

  bool has(const Operation& op) const {
    return op.code == Code::For && op.in[0] == from && op.in[1] == to && op.in[2] == step;
  }
};

/// Whether a loop carries a tile with an extent of its step, which is a positive constant.
bool accumulates_blocks(const Kernel& kernel, const Operation& loop, const Operation* step) {
  if (step == nullptr || step->code != Code::Const || step->literal.integer <= 0) return false;
  return std::any_of(loop.out.begin(), loop.out.end(), [&](ValueId out) {
    const Type& type = kernel.type(out);
    return type.is_tile() && std::find(type.shape.begin(), type.shape.end(),
                                       step->literal.integer) != type.shape.end();
  });
}

std::optional<BlockLoops> find_block_loops(const Kernel& kernel) {
  bool multiplies = false;
  for_each_op(kernel, kernel.body,
              [&](OpId id) { multiplies |= kernel.ops[id].code == Code::Dot; });
  if (multiplies) return {};
  const auto defined = definitions(kernel);
  const auto definition = [&](ValueId value) {
    return defined[value] ? &kernel.ops[*defined[value]] : nullptr;
  };
  std::optional<BlockLoops> found;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    if (op.code != Code::For || !accumulates_blocks(kernel, op, definition(op.in[2]))) continue;
    const Operation* to = definition(op.in[1]);
    if (to != nullptr && to->code == Code::Const) continue;
    found = BlockLoops{.from = op.in[0], .to = op.in[1], .step = op.in[2]};
    break;
  }
  if (!found) return {};
  const auto first = std::find_if(kernel.body.ops.begin(), kernel.body.ops.end(),
                                  [&](OpId id) { return found->has(kernel.ops[id]); });
  found->first = static_cast<std::size_t>(first - kernel.body.ops.begin());
  return found;
}

/// Appends the condition that the loops have one iteration.
ValueId emit_condition(RegionCopier& out, const BlockLoops& loops) {
  const Type index = Type::scalar(DType::I64), truth = Type::scalar(DType::Bool);
  const auto wide = [&](ValueId x) { return out.emit({.code = Code::Cast, .in = {x}}, index); };
  const auto map = [&](Function function, ValueId x, ValueId y, const Type& type) {
    return out.emit({.code = Code::Map, .function = function, .in = {x, y}}, type);
  };
  const ValueId from = wide(loops.from), to = wide(loops.to), step = wide(loops.step);
  const ValueId starts = map(Function::Less, from, to, truth);
  const ValueId ends = map(Function::LessEqual, map(Function::Sub, to, from, index), step, truth);
  return map(Function::And, starts, ends, truth);
}

}  // namespace

Kernel version_loops(const Kernel& kernel) {
  const auto loops = find_block_loops(kernel);
  if (!loops) return kernel;
  Kernel result = kernel;
  const auto split = result.body.ops.begin() + static_cast<std::ptrdiff_t>(loops->first);
  std::vector<OpId> shared(result.body.ops.begin(), split), rest(split, result.body.ops.end());

  RegionCopier copier(result, {});
  const std::vector<OpId> version = copier.copy(rest);
  std::set<ValueId> single;  // loop variables of the loops to inline
  for (const OpId id : rest) {
    if (loops->has(result.ops[id])) single.insert(copier.of(result.ops[id].regions[0].params[0]));
  }
  const ValueId condition = emit_condition(copier, *loops);
  shared.insert(shared.end(), copier.emitted().begin(), copier.emitted().end());

  Operation branch{.code = Code::If, .in = {condition}};
  for (std::vector<OpId> ops : {version, rest}) {
    result.ops.push_back({.code = Code::Yield});
    ops.push_back(static_cast<OpId>(result.ops.size() - 1));
    branch.regions.push_back({.ops = std::move(ops)});
  }
  result.ops.push_back(std::move(branch));
  shared.push_back(static_cast<OpId>(result.ops.size() - 1));
  result.body.ops = std::move(shared);

  return Rewrite::run(result, [&](Rewrite& out, const Operation& op) {
    if (op.code != Code::For || !single.contains(op.regions[0].params[0])) return out.copy(op);
    std::vector<ValueId> params = {out.of(op.in[0])};
    for (std::size_t i = 3; i < op.in.size(); ++i) params.push_back(out.of(op.in[i]));
    const std::vector<ValueId> results = out.inline_region(op.regions[0], params);
    for (std::size_t i = 0; i < op.out.size(); ++i) out.set(op.out[i], results[i]);
  });
}

}  // namespace tessera::tile
