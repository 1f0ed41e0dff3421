#include "tessera/codegen/llvm/dot_amx.h"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "tessera/codegen/llvm/dot_amx_parts.h"

namespace tessera::codegen {
namespace {

using llvm::Value;
using namespace amx;

std::int64_t ceil_div(std::int64_t x, std::int64_t y) {
  return (x + y - 1) / y;
}

int k_of_tile(const Instruction& instruction) {
  return rows_of_tile * instruction.k_group;
}

/// Partition of scratch memory, in bytes.
struct Scratch {
  std::int64_t panels_a, tile, rest, panels_b;
};
Scratch scratch_of(const DotPlan& plan, const Instruction& instruction, std::int64_t packed_b) {
  const std::int64_t panels_b = plan.nc * plan.kc * byte_width(instruction.b);
  return {.panels_a = round_up(plan.mc * plan.kc * byte_width(instruction.a), 128),
          .tile = round_up(std::int64_t{plan.mr} * bytes_of_group, 128),
          .rest = rows_of_tile * bytes_of_group,
          .panels_b = packed_b != 0 ? 0 : round_up(panels_b, 128)};
}

}  // namespace

DotPlan plan_amx_dot(const DotShape& shape, const Instruction& instruction,
                     const machine::Machine& machine, std::int64_t packed_b) {
  const std::int64_t a_width = byte_width(instruction.a), b_width = byte_width(instruction.b);
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(shape.m, rows_of_tile));
  const std::int64_t height = std::max<std::int64_t>(1, ceil_div(shape.m, tiles));
  DotPlan plan{.mr = static_cast<int>(tiles == 1 ? height : 2 * height),
               .nr = 2 * columns_of_tile,
               .k_group = instruction.k_group};
  // Cache blocks are in L2, as for other dots. Panels need not be in L1: loading a tile takes half
  // of the time of multiplying it, and accumulators cost more than that.
  plan.kc = even_block(shape.k, machine.l1d * 7 / 4 / (plan.nr * b_width + plan.mr * a_width),
                       k_of_tile(instruction));
  plan.mc = even_block(shape.m, machine.l2 / 4 / (plan.kc * a_width), plan.mr);
  plan.nc = even_block(shape.n, 3 * machine.l2 / (plan.kc * b_width), plan.nr);
  const Scratch scratch = scratch_of(plan, instruction, packed_b);
  plan.scratch_bytes = scratch.panels_a + scratch.tile + scratch.rest + scratch.panels_b;
  return plan;
}

AmxLoops::AmxLoops(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
                   const DotArguments& in)
    : ir_(ir),
      call_(call),
      plan_(call.plan),
      in_(in),
      instruction_(instruction_for(call.shape, machine)),
      module_(*ir.GetInsertBlock()->getModule()),
      height_(call.shape.m <= rows_of_tile ? plan_.mr : plan_.mr / 2),
      chunk_(k_of_tile(instruction_)) {}

std::int64_t AmxLoops::epilogue_columns() const {
  const auto n = known(in_.n);
  const bool is_known = n && known(in_.m) && known(in_.k).value_or(0) > 0;
  if (!is_known || call_.accumulate || call_.shape.k > plan_.kc) return 0;
  return *n <= plan_.nc && *n % columns_of_tile == 0 ? *n : *n / plan_.nr * plan_.nr;
}

void AmxLoops::emit() {
  const Scratch scratch = scratch_of(plan_, instruction_, call_.b.panel);
  panels_a_ = in_.scratch;
  tile_ = bytes_at(panels_a_, constant(scratch.panels_a));
  rest_ = bytes_at(tile_, constant(scratch.tile));
  panels_b_ = bytes_at(rest_, constant(scratch.rest));
  // Blocks of an extent that is at most `most`: start and size of each.
  const auto blocks = [&](Value* extent, std::int64_t size, std::int64_t most,
                          llvm::function_ref<void(Value*, Value*)> body) {
    if (most <= size)
      return emit_if(ir_, ir_.CreateICmpSGT(extent, constant(0)),
                     [&] { body(constant(0), extent); });
    emit_for(ir_, constant(0), extent, size,
             [&](Value* first) { body(first, at_most(ir_.CreateSub(extent, first), size)); });
  };
  const auto each_panel = [&](PieceBody body) { each_piece(n_size_, columns_of_tile, 2, body); };
  configure(ir_, height_);
  // Where k is 0 the result is still stored.
  Value* k_end = call_.accumulate ? in_.k : at_least(in_.k, 1);
  blocks(k_end, plan_.kc, call_.shape.k, [&](Value* k, Value*) {
    k_ = k;
    k_size_ = ir_.CreateSub(in_.k, k);
    if (call_.shape.k > plan_.kc) k_size_ = at_most(k_size_, plan_.kc);
    k_padded_ = ir_.CreateAnd(ir_.CreateAdd(k_size_, constant(chunk_ - 1)), constant(-chunk_));
    accumulate_ = call_.accumulate ? ir_.getTrue() : ir_.CreateICmpNE(k, constant(0));
    blocks(in_.n, plan_.nc, call_.shape.n, [&](Value* n, Value* n_size) {
      n_ = n;
      n_size_ = n_size;
      if (call_.b.panel == 0) each_panel([&](const Piece& columns) { pack_columns_of_b(columns); });
      blocks(in_.m, plan_.mc, call_.shape.m, [&](Value* m, Value* m_size) {
        m_ = m;
        m_size_ = m_size;
        each_rows([&](const Piece& rows) { pack_rows_of_a(rows); });
        each_panel([&](const Piece& columns) {
          const PanelOfB b = panel_of_b(columns);
          each_rows([&](const Piece& rows) { multiply(rows, columns, b); });
        });
      });
    });
  });
  release(ir_);
}

Value* AmxLoops::constant(std::int64_t value) {
  return ir_.getInt64(static_cast<std::uint64_t>(value));
}

Value* AmxLoops::at_most(Value* value, std::int64_t most) {
  return ir_.CreateSelect(ir_.CreateICmpSLT(value, constant(most)), value, constant(most));
}

Value* AmxLoops::at_least(Value* value, std::int64_t least) {
  return ir_.CreateSelect(ir_.CreateICmpSGT(value, constant(least)), value, constant(least));
}

Value* AmxLoops::bytes_at(Value* base, Value* offset) {
  return ir_.CreateGEP(ir_.getInt8Ty(), base, offset);
}

/// Blocks of `tiles` tiles; then the rest, in as few tiles as possible.
void AmxLoops::each_piece(Value* extent, int tile, int tiles, PieceBody body) {
  Value* rest = ir_.CreateURem(extent, constant(tiles * tile));
  Value* whole = ir_.CreateSub(extent, rest);
  emit_for(ir_, constant(0), whole, tiles * tile, [&](Value* first) {
    body({first, constant(tiles * tile), tiles});
  });
  for (int count = 1; count <= tiles; ++count) {
    Value* fits = ir_.CreateAnd(ir_.CreateICmpSGT(rest, constant((count - 1) * tile)),
                                ir_.CreateICmpSLE(rest, constant(count * tile)));
    emit_if(ir_, fits, [&] { body({whole, rest, count}); });
  }
}

void AmxLoops::pack_rows_of_a(const Piece& rows) {
  llvm::Type* type = type_of(instruction_.a, ir_.getContext());
  const Packer::Unit side_by_side = packed_unit(in_.a_row, in_.a_column);
  for (int tile = 0; tile < rows.tiles; ++tile) {
    Value* first = ir_.CreateAdd(rows.first, constant(tile * height_));
    Value* live = at_most(ir_.CreateSub(rows.live, constant(tile * height_)), height_);
    Value* source = ir_.CreateGEP(type, in_.a,
                                  ir_.CreateAdd(ir_.CreateMul(ir_.CreateAdd(m_, first), in_.a_row),
                                                ir_.CreateMul(k_, in_.a_column)));
    Value* target = ir_.CreateGEP(type, panels_a_, ir_.CreateMul(first, k_padded_));
    if (side_by_side == Packer::Unit::K) {
      ir_.CreateCall(row_packer(module_, instruction_.a, height_),
                     {target, source, in_.a_row, live, k_size_});
      continue;
    }
    // A row of a tile is a group of k.
    llvm::Function* pack = packer(module_, {.from = instruction_.a,
                                            .to = instruction_.a,
                                            .lines = height_,
                                            .k_group = chunk_,
                                            .k_multiple = chunk_,
                                            .unit = side_by_side});
    ir_.CreateCall(pack, {target, source, in_.a_row, in_.a_column, live, k_size_});
  }
}

void AmxLoops::pack_columns_of_b(const Piece& columns) {
  llvm::Type* type = type_of(instruction_.b, ir_.getContext());
  const Packer::Unit side_by_side = packed_unit(in_.b_column, in_.b_row);
  Value* source =
      ir_.CreateGEP(type, in_.b,
                    ir_.CreateAdd(ir_.CreateMul(k_, in_.b_row),
                                  ir_.CreateMul(ir_.CreateAdd(n_, columns.first), in_.b_column)));
  Value* panel = ir_.CreateGEP(type, panels_b_, ir_.CreateMul(columns.first, k_padded_));
  if (side_by_side == Packer::Unit::Lines) {
    ir_.CreateCall(column_packer(module_, instruction_.b, instruction_.k_group),
                   {panel, source, in_.b_row, columns.live, k_size_});
    return;
  }
  llvm::Function* pack = packer(module_, {.from = instruction_.b,
                                          .to = instruction_.b,
                                          .lines = plan_.nr,
                                          .k_group = instruction_.k_group,
                                          .k_multiple = chunk_,
                                          .unit = side_by_side});
  ir_.CreateCall(pack, {panel, source, in_.b_column, in_.b_row, columns.live, k_size_});
}

AmxLoops::PanelOfB AmxLoops::panel_of_b(const Piece& columns) {
  llvm::Type* type = type_of(instruction_.b, ir_.getContext());
  Value* none = llvm::ConstantPointerNull::get(ir_.getPtrTy());
  const std::int64_t width = call_.b.panel;
  if (width == 0)
    return {ir_.CreateGEP(type, panels_b_, ir_.CreateMul(columns.first, k_padded_)),
            constant(bytes_of_group), none};
  Value* from = ir_.CreateAdd(n_, columns.first);
  Value* within = ir_.CreateURem(from, constant(width));
  Value* offset =
      ir_.CreateAdd(ir_.CreateMul(ir_.CreateUDiv(from, constant(width)), in_.b_panel_stride),
                    ir_.CreateAdd(ir_.CreateMul(k_, constant(width)),
                                  ir_.CreateMul(within, constant(instruction_.k_group))));
  Value* stride = constant(width * instruction_.k_group * byte_width(instruction_.b));
  PanelOfB panel{ir_.CreateGEP(type, in_.b, offset), stride, none};
  // A prepacked panel ends with the last group of k.
  Value* whole = ir_.CreateUDiv(k_size_, constant(chunk_));
  Value* groups = ir_.CreateUDiv(
      ir_.CreateAdd(ir_.CreateURem(k_size_, constant(chunk_)), constant(instruction_.k_group - 1)),
      constant(instruction_.k_group));
  Value* has_rest = ir_.CreateICmpNE(groups, constant(0));
  emit_if(ir_, has_rest, [&] {
    Value* last =
        bytes_at(panel.base, ir_.CreateMul(ir_.CreateMul(whole, constant(rows_of_tile)), stride));
    ir_.CreateCall(rest_packer(module_), {rest_, last, stride, groups});
  });
  panel.rest = ir_.CreateSelect(has_rest, rest_, none);
  return panel;
}

void AmxLoops::multiply(const Piece& rows, const Piece& columns, const PanelOfB& b) {
  llvm::Type* a_type = type_of(instruction_.a, ir_.getContext());
  llvm::Type* c_type = type_of(instruction_.c, ir_.getContext());
  const auto live = known(columns.live);
  const bool finishes = call_.epilogue != nullptr && live && *live % columns_of_tile == 0;
  Value* is_whole =
      ir_.CreateAnd(ir_.CreateICmpEQ(rows.live, constant(rows.tiles * height_)),
                    ir_.CreateICmpEQ(columns.live, constant(columns.tiles * columns_of_tile)));
  if (finishes) is_whole = ir_.getFalse();
  Value* c = ir_.CreateGEP(c_type, in_.c,
                           ir_.CreateAdd(ir_.CreateMul(ir_.CreateAdd(m_, rows.first), in_.c_row),
                                         ir_.CreateAdd(n_, columns.first)));
  Value* c_stride = ir_.CreateMul(in_.c_row, constant(byte_width(instruction_.c)));
  Value* tiles = ir_.CreateUDiv(call_.b.panel == 0 ? k_padded_ : k_size_, constant(chunk_));
  Value* a_next = ir_.CreateMul(k_padded_, constant(height_ * byte_width(instruction_.a)));
  llvm::Function* micro = kernel(module_, {.instruction = instruction_.name,
                                           .rows = rows.tiles,
                                           .columns = columns.tiles,
                                           .height = height_});
  ir_.CreateCall(
      micro, {tiles, ir_.CreateGEP(a_type, panels_a_, ir_.CreateMul(rows.first, k_padded_)), a_next,
              b.base, b.stride, b.rest, ir_.CreateSelect(is_whole, c, tile_),
              ir_.CreateSelect(is_whole, c_stride, constant(bytes_of_group)),
              ir_.CreateAnd(is_whole, accumulate_)});
  if (finishes) return finish(rows, columns);
  emit_if(ir_, ir_.CreateNot(is_whole), [&] {
    ir_.CreateCall(tile_merger(module_, instruction_.c, plan_.nr),
                   {c, in_.c_row, tile_, rows.live, columns.live, accumulate_, c, in_.c_row});
  });
}

/// Epilogue, row by row from scratch memory: tile registers can only be stored.
void AmxLoops::finish(const Piece& rows, const Piece& columns) {
  const int together = known(rows.live).value_or(1) % 4 == 0 ? 4 : 1;
  auto* type =
      llvm::FixedVectorType::get(type_of(instruction_.c, ir_.getContext()), columns_of_tile);
  const auto vectors = static_cast<int>(*known(columns.live) / columns_of_tile);
  emit_for(ir_, constant(0), rows.live, together, [&](Value* row) {
    Values sums;
    for (int r = 0; r < together; ++r)
      for (int v = 0; v < vectors; ++v) {
        Value* at = ir_.CreateAdd(ir_.CreateMul(row, constant(bytes_of_group)),
                                  constant(r * bytes_of_group + v * bytes_of_row));
        sums.push_back(ir_.CreateAlignedLoad(type, bytes_at(tile_, at), llvm::Align(64)));
      }
    const DotPart part{ir_.CreateAdd(ir_.CreateAdd(m_, rows.first), row),
                       ir_.CreateAdd(n_, columns.first), together, vectors};
    call_.epilogue->finish(part, sums, /*started=*/false);
  });
}

}  // namespace tessera::codegen
