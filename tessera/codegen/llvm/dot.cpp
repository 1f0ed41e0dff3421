#include "tessera/codegen/llvm/dot.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tessera/codegen/llvm/dot_amx.h"
#include "tessera/codegen/llvm/dot_parts.h"
#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

using llvm::Value;

bool is_true(Value* value) {
  return known(value).value_or(0) != 0;
}

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
        instruction_(instruction_for(call.shape, machine)),
        module_(*ir.GetInsertBlock()->getModule()) {
    llvm::LLVMContext& context = ir.getContext();
    a_from_ = type_of(call.shape.a, context);
    b_from_ = type_of(call.shape.b, context);
    a_type_ = type_of(instruction_.a, context);
    b_type_ = type_of(instruction_.b, context);
    c_type_ = type_of(instruction_.c, context);
    lanes_ = machine.vector_bytes / byte_width(instruction_.c);
    kc_ = plan_.kc;
    nc_ = plan_.nc;
    const bool plain = instruction_.k_group == 1 && instruction_.form == Instruction::Form::Lanes;
    const bool as_it_lies = plain && call.shape.a == instruction_.a;
    if (as_it_lies && known(in.a_row) == 1 && known(in.a_column) != 1 &&
        call.shape.m * call.shape.k * byte_width(call.shape.a) <= machine.l1d / 2)
      a_ = MicroKernel::A::Columns;
    if (as_it_lies && known(in.a_column) == 1 && !plan_.pack_a) a_ = MicroKernel::A::Rows;
    pack_a_ = a_ == MicroKernel::A::Panel;
    pack_b_ = ir.getInt1(call.b.panel == 0);
    if (call.b.panel == 0 && !plan_.pack_b && plain && call.shape.b == instruction_.b &&
        known(in.b_column) == 1) {
      // Rows at distances that are a multiple of a large power of 2 would evict each other from L1,
      // whose sets are indexed by the low bits of an address.
      const std::int64_t bytes = near_bytes(machine);
      Value* power = ir.CreateAnd(in.b_row, ir.CreateNeg(in.b_row));
      pack_b_ = call.shape.m == 1 ? ir.getFalse()
                                  : ir.CreateICmpSGT(power, constant(bytes / column_bytes_of_b()));
    }
    if (call.b.panel == 0 && call.shape.m == 1 && !is_true(pack_b_)) {
      // One row: b is read by its rows, a few at a time, while c stays in L1.
      kc_ = 2 * kMaxUnroll;
      nc_ = round_up(std::max<std::int64_t>(call.shape.n, 1), plan_.nr);
    }
    const bool both = pack_a_ && is_true(pack_b_);
    const std::int64_t turn = plan_.k_group * kMaxUnroll;
    const auto k_is_multiple_of = [&](std::int64_t unit) {
      const auto k = known(in_.k);
      return k && *k % unit == 0 && (*k <= kc_ || kc_ % unit == 0);
    };
    pad_k_ = static_cast<int>(both ? turn : plan_.k_group);
    whole_unrolls_ = both || k_is_multiple_of(turn);
    whole_k_ = k_is_multiple_of(std::max<std::int64_t>(16, pad_k_));
    if (const auto k = known(in_.k); k && turn <= *k && *k <= kc_)
      trip_count_ = TripCount::AtLeastOne;
    if (call.adds == nullptr && (call.accumulate || call.shape.k <= kc_))
      accumulate_known_ = call.accumulate;
    if (const auto m = known(in.m)) {
      rest_rows_ = *m % plan_.mr;
      choose_rows(*m);
    }
    const std::int64_t bytes_of_b = std::min(nc_, call.shape.n) * column_bytes_of_b();
    rows_outer_ = bytes_of_b <= machine.l1d / 2;
    const bool far_b = call.b.panel != 0 ? !rows_outer_ : bytes_of_b > machine.l2;
    if (loads_spread(machine_) && far_b && call.shape.m > 1)
      ahead_ = static_cast<int>((panel_lines() + row_panels() - 1) / row_panels());
    // With few rows, each of them would issue a long burst of prefetches, which stalls.
    prefetch_b_ = !loads_spread(machine_) && far_b && call.shape.m >= 16 * plan_.mr;
    if (!loads_spread(machine_) && call.shape.m > 1) {
      const std::int64_t bytes = std::min(call.shape.k, kc_) * byte_width(instruction_.a);
      if (a_ == MicroKernel::A::Rows && call.shape.m > plan_.mr && bytes <= 4 * line)
        next_lines_ = static_cast<int>(bytes / line);
      far_rows_of_b_ = call.b.panel == 0 && known(pack_b_) == 0 && a_ == MicroKernel::A::Columns;
    }
    far_c_ = call.shape.m * call.shape.n * byte_width(instruction_.c) > machine.l1d;
    choose_tails();
    tiles_ = padded_.columns != 0 || rest_rows_ % row_unit(instruction_) != 0;
  }

  /// Columns that the epilogue can process: whole vectors only, where one block covers all of k and
  /// no row is half of a pair.
  std::int64_t epilogue_columns() const {
    const auto n = known(in_.n);
    const bool is_known = n && known(in_.m) && known(in_.k).value_or(0) > 0;
    if (!is_known || call_.accumulate || call_.shape.k > kc_) return 0;
    if (rest_rows_ % row_unit(instruction_) != 0) return 0;
    return padded_.columns == 0 ? *n : *n / plan_.nr * plan_.nr;
  }

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
    block(k_end, kc_, call_.shape.k, [&](Value* k) {
      k_ = k;
      k_size_ = minimum(ir_.CreateSub(in_.k, k), kc_, call_.shape.k);
      k_padded_ = padded(k_size_, pad_k_);
      groups_ = ir_.CreateUDiv(k_padded_, constant(plan_.k_group));
      accumulate_ = call_.adds != nullptr ? in_.adds
                    : accumulate_known_   ? ir_.getInt1(*accumulate_known_)
                                          : ir_.CreateICmpNE(k, constant(0));
      block(in_.n, nc_, call_.shape.n, [&](Value* n) {
        n_ = n;
        n_size_ = minimum(ir_.CreateSub(in_.n, n), nc_, call_.shape.n);
        n_whole_ = ir_.CreateSub(n_size_, ir_.CreateURem(n_size_, constant(plan_.nr)));
        pack_block_of_b();
        block(in_.m, plan_.mc, call_.shape.m, [&](Value* m) {
          m_ = m;
          m_size_ = minimum(ir_.CreateSub(in_.m, m), plan_.mc, call_.shape.m);
          if (rows_outer_) return each_rows([&](const Rows& rows) { all_columns(rows); });
          if (pack_a_) each_rows([&](const Rows& rows) { pack_rows_of_a(rows); });
          each_panel([&](Value* column, const Columns& columns) {
            const PanelOfB b = panel_of_b(column, columns);
            each_rows([&](const Rows& rows) {
              if (prefetch_b_) prefetch(b, rows);
              tile(b, column, columns, rows);
            });
          });
        });
      });
    });
  }

 private:
  static constexpr std::int64_t line = 64;  // of a cache, in bytes

  /// Column panel of c: columns that are computed together.
  struct Columns {
    int columns = 0;    // 0: there are none
    bool exact = true;  // all of them exist
  };

  /// Row panels of a block: of `rows` rows, then of one row less.
  struct EvenRows {
    int rows = 0;
    std::int64_t in_tall = 0;  // rows of the last block that are in the former
  };

  /// Rows of a panel of a: `live` of them exist.
  struct Rows {
    Value* first;
    int rows, live;
  };

  /// Elements of a panel of b per group of k.
  std::int64_t panel_lines() const {
    return std::max<std::int64_t>(
        1, std::int64_t{plan_.nr} * plan_.k_group * byte_width(instruction_.b) / line);
  }
  std::int64_t row_panels() const {
    return (std::min(call_.shape.m, plan_.mc) + plan_.mr - 1) / plan_.mr;
  }
  std::int64_t column_bytes_of_b() const {
    return std::max<std::int64_t>(1, std::min(kc_, call_.shape.k)) * byte_width(instruction_.b);
  }
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

  /// Partial column panels: of the remainder of the largest extent, and of any other number of
  /// columns.
  void choose_tails() {
    const auto n = known(in_.n);
    const auto rest = static_cast<int>(n.value_or(call_.shape.n) % plan_.nr);
    if (rest % lanes_ == 0) exact_.columns = rest;
    if (!n) {
      padded_ = {.columns = plan_.nr, .exact = false};
    } else if (rest % lanes_ != 0) {
      padded_ = {.columns = static_cast<int>(round_up(rest, lanes_)), .exact = false};
    }
  }

  /// Where several rows are left over, the panels of the last block are nearly equal: a few low
  /// panels cost less than single rows, each of which loads all of b.
  void choose_rows(std::int64_t m) {
    const std::int64_t last = m % plan_.mc == 0 ? plan_.mc : m % plan_.mc;
    const std::int64_t panels = (last + plan_.mr - 1) / plan_.mr;
    if (rest_rows_ < 2 || plan_.k_group != 1 || row_unit(instruction_) != 1) return;
    const auto low = static_cast<int>(last / panels);
    const std::int64_t tall = last % panels;
    if (m > plan_.mc && (tall == 0 || low + 1 != plan_.mr)) return;
    even_ = tall == 0 ? EvenRows{low, last} : EvenRows{low + 1, tall * (low + 1)};
  }

  void each_tail(llvm::function_ref<void(const Columns&)> body) {
    Value* live = ir_.CreateSub(n_size_, n_whole_);
    Value* is_exact =
        exact_.columns == 0 ? ir_.getFalse() : ir_.CreateICmpEQ(live, constant(exact_.columns));
    emit_if(ir_, is_exact, [&] { body(exact_); });
    if (padded_.columns == 0) return;
    emit_if(ir_, ir_.CreateAnd(ir_.CreateICmpSGT(live, constant(0)), ir_.CreateNot(is_exact)),
            [&] { body(padded_); });
  }

  /// Row panels of a block: full height first, then of 4 rows, then single rows (or pairs, and half
  /// a pair).
  void each_rows(llvm::function_ref<void(const Rows&)> body) {
    if (even_) return each_even_rows(body);
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
      most = rest_rows_ < 0 ? rows - 1 : rest_rows_ % rows;
    }
    if (most > 0)
      emit_if(ir_, ir_.CreateICmpNE(rest, constant(0)), [&] { body({first, unit, 1}); });
  }

  void each_even_rows(llvm::function_ref<void(const Rows&)> body) {
    Value* tall_end = constant(even_->in_tall);
    if (call_.shape.m > plan_.mc) {
      Value* is_last = ir_.CreateICmpSGE(ir_.CreateAdd(m_, constant(plan_.mc)), in_.m);
      tall_end = ir_.CreateSelect(is_last, tall_end, m_size_);
    }
    const int rows = even_->rows;
    emit_for(ir_, constant(0), tall_end, rows, [&](Value* row) { body({row, rows, rows}); });
    emit_for(ir_, tall_end, m_size_, rows - 1, [&](Value* row) {
      body({row, rows - 1, rows - 1});
    });
  }

  Value* panel_of_a(Value* row) {
    if (pack_a_) return at(a_type_, panels_a_, ir_.CreateMul(row, k_padded_));
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
                                            .k_multiple = pad_k_,
                                            .unit = packed_unit(in_.a_row, in_.a_column),
                                            .vector_bytes = machine_.vector_bytes,
                                            .offset = instruction_.offset_a,
                                            .all_lines = rows.rows == rows.live,
                                            .whole_k = whole_k_});
    ir_.CreateCall(pack, {panel_of_a(rows.first), source_of_a(rows.first), in_.a_row, in_.a_column,
                          constant(rows.live), k_size_});
  }

  /// Packs `k_size` k's of b from some k of the block on.
  void pack_columns_of_b(Value* column, const Columns& columns, Value* k, Value* k_size) {
    llvm::Function* pack = packer(module_, {.from = call_.shape.b,
                                            .to = instruction_.b,
                                            .lines = columns.columns,
                                            .k_group = plan_.k_group,
                                            .k_multiple = pad_k_,
                                            .unit = packed_unit(in_.b_column, in_.b_row),
                                            .vector_bytes = machine_.vector_bytes,
                                            .all_lines = columns.exact,
                                            .whole_k = whole_k_});
    Value* panel = at(b_type_, panels_b_,
                      ir_.CreateAdd(ir_.CreateMul(column, k_padded_),
                                    ir_.CreateMul(k, constant(columns.columns))));
    Value* source = at(b_from_, source_of_b(column), ir_.CreateMul(k, in_.b_row));
    Value* live = columns.exact ? constant(columns.columns) : ir_.CreateSub(n_size_, column);
    ir_.CreateCall(pack, {panel, source, in_.b_column, in_.b_row, live, k_size});
  }

  /// Missing columns are zeros in the panel, so the last one is always packed.
  Value* packs(const Columns& columns) {
    return columns.exact || call_.b.panel != 0 ? pack_b_ : ir_.getTrue();
  }

  void pack_block_of_b() {
    emit_if(ir_, pack_b_, [&] {
      // Copies a few rows at a time, so that cache lines and pages that panels share are still
      // cached.
      const bool by_rows = packed_unit(in_.b_column, in_.b_row) == Packer::Unit::Lines;
      const std::int64_t strip = by_rows ? round_up(16, pad_k_) : kc_;
      block(k_size_, strip, std::min(kc_, call_.shape.k), [&](Value* k) {
        Value* size = minimum(ir_.CreateSub(k_size_, k), strip, std::min(kc_, call_.shape.k));
        emit_for(ir_, constant(0), n_whole_, plan_.nr,
                 [&](Value* column) { pack_columns_of_b(column, {plan_.nr}, k, size); });
      });
    });
    if (call_.b.panel != 0) return;
    each_tail([&](const Columns& tail) {
      emit_if(ir_, packs(tail), [&] { pack_columns_of_b(n_whole_, tail, constant(0), k_size_); });
    });
  }

  struct PanelOfB {
    Value *base, *stride;  // elements between groups of k
  };
  PanelOfB panel_of_b(Value* column, const Columns& columns) {
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
    Value* part = padded(ir_.CreateUDiv(bytes, panels), line);
    Value* first = ir_.CreateMul(part, ir_.CreateUDiv(rows.first, constant(plan_.mr)));
    Value* next = next_panel(b);
    emit_for(ir_, first, ir_.CreateAdd(first, part), line, [&](Value* offset) {
      emit_prefetch(ir_, at(ir_.getInt8Ty(), next, offset), {.level = 2});
    });
  }

  /// Part of the next panel that the micro-kernel for these rows prefetches, where it has issue
  /// slots to spare; the last part covers the rest of the panel.
  Value* ahead(const PanelOfB& b, const Rows& rows) {
    const std::int64_t last = (panel_lines() - 1) / ahead_;
    Value* part = ir_.CreateUDiv(rows.first, constant(plan_.mr));
    part = ir_.CreateSelect(ir_.CreateICmpULT(part, constant(last)), part, constant(last));
    return at(ir_.getInt8Ty(), next_panel(b),
              ir_.CreateMul(ir_.CreateMul(part, groups_), constant(ahead_ * line)));
  }

  void each_panel(llvm::function_ref<void(Value*, const Columns&)> body) {
    emit_for(ir_, constant(0), n_whole_, plan_.nr,
             [&](Value* column) { body(column, {plan_.nr}); });
    each_tail([&](const Columns& tail) { body(n_whole_, tail); });
  }

  /// Some rows of the block of a times all panels of b.
  void all_columns(const Rows& rows) {
    if (pack_a_) pack_rows_of_a(rows);
    each_panel([&](Value* column, const Columns& columns) {
      tile(panel_of_b(column, columns), column, columns, rows);
    });
  }

  /// Some rows of the block of a times one panel of b.
  void tile(const PanelOfB& b, Value* column, const Columns& columns, const Rows& rows) {
    const bool direct = columns.exact && rows.live == rows.rows;
    const int registers =
        rows.rows / row_unit(instruction_) *
        (columns.columns / (instruction_.form == Instruction::Form::Blocks ? 2 : lanes_));
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
        .whole_unrolls = whole_unrolls_,
        .trip_count = trip_count_,
        .a = a_,
        .next_lines = columns.columns == plan_.nr || known(column) == 0 ? next_lines_ : 0,
        .b_stride = loads_spread(machine_) && (call_.b.panel != 0 || is_true(pack_b_))
                        ? static_cast<int>(known(b.stride).value_or(0))
                        : 0,
        .later_b = far_rows_of_b_ && rows.rows > 1 ? 16 : 0,
        .far_c = far_c_ && rows.rows > 1,
        .apart = call_.from != nullptr,
        .ahead = ahead_,
        .accumulate = tiles_ && accumulate_known_ == true ? std::nullopt : accumulate_known_};
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
        .a_stride = a_ == MicroKernel::A::Columns ? in_.a_column : in_.a_row,
        .b = b.base,
        .b_stride = b.stride,
        .c = target,
        .c_stride = target_row,
        .accumulate = direct ? accumulate_ : ir_.getFalse(),
        .ahead = ahead_ > 0 ? ahead(b, rows) : b.base,
        .from = from,
        .from_stride = from_row};
    if (call_.epilogue != nullptr && direct) {
      const DotPart part{ir_.CreateAdd(m_, rows.first), ir_.CreateAdd(n_, column), rows.rows,
                         columns.columns / lanes_};
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
  Instruction instruction_;
  llvm::Module& module_;
  llvm::Type *a_from_, *b_from_, *a_type_, *b_type_, *c_type_;
  std::int64_t kc_ = 0, nc_ = 0;
  int lanes_ = 0;
  MicroKernel::A a_ = MicroKernel::A::Panel;
  Value* pack_b_ = nullptr;  // i1: run-time decision by the strides of b
  bool pack_a_ = true, prefetch_b_ = false, far_c_ = false;
  bool rows_outer_ = false;  // all of b stays in L1: loop over rows of c outside
  int ahead_ = 0;            // as in MicroKernel, like those that follow
  int next_lines_ = 0;
  bool far_rows_of_b_ = false;
  bool whole_unrolls_ = false, whole_k_ = false;  // as in MicroKernel and Packer
  TripCount trip_count_ = TripCount::Any;
  std::int64_t rest_rows_ = -1;  // after the last whole panel; -1: any
  std::optional<EvenRows> even_ = {};
  int pad_k_ = 1;
  std::optional<bool> accumulate_known_;
  Columns exact_, padded_;
  bool tiles_ = false;  // partial tiles go through scratch

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
