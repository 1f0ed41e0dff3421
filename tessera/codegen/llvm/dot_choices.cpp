#include "tessera/codegen/llvm/dot_choices.h"

#include <algorithm>

namespace tessera::codegen {
namespace {

/// Nearly equal row panels of the last block, where several rows are left over: a few low panels
/// cost less than single rows, each of which loads all of b.
std::optional<GemmChoices::EvenRows> even_rows(const DotPlan& plan, const Instruction& instruction,
                                               std::int64_t m) {
  const std::int64_t last = m % plan.mc == 0 ? plan.mc : m % plan.mc;
  const std::int64_t panels = (last + plan.mr - 1) / plan.mr;
  if (m % plan.mr < 2 || plan.k_group != 1 || row_unit(instruction) != 1) return std::nullopt;
  const auto low = static_cast<int>(last / panels);
  const std::int64_t tall = last % panels;
  if (m > plan.mc && (tall == 0 || low + 1 != plan.mr)) return std::nullopt;
  return tall == 0 ? GemmChoices::EvenRows{low, last}
                   : GemmChoices::EvenRows{low + 1, tall * (low + 1)};
}

}  // namespace

GemmChoices::GemmChoices(llvm::IRBuilder<>& ir, const DotCall& call,
                         const machine::Machine& machine, const DotArguments& in)
    : instruction(instruction_for(call.shape, machine)),
      lanes(machine.vector_bytes / byte_width(instruction.c)),
      kc(call.plan.kc),
      nc(call.plan.nc) {
  choose_packing(ir, call, machine, in);
  const bool both = pack_a && is_true(pack_b);
  const std::int64_t turn = call.plan.k_group * kMaxUnroll;
  const auto k_is_multiple_of = [&](std::int64_t unit) {
    const auto k = known(in.k);
    return k && *k % unit == 0 && (*k <= kc || kc % unit == 0);
  };
  pad_k = static_cast<int>(both ? turn : call.plan.k_group);
  whole_unrolls = both || k_is_multiple_of(turn);
  whole_k = k_is_multiple_of(std::max<std::int64_t>(16, pad_k));
  if (const auto k = known(in.k); k && turn <= *k && *k <= kc) trip_count = TripCount::AtLeastOne;
  if (call.adds == nullptr && (call.accumulate || call.shape.k <= kc)) accumulate = call.accumulate;
  choose_prefetching(call, machine);
  choose_edges(call, in);
}

std::int64_t GemmChoices::column_bytes_of_b(const DotCall& call) const {
  return std::max<std::int64_t>(1, std::min(kc, call.shape.k)) * byte_width(instruction.b);
}

void GemmChoices::choose_packing(llvm::IRBuilder<>& ir, const DotCall& call,
                                 const machine::Machine& machine, const DotArguments& in) {
  const DotPlan& plan = call.plan;
  const bool plain = instruction.k_group == 1 && instruction.form == Instruction::Form::Lanes;
  const bool as_it_lies = plain && call.shape.a == instruction.a;
  if (as_it_lies && known(in.a_row) == 1 && known(in.a_column) != 1 &&
      call.shape.m * call.shape.k * byte_width(call.shape.a) <= machine.l1d / 2)
    a = MicroKernel::A::Columns;
  if (as_it_lies && known(in.a_column) == 1 && !plan.pack_a) a = MicroKernel::A::Rows;
  pack_a = a == MicroKernel::A::Panel;
  pack_b = ir.getInt1(call.b.panel == 0);
  if (call.b.panel == 0 && !plan.pack_b && plain && call.shape.b == instruction.b &&
      known(in.b_column) == 1) {
    // Rows at distances that are a multiple of a large power of 2 would evict each other from L1,
    // whose sets are indexed by the low bits of an address.
    const std::int64_t bytes = near_bytes(machine);
    llvm::Value* power = ir.CreateAnd(in.b_row, ir.CreateNeg(in.b_row));
    llvm::Value* most = ir.getInt64(static_cast<std::uint64_t>(bytes / column_bytes_of_b(call)));
    pack_b = call.shape.m == 1 ? ir.getFalse() : ir.CreateICmpSGT(power, most);
  }
  // A matrix with contiguous rows of a panel's width is a panel.
  if (call.b.panel == 0 && plain && call.shape.b == instruction.b && call.shape.n == plan.nr &&
      known(in.b_row) == plan.nr && known(in.b_column) == 1)
    pack_b = ir.getFalse();
  if (call.b.panel == 0 && call.shape.m == 1 && !is_true(pack_b)) {
    // One row: b is read by its rows, a few at a time, while c stays in L1.
    kc = 2 * kMaxUnroll;
    nc = round_up(std::max<std::int64_t>(call.shape.n, 1), plan.nr);
  }
}

void GemmChoices::choose_prefetching(const DotCall& call, const machine::Machine& machine) {
  const DotPlan& plan = call.plan;
  panel_lines = std::max<std::int64_t>(
      1, std::int64_t{plan.nr} * plan.k_group * byte_width(instruction.b) / kCacheLine);
  const std::int64_t row_panels = (std::min(call.shape.m, plan.mc) + plan.mr - 1) / plan.mr;
  const std::int64_t bytes_of_b = std::min(nc, call.shape.n) * column_bytes_of_b(call);
  rows_outer = bytes_of_b <= machine.l1d / 2;
  const bool far_b = call.b.panel != 0 ? !rows_outer : bytes_of_b > machine.l2;
  if (loads_spread(machine) && far_b && call.shape.m > 1)
    ahead = static_cast<int>((panel_lines * kMaxUnroll + row_panels - 1) / row_panels);
  // With few rows, each of them would issue a long burst of prefetches, which stalls.
  prefetch_b = !loads_spread(machine) && far_b && call.shape.m >= 16 * plan.mr;
  if (!loads_spread(machine) && call.shape.m > 1) {
    const std::int64_t bytes = std::min(call.shape.k, kc) * byte_width(instruction.a);
    if (a == MicroKernel::A::Rows && call.shape.m > plan.mr && bytes <= 4 * kCacheLine)
      next_lines = static_cast<int>(bytes / kCacheLine);
    far_rows_of_b = call.b.panel == 0 && known(pack_b) == 0 && a == MicroKernel::A::Columns;
  }
  far_c = call.shape.m * call.shape.n * byte_width(instruction.c) > machine.l1d;
}

void GemmChoices::choose_edges(const DotCall& call, const DotArguments& in) {
  const DotPlan& plan = call.plan;
  const auto m = known(in.m), n = known(in.n);
  if (m) {
    rest_rows = *m % plan.mr;
    even = even_rows(plan, instruction, *m);
  }
  const auto rest = static_cast<int>(n.value_or(call.shape.n) % plan.nr);
  if (rest % lanes == 0) exact.columns = rest;
  if (!n) {
    padded = {.columns = plan.nr, .exact = false};
  } else if (rest % lanes != 0) {
    padded = {.columns = static_cast<int>(round_up(rest, lanes)), .exact = false};
  }
  partial_tiles = padded.columns != 0 || rest_rows % row_unit(instruction) != 0;
  const bool is_known = n && m && known(in.k).value_or(0) > 0;
  if (is_known && !call.accumulate && call.shape.k <= kc && rest_rows % row_unit(instruction) == 0)
    epilogue_columns = padded.columns == 0 ? *n : *n / plan.nr * plan.nr;
}

}  // namespace tessera::codegen
