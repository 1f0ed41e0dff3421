#include "tessera/codegen/llvm/dot.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tessera/codegen/llvm/dot_amx.h"
#include "tessera/codegen/llvm/dot_choices.h"
#include "tessera/codegen/llvm/dot_parts.h"
#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

using llvm::Value;

/// GEMM loops around the micro-kernels, as in: K. Goto, R. van de Geijn, "Anatomy of
/// High-Performance Matrix Multiplication", 2008, section 4. Blocks of k, of n (b packed), of m (a
/// packed); then panels of b, which stay in L1, and of a. Where all of b fits into L1, the panels
/// of a are the outer loop.
class Loops {
 public:
  Loops(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
        DotArguments in)
      : ir_(ir),
        call_(call),
        plan_(call.plan),
        machine_(machine),
        in_(in),
        how_(ir, call, machine, in),
        instruction_(how_.instruction),
        module_(*ir.GetInsertBlock()->getModule()) {
    llvm::LLVMContext& context = ir.getContext();
    a_from_ = type_of(call.shape.a, context);
    b_from_ = type_of(call.shape.b, context);
    a_type_ = type_of(instruction_.a, context);
    b_type_ = type_of(instruction_.b, context);
    c_type_ = type_of(instruction_.c, context);
  }

  /// As in GemmChoices.
  std::int64_t epilogue_columns() const { return how_.epilogue_columns; }

  void emit() {
    Value* a_bytes = constant(round_up(
        plan_.mc * round_up(plan_.kc, plan_.k_group * kMaxUnroll) * byte_width(instruction_.a),
        128));
    panels_a_ = in_.scratch;
    tile_ = ir_.CreateGEP(ir_.getInt8Ty(), in_.scratch, a_bytes);
    panels_b_ = ir_.CreateGEP(
        ir_.getInt8Ty(), tile_,
        constant(round_up(std::int64_t{plan_.mr} * plan_.nr * byte_width(instruction_.c), 128)));
    // The result is stored for an empty k, too.
    Value* k_end = call_.accumulate ? in_.k : maximum(in_.k, constant(1));
    block(k_end, how_.kc, call_.shape.k, [&](Value* k) {
      k_ = k;
      k_size_ = minimum(ir_.CreateSub(in_.k, k), how_.kc, call_.shape.k);
      k_padded_ = padded(k_size_, how_.pad_k);
      groups_ = ir_.CreateUDiv(k_padded_, constant(plan_.k_group));
      accumulate_ = call_.adds != nullptr ? in_.adds
                    : how_.accumulate     ? ir_.getInt1(*how_.accumulate)
                                          : ir_.CreateICmpNE(k, constant(0));
      block(in_.n, how_.nc, call_.shape.n, [&](Value* n) {
        n_ = n;
        n_size_ = minimum(ir_.CreateSub(in_.n, n), how_.nc, call_.shape.n);
        n_whole_ = ir_.CreateSub(n_size_, ir_.CreateURem(n_size_, constant(plan_.nr)));
        pack_block_of_b();
        block(in_.m, plan_.mc, call_.shape.m, [&](Value* m) {
          m_ = m;
          m_size_ = minimum(ir_.CreateSub(in_.m, m), plan_.mc, call_.shape.m);
          if (how_.rows_outer) return each_rows([&](const Rows& rows) { all_columns(rows); });
          if (how_.pack_a) each_rows([&](const Rows& rows) { pack_rows_of_a(rows); });
          each_panel([&](Value* column, const GemmChoices::Columns& columns) {
            const PanelOfB b = panel_of_b(column, columns);
            each_rows([&](const Rows& rows) {
              if (how_.prefetch_b) prefetch(b, rows);
              tile(b, column, columns, rows);
            });
          });
        });
      });
    });
  }

 private:
  /// Rows of a panel of a: `live` of them exist.
  struct Rows {
    Value* first;
    int rows, live;
  };

  Value* constant(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }
  Value* padded(Value* value, std::int64_t multiple) {
    return ir_.CreateAnd(ir_.CreateAdd(value, constant(multiple - 1)), constant(-multiple));
  }
  Value* maximum(Value* x, Value* y) { return ir_.CreateSelect(ir_.CreateICmpSGT(x, y), x, y); }
  /// Size of the current block: the minimum of the rest and a block; the rest, where there is only
  /// one block.
  Value* minimum(Value* left, std::int64_t size, std::int64_t most) {
    if (most <= size) return left;
    return ir_.CreateSelect(ir_.CreateICmpSLT(left, constant(size)), left, constant(size));
  }
  Value* at(llvm::Type* type, Value* base, Value* offset) {
    return ir_.CreateGEP(type, base, offset);
  }

  /// Blocks of an extent that is at most `most`.
  void block(Value* extent, std::int64_t size, std::int64_t most,
             llvm::function_ref<void(Value*)> body) {
    if (most <= size) {
      emit_if(ir_, ir_.CreateICmpSGT(extent, constant(0)), [&] { body(constant(0)); });
    } else {
      emit_for(ir_, constant(0), extent, size, body);
    }
  }

  void each_tail(llvm::function_ref<void(const GemmChoices::Columns&)> body) {
    Value* live = ir_.CreateSub(n_size_, n_whole_);
    Value* is_exact = how_.exact.columns == 0
                          ? ir_.getFalse()
                          : ir_.CreateICmpEQ(live, constant(how_.exact.columns));
    emit_if(ir_, is_exact, [&] { body(how_.exact); });
    if (how_.padded.columns == 0) return;
    emit_if(ir_, ir_.CreateAnd(ir_.CreateICmpSGT(live, constant(0)), ir_.CreateNot(is_exact)),
            [&] { body(how_.padded); });
  }

  /// Row panels of a block: full height first, then of 4 rows, then single rows (or pairs, and half
  /// a pair).
  void each_rows(llvm::function_ref<void(const Rows&)> body) {
    if (how_.even) return each_even_rows(body);
    const int unit = row_unit(instruction_);
    Value* first = constant(0);
    Value* rest = m_size_;
    std::int64_t most = std::min(plan_.mc, call_.shape.m);
    // Remainder of the largest extent, where that is a good part of a panel.
    const auto left = static_cast<int>(call_.shape.m % plan_.mr);
    const bool is_much = loads_spread(machine_) && left > 4 && call_.shape.m < 16 * plan_.mr;
    const int some = is_much ? left : 4;
    for (const int rows : {plan_.mr, some, unit}) {
      if (most < rows) continue;
      Value* next_rest = ir_.CreateURem(rest, constant(rows));
      Value* last = ir_.CreateSub(m_size_, next_rest);
      emit_for(ir_, first, last, rows, [&](Value* row) { body({row, rows, rows}); });
      first = last;
      rest = next_rest;
      most = how_.rest_rows < 0 ? rows - 1 : how_.rest_rows % rows;
    }
    if (most > 0)
      emit_if(ir_, ir_.CreateICmpNE(rest, constant(0)), [&] { body({first, unit, 1}); });
  }

  void each_even_rows(llvm::function_ref<void(const Rows&)> body) {
    Value* tall_end = constant(how_.even->in_tall);
    if (call_.shape.m > plan_.mc) {
      Value* is_last = ir_.CreateICmpSGE(ir_.CreateAdd(m_, constant(plan_.mc)), in_.m);
      tall_end = ir_.CreateSelect(is_last, tall_end, m_size_);
    }
    const int rows = how_.even->rows;
    emit_for(ir_, constant(0), tall_end, rows, [&](Value* row) { body({row, rows, rows}); });
    emit_for(ir_, tall_end, m_size_, rows - 1, [&](Value* row) {
      body({row, rows - 1, rows - 1});
    });
  }

  Value* panel_of_a(Value* row) {
    if (how_.pack_a) return at(a_type_, panels_a_, ir_.CreateMul(row, k_padded_));
    return source_of_a(row);
  }
  Value* source_of_a(Value* row) {
    Value* offset = ir_.CreateAdd(ir_.CreateMul(ir_.CreateAdd(m_, row), in_.a_row),
                                  ir_.CreateMul(k_, in_.a_column));
    return at(a_from_, in_.a, offset);
  }
  Value* source_of_b(Value* column) {
    Value* offset = ir_.CreateAdd(ir_.CreateMul(k_, in_.b_row),
                                  ir_.CreateMul(ir_.CreateAdd(n_, column), in_.b_column));
    return at(b_from_, in_.b, offset);
  }

  void pack_rows_of_a(const Rows& rows) {
    llvm::Function* pack = packer(module_, {.from = call_.shape.a,
                                            .to = instruction_.a,
                                            .lines = rows.rows,
                                            .k_group = plan_.k_group,
                                            .k_multiple = how_.pad_k,
                                            .unit = packed_unit(in_.a_row, in_.a_column),
                                            .vector_bytes = machine_.vector_bytes,
                                            .offset = instruction_.offset_a,
                                            .all_lines = rows.rows == rows.live,
                                            .whole_k = how_.whole_k});
    ir_.CreateCall(pack, {panel_of_a(rows.first), source_of_a(rows.first), in_.a_row, in_.a_column,
                          constant(rows.live), k_size_});
  }

  /// Packs `k_size` k's of b from some k of the block on.
  void pack_columns_of_b(Value* column, const GemmChoices::Columns& columns, Value* k,
                         Value* k_size) {
    llvm::Function* pack = packer(module_, {.from = call_.shape.b,
                                            .to = instruction_.b,
                                            .lines = columns.columns,
                                            .k_group = plan_.k_group,
                                            .k_multiple = how_.pad_k,
                                            .unit = packed_unit(in_.b_column, in_.b_row),
                                            .vector_bytes = machine_.vector_bytes,
                                            .all_lines = columns.exact,
                                            .whole_k = how_.whole_k});
    Value* panel = at(b_type_, panels_b_,
                      ir_.CreateAdd(ir_.CreateMul(column, k_padded_),
                                    ir_.CreateMul(k, constant(columns.columns))));
    Value* source = at(b_from_, source_of_b(column), ir_.CreateMul(k, in_.b_row));
    Value* live = columns.exact ? constant(columns.columns) : ir_.CreateSub(n_size_, column);
    ir_.CreateCall(pack, {panel, source, in_.b_column, in_.b_row, live, k_size});
  }

  /// Missing columns are zeros in the panel, so the last one is always packed.
  Value* packs(const GemmChoices::Columns& columns) {
    return columns.exact || call_.b.panel != 0 ? how_.pack_b : ir_.getTrue();
  }

  void pack_block_of_b() {
    emit_if(ir_, how_.pack_b, [&] {
      // Copies a few rows at a time, so that cache lines and pages that panels share are still
      // cached.
      const bool by_rows = packed_unit(in_.b_column, in_.b_row) == Packer::Unit::Lines;
      const std::int64_t strip = by_rows ? round_up(16, how_.pad_k) : how_.kc;
      block(k_size_, strip, std::min(how_.kc, call_.shape.k), [&](Value* k) {
        Value* size = minimum(ir_.CreateSub(k_size_, k), strip, std::min(how_.kc, call_.shape.k));
        emit_for(ir_, constant(0), n_whole_, plan_.nr,
                 [&](Value* column) { pack_columns_of_b(column, {plan_.nr}, k, size); });
      });
    });
    if (call_.b.panel != 0) return;
    each_tail([&](const GemmChoices::Columns& tail) {
      emit_if(ir_, packs(tail), [&] { pack_columns_of_b(n_whole_, tail, constant(0), k_size_); });
    });
  }

  struct PanelOfB {
    Value *base, *stride;  // elements between groups of k
  };
  PanelOfB panel_of_b(Value* column, const GemmChoices::Columns& columns) {
    if (const std::int64_t width = call_.b.panel; width != 0) {
      Value* from = ir_.CreateAdd(n_, column);
      Value* index = ir_.CreateUDiv(from, constant(width));
      Value* within = ir_.CreateSub(from, ir_.CreateMul(index, constant(width)));
      Value* offset = ir_.CreateAdd(ir_.CreateMul(index, in_.b_panel_stride),
                                    ir_.CreateAdd(ir_.CreateMul(k_, constant(width)),
                                                  ir_.CreateMul(within, constant(plan_.k_group))));
      return {at(b_type_, in_.b, offset), constant(width * plan_.k_group)};
    }
    Value* packed = packs(columns);
    Value* panel = at(b_type_, panels_b_, ir_.CreateMul(column, k_padded_));
    Value* stride = constant(std::int64_t{columns.columns} * plan_.k_group);
    if (is_true(packed)) return {panel, stride};
    return {ir_.CreateSelect(packed, panel, source_of_b(column)),
            ir_.CreateSelect(packed, stride, in_.b_row)};
  }

  Value* next_panel(const PanelOfB& b) {
    Value* panel = ir_.CreateMul(k_padded_, constant(plan_.nr));
    return at(b_type_, b.base, call_.b.panel != 0 ? in_.b_panel_stride : panel);
  }

  /// Prefetches a part of the next panel of b into L2, beside the work on some rows of this one. In
  /// the micro-kernels of AArch64 each prefetch would cost more than a cycle.
  void prefetch(const PanelOfB& b, const Rows& rows) {
    Value* bytes = ir_.CreateMul(k_padded_, constant(plan_.nr * byte_width(instruction_.b)));
    Value* panels = ir_.CreateAdd(ir_.CreateUDiv(m_size_, constant(plan_.mr)), constant(1));
    Value* part = padded(ir_.CreateUDiv(bytes, panels), kCacheLine);
    Value* first = ir_.CreateMul(part, ir_.CreateUDiv(rows.first, constant(plan_.mr)));
    Value* next = next_panel(b);
    emit_for(ir_, first, ir_.CreateAdd(first, part), kCacheLine, [&](Value* offset) {
      emit_prefetch(ir_, at(ir_.getInt8Ty(), next, offset), {.level = 2});
    });
  }

  /// Part of the next panel that the micro-kernel for these rows prefetches, where it has issue
  /// slots to spare; the last part covers the rest of the panel.
  Value* ahead(const PanelOfB& b, const Rows& rows) {
    const std::int64_t last = (how_.panel_lines * kMaxUnroll - 1) / how_.ahead;
    Value* part = ir_.CreateUDiv(rows.first, constant(plan_.mr));
    part = ir_.CreateSelect(ir_.CreateICmpULT(part, constant(last)), part, constant(last));
    return at(ir_.getInt8Ty(), next_panel(b),
              ir_.CreateMul(ir_.CreateMul(part, groups_),
                            constant(how_.ahead * kCacheLine / kMaxUnroll)));
  }

  void each_panel(llvm::function_ref<void(Value*, const GemmChoices::Columns&)> body) {
    emit_for(ir_, constant(0), n_whole_, plan_.nr,
             [&](Value* column) { body(column, {plan_.nr}); });
    each_tail([&](const GemmChoices::Columns& tail) { body(n_whole_, tail); });
  }

  /// Some rows of the block of a times all panels of b.
  void all_columns(const Rows& rows) {
    if (how_.pack_a) pack_rows_of_a(rows);
    each_panel([&](Value* column, const GemmChoices::Columns& columns) {
      tile(panel_of_b(column, columns), column, columns, rows);
    });
  }

  /// Some rows of the block of a times one panel of b.
  void tile(const PanelOfB& b, Value* column, const GemmChoices::Columns& columns,
            const Rows& rows) {
    const bool direct = columns.exact && rows.live == rows.rows;
    const int registers =
        rows.rows / row_unit(instruction_) *
        (columns.columns / (instruction_.form == Instruction::Form::Blocks ? 2 : how_.lanes));
    const int most = machine_.vector_registers * 3 / 4 / registers;
    const MicroKernel kernel{
        .instruction = instruction_,
        .vector_bytes = machine_.vector_bytes,
        .broadcast_loads = loads_spread(machine_),
        .rows = rows.rows,
        .columns = columns.columns,
        .unroll = kMaxUnroll,
        .splits = std::clamp<int>(
            static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(most, 1)))), 1,
            kMaxUnroll),
        .whole_unrolls = how_.whole_unrolls,
        .trip_count = how_.trip_count,
        .a = how_.a,
        .next_lines = columns.columns == plan_.nr || known(column) == 0 ? how_.next_lines : 0,
        .b_stride = loads_spread(machine_) && (call_.b.panel != 0 || is_true(how_.pack_b))
                        ? static_cast<int>(known(b.stride).value_or(0))
                        : 0,
        .later_b = how_.far_rows_of_b && rows.rows > 1 ? 16 : 0,
        .far_c = how_.far_c && rows.rows > 1,
        .apart = call_.from != nullptr,
        .ahead = how_.ahead,
        .accumulate =
            how_.partial_tiles && how_.accumulate == true ? std::nullopt : how_.accumulate};
    Value* c_offset = ir_.CreateAdd(ir_.CreateMul(ir_.CreateAdd(m_, rows.first), in_.c_row),
                                    ir_.CreateAdd(n_, column));
    Value* c = at(c_type_, in_.c, c_offset);
    Value *from = c, *from_row = in_.c_row;
    if (call_.from != nullptr) {
      from_row = in_.from_row;
      from = at(c_type_, in_.from,
                ir_.CreateAdd(ir_.CreateMul(ir_.CreateAdd(m_, rows.first), from_row),
                              ir_.CreateAdd(n_, column)));
    }
    Value* target = direct ? c : tile_;
    Value* target_row = direct ? in_.c_row : constant(columns.columns);
    const MicroOperands operands{
        .groups = groups_,
        .a = panel_of_a(rows.first),
        .a_stride = how_.a == MicroKernel::A::Columns ? in_.a_column : in_.a_row,
        .b = b.base,
        .b_stride = b.stride,
        .c = target,
        .c_stride = target_row,
        .accumulate = direct ? accumulate_ : ir_.getFalse(),
        .ahead = how_.ahead > 0 ? ahead(b, rows) : b.base,
        .from = from,
        .from_stride = from_row};
    if (call_.epilogue != nullptr && direct) {
      const DotPart part{ir_.CreateAdd(m_, rows.first), ir_.CreateAdd(n_, column), rows.rows,
                         columns.columns / how_.lanes};
      std::vector<Value*> start;
      if (instruction_.form == Instruction::Form::Lanes) start = call_.epilogue->start(part);
      const Values sums = emit_micro_kernel(ir_, kernel, operands, start);
      call_.epilogue->finish(part, sums, !start.empty());
      return;
    }
    llvm::SmallVector<Value*, 11> arguments = {
        operands.groups, operands.a,        operands.a_stride,   operands.b,    operands.b_stride,
        operands.c,      operands.c_stride, operands.accumulate, operands.ahead};
    if (kernel.apart) arguments.append({direct ? from : target, direct ? from_row : target_row});
    ir_.CreateCall(micro_kernel(module_, kernel), arguments);
    if (direct) return;
    llvm::Function* merge = tile_merger(module_, instruction_.c, columns.columns);
    Value* live_columns =
        columns.exact ? constant(columns.columns) : ir_.CreateSub(n_size_, column);
    ir_.CreateCall(merge, {c, in_.c_row, tile_, constant(rows.live), live_columns, accumulate_,
                           from, from_row});
  }

  llvm::IRBuilder<>& ir_;
  const DotCall& call_;
  const DotPlan& plan_;
  const machine::Machine& machine_;
  DotArguments in_;
  const GemmChoices how_;
  const Instruction instruction_;
  llvm::Module& module_;
  llvm::Type *a_from_, *b_from_, *a_type_, *b_type_, *c_type_;

  // Current block of the loops that are being emitted: start and size.
  Value *k_ = nullptr, *k_size_ = nullptr, *k_padded_ = nullptr, *groups_ = nullptr;
  Value *n_ = nullptr, *n_size_ = nullptr, *n_whole_ = nullptr;
  Value *m_ = nullptr, *m_size_ = nullptr;
  Value *accumulate_ = nullptr, *panels_a_ = nullptr, *panels_b_ = nullptr, *tile_ = nullptr;
};

}  // namespace

std::int64_t emit_dot(llvm::IRBuilder<>& ir, const DotCall& asked,
                      const machine::Machine& machine) {
  DotCall call = asked;
  const DotPlan& plan = call.plan;
  TESSERA_CHECK(call.a.panel == 0, "only b comes packed");
  TESSERA_CHECK(call.b.panel % plan.nr == 0, "panels of {} columns cut into tiles of {}",
                call.b.panel, plan.nr);
  Value* none = ir.getInt64(0);
  const auto or_none = [&](Value* value) { return value == nullptr ? none : value; };
  DotArguments in{.m = call.extents.m,
                  .n = call.extents.n,
                  .k = call.extents.k,
                  .a = call.a.base,
                  .a_row = call.a.row_stride,
                  .a_column = call.a.column_stride,
                  .b = call.b.base,
                  .b_row = or_none(call.b.row_stride),
                  .b_column = or_none(call.b.column_stride),
                  .b_panel_stride = or_none(call.b.panel_stride),
                  .c = call.c,
                  .c_row = call.c_row_stride,
                  .from = or_none(call.from),
                  .from_row = or_none(call.from_row_stride),
                  .adds = call.adds == nullptr ? ir.getTrue() : call.adds,
                  .scratch = call.scratch};

  const bool tiles = instruction_for(call.shape, machine).form == Instruction::Form::Tiles;
  if (call.epilogue != nullptr) {
    const auto finished = [](auto loops) {
      const std::int64_t columns = loops.epilogue_columns();
      if (columns > 0) loops.emit();
      return columns;
    };
    const std::int64_t columns =
        tiles ? finished(AmxLoops(ir, call, machine, in)) : finished(Loops(ir, call, machine, in));
    if (columns > 0) return columns;
    call.epilogue = nullptr;
  }
  // One function shared by all equal dots; constants are specialized, the rest are parameters.
  std::string name =
      fmt::format("dot.{}{}{}.{}x{}x{}.{}x{}g{}.{}x{}x{}.{}{}{}b{}", to_string(call.shape.a),
                  to_string(call.shape.b), to_string(call.shape.c), call.shape.m, call.shape.n,
                  call.shape.k, plan.mr, plan.nr, plan.k_group, plan.mc, plan.nc, plan.kc,
                  plan.pack_a ? "a" : "", plan.pack_b ? "b" : "",
                  call.adds != nullptr   ? "?"
                  : call.from != nullptr ? "f"
                  : call.accumulate      ? "+"
                                         : "",
                  call.b.panel);
  std::vector<llvm::Type*> types;
  std::vector<Value*> values;
  for (Value** value : in.all()) {
    if (const auto constant = llvm::isa<llvm::ConstantInt>(*value) ? known(*value) : std::nullopt) {
      name += fmt::format(".{}", *constant);
    } else {
      name += "._";
      types.push_back((*value)->getType());
      values.push_back(*value);
    }
  }
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  llvm::Function* loops =
      shared_function(module, name, types, [&](llvm::IRBuilder<>& body, llvm::Function& function) {
        unsigned next = 0;
        for (Value** value : in.all())
          if (!llvm::isa<llvm::ConstantInt>(*value)) *value = function.getArg(next++);
        if (tiles)
          AmxLoops(body, call, machine, in).emit();
        else
          Loops(body, call, machine, in).emit();
      });
  ir.CreateCall(loops, values);
  return 0;
}

}  // namespace tessera::codegen
