#include "tessera/tile/gpu/loop_pipeline.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

bool is_multiple(const PlannedKernel& planned, ValueId id, std::int64_t of) {
  const Operation* op = planned.defining_op(id);
  if (op == nullptr) return false;
  const auto is = [&](ValueId in) { return is_multiple(planned, in, of); };
  if (op->code == Code::Const) return op->literal.integer % of == 0;
  if (op->code != Code::Map) return false;
  switch (op->function) {
    case Function::Mul: return is(op->in[0]) || is(op->in[1]);
    case Function::Add:
    case Function::Sub:
    case Function::Rem: return is(op->in[0]) && is(op->in[1]);
    default: return false;
  }
}

/// Load in the loop that a value is the tile of: directly, transposed or without axes of extent 1.
Decision<OpId> loaded_from(const PlannedKernel& planned, const Operation& loop, ValueId id) {
  while (const Operation* op = planned.defining_op(id)) {
    if (!planned.is_defined_in(loop, id)) return DeclineReason{"it is computed before the loop"};
    if (op->code == Code::Vload) return *planned.definitions[id];
    const Extents &from = planned.type(op->in[0]).shape, &to = planned.type(id).shape;
    const bool turned = op->code == Code::Permute && from.size() == 2;
    // The rows of a box, flattened; or the last two axes, where the others have extent 1.
    const bool squeezed = op->code == Code::Reshape && to.size() >= 2 && from.size() > 2 &&
                          (to.back() == from.back() ||
                           (to.size() == 2 && std::equal(to.begin(), to.end(), from.end() - 2)));
    if (!turned && !squeezed) return DeclineReason{"it is computed"};
    if (planned.uses[id] != 1) return DeclineReason{"it has other uses"};
    id = op->in[0];
  }
  return DeclineReason{"it is carried by the loop"};
}

/// Whether an operand has the memory layout that 8-bit mma needs, since it cannot be transposed:
/// contiguous along k, with enough of k for an instruction.
bool runs_along_k(const PlannedKernel& planned, const Operation& dot, std::size_t side) {
  const std::size_t k = side == 0 ? 1 : 0;
  ValueId id = dot.in[side];
  if (planned.type(id).shape[k] < k_step(MatmulInstruction::Byte)) return false;
  bool turned = false;
  for (const Operation* op = planned.defining_op(id); op->code != Code::Vload;
       op = planned.defining_op(id)) {
    turned = turned != (op->code == Code::Permute && op->ints[0] == 1);
    id = op->in[0];
  }
  const Type& view = planned.type(planned.defining_op(id)->in[0]);
  return (contiguous_axis(view) == view.rank() - 1) == ((k == 1) != turned);
}

Decision<StagedOperand> staged_operand(const PlannedKernel& planned, const Operation& loop, OpId id,
                                       int reads) {
  const Operation& load = planned.kernel.ops[id];
  if (reads != planned.uses[load.out[0]]) return DeclineReason{"it has other uses"};
  if (planned.is_defined_in(loop, load.in[0]))
    return DeclineReason{"its view is defined in the loop"};
  const Decision<StagedOperand> found = staged_tile(planned, id);
  if (!found) return found;
  StagedOperand staged = *found;
  const Type& tile = planned.type(load.out[0]);
  const int width = byte_width(tile.dtype);
  for (std::size_t axis = 0; axis < tile.shape.size(); ++axis) {
    const LoopDependence dependence = loop_dependence(planned, loop, load.in[1 + axis]);
    if (dependence == LoopDependence::Unknown)
      return DeclineReason{"its addresses are not known in advance"};
    const auto gap = planned.bounds.gap(load, axis);
    staged.inside[axis] =
        gap && planned.bounds.not_negative(*gap) && planned.bounds.begins_inside(load, axis);
    // Alignment to 16 bytes is checked once, before the loop.
    if (axis == staged.column && dependence == LoopDependence::Known &&
        !is_multiple(planned, load.in[1 + axis], kChunk / width))
      return DeclineReason{"16-byte accesses may be unaligned in some iterations"};
  }
  return staged;
}

// A matmul whose accumulators are read only after the loop may overlap with the next iteration, if
// its operands stay in place for so long: in the stage buffers.
std::set<OpId> find_pending(const PlannedKernel& planned, const Operation& loop,
                            const LoopPipeline& pipeline) {
  std::set<OpId> found;
  const Region& body = loop.regions[0];
  const std::vector<ValueId>& yielded = yields(planned.kernel, body);
  const auto in_ring = [&](ValueId in) {
    const Decision<OpId> load = loaded_from(planned, loop, in);
    return load && std::any_of(pipeline.operands.begin(), pipeline.operands.end(),
                               [&](const StagedOperand& staged) { return staged.load == *load; });
  };
  for (const OpId id : body.ops) {
    const Operation& dot = planned.kernel.ops[id];
    if (dot.code != Code::Dot || !planned.plan.uses_wgmma(dot)) continue;
    for (std::size_t i = 0; i < yielded.size(); ++i) {
      const ValueId carried = body.params[i + 1];
      if (yielded[i] == dot.out[0] && dot.in[2] == carried && planned.uses[dot.out[0]] == 1 &&
          planned.uses[carried] == 1 && planned.type(dot.out[0]).dtype == DType::F32 &&
          in_ring(dot.in[0]) && in_ring(dot.in[1]) &&
          planned.home(loop.out[i]) == planned.home(dot.out[0]))
        found.insert(id);
    }
  }
  // wgmma groups complete in order, so waiting for one is waiting for all before it: several would
  // have to be counted separately.
  return found.size() == 1 ? found : std::set<OpId>{};
}

}  // namespace

Decision<StagedOperand> staged_tile(const PlannedKernel& planned, OpId id) {
  const Operation& load = planned.kernel.ops[id];
  const Type &view = planned.type(load.in[0]), &tile = planned.type(load.out[0]);
  const std::size_t rank = tile.shape.size();
  const int width = byte_width(tile.dtype);
  if (rank < 2) return DeclineReason{"it has one axis"};
  if (load.literal.number != 0 || std::signbit(load.literal.number) || load.literal.integer != 0)
    return DeclineReason{"its padding value is not 0"};
  StagedOperand staged{.load = id, .column = rank - 1};
  if (view.strides[staged.column] != 1) --staged.column;
  if (view.strides[staged.column] != 1) return DeclineReason{"no axis is known to be contiguous"};
  // The rows of a column-major matrix are one axis.
  const std::int64_t columns = tile.shape[staged.column], rows = tile.count() / columns;
  if (staged.column != rank - 1 && tile.shape.back() != rows)
    return DeclineReason{"it is column-major and has more than two axes"};
  constexpr std::int64_t kLeast = 16;
  if (rows < kLeast || columns < kLeast)
    return DeclineReason{"it has fewer than 16 rows or columns"};
  if (columns * width % kChunk != 0)
    return DeclineReason{"its rows are not a multiple of 16 bytes"};
  // Row numbers are concatenations of index bits: those of several axes follow each other without
  // gaps.
  std::int64_t held = 1;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (axis != staged.column) held *= held_extent(tile.shape[axis]);
  const bool one_axis = std::count(tile.shape.begin(), tile.shape.end(), rows) > 0;
  if (held != rows && !one_axis)
    return DeclineReason{"its rows span several axes whose extents are not powers of two"};
  staged.inside.resize(rank);
  staged.panels = {.column_axis = staged.column == rank - 1 ? 1 : 0,
                   .rows = held,
                   .columns = held_extent(columns),
                   .width = width};
  return staged;
}

LoopDependence loop_dependence(const PlannedKernel& planned, const Operation& loop, ValueId id) {
  const std::vector<ValueId>& params = loop.regions[0].params;
  if (id == params[0]) return LoopDependence::Linear;
  const Operation* op = planned.defining_op(id);
  if (op == nullptr) {
    const bool carried = std::find(params.begin(), params.end(), id) != params.end();
    return carried ? LoopDependence::Unknown : LoopDependence::Fixed;
  }
  if (!planned.is_defined_in(loop, id) || op->code == Code::Const) return LoopDependence::Fixed;
  if (!planned.type(id).is_scalar() ||
      (op->code != Code::Map && op->code != Code::Hint && op->code != Code::Cast))
    return LoopDependence::Unknown;
  LoopDependence dependence = LoopDependence::Fixed;
  int vary = 0;
  for (const ValueId in : op->in) {
    const LoopDependence of = loop_dependence(planned, loop, in);
    dependence = std::max(dependence, of);
    vary += of != LoopDependence::Fixed ? 1 : 0;
  }
  if (dependence != LoopDependence::Linear) return dependence;
  const bool sum =
      op->code == Code::Map && (op->function == Function::Add || op->function == Function::Sub);
  const bool multiple = op->code == Code::Map && op->function == Function::Mul && vary == 1;
  const bool same =
      op->code == Code::Hint || (op->code == Code::Cast && planned.type(id).dtype == DType::I64 &&
                                 planned.type(op->in[0]).dtype == DType::I32);
  return sum || multiple || same ? LoopDependence::Linear : LoopDependence::Known;
}

Decision<LoopPipeline> pipeline_of(const PlannedKernel& planned, const Operation& loop,
                                   int stages) {
  if (stages < 2) return DeclineReason{"shared memory has no room for two stages"};
  if (any_op(planned.kernel, loop, writes_memory)) return DeclineReason{"it stores to memory"};
  std::string why;
  const auto remember = [&](ValueId of, const std::string& reason) {
    const std::string& name = planned.kernel.values[of].name;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name.empty() ? "an operand" : name,
                       reason);
  };
  std::map<OpId, int> reads;  // by load: uses by matmuls
  for (const OpId id : loop.regions[0].ops) {
    const Operation& dot = planned.kernel.ops[id];
    if (dot.code != Code::Dot) continue;
    const MatmulInstruction instruction = planned.plan.instruction_of(dot);
    if (instruction == MatmulInstruction::Scalars) continue;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Decision<OpId> load = loaded_from(planned, loop, dot.in[side]);
      const bool fits =
          !load || instruction != MatmulInstruction::Byte || runs_along_k(planned, dot, side);
      if (load && fits) ++reads[*load];
      if (!fits) remember(dot.in[side], "8-bit operands are not contiguous along k");
      if (!load) remember(dot.in[side], load.why_not());
    }
  }
  LoopPipeline pipeline;
  for (const auto& [load, count] : reads) {
    const Decision<StagedOperand> staged = staged_operand(planned, loop, load, count);
    if (!staged) {
      remember(planned.kernel.ops[load].out[0], staged.why_not());
      continue;
    }
    pipeline.operands.push_back(*staged);
    pipeline.operands.back().offset = pipeline.bytes;
    pipeline.bytes += shared_room(staged->panels.bytes());
  }
  if (pipeline.operands.empty())
    return DeclineReason{why.empty() ? "it has no tensor-core matmul" : why};
  // One more stage is in use while a matmul overlaps with the next iteration.
  if (stages > 2) pipeline.pending = find_pending(planned, loop, pipeline);
  return pipeline;
}

std::pair<std::vector<StagedOperand>, std::vector<StagedOperand>> split_operands(
    const LoopPipeline& pipeline, const std::vector<OpId>& loads) {
  std::pair<std::vector<StagedOperand>, std::vector<StagedOperand>> parts;
  for (const StagedOperand& staged : pipeline.operands) {
    const bool is_one = std::ranges::find(loads, staged.load) != loads.end();
    (is_one ? parts.first : parts.second).push_back(staged);
  }
  return parts;
}

}  // namespace tessera::tile::gpu
