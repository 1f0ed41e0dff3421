#include <algorithm>
#include <array>
#include <string_view>

#include "tessera/codegen/llvm/dot_amx.h"
#include "tessera/codegen/llvm/dot_parts.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::codegen {
namespace {

using machine::Architecture;
using machine::Machine;
using DotForm = Instruction::Form;

/// Instructions with more than one multiplication per lane, best first.
struct Choice {
  Architecture architecture;
  std::string_view feature;
  Instruction instruction;
  int most_bytes = 64;  // maximum vector size
};

using enum DType;
constexpr Architecture arm = Architecture::AArch64, x86 = Architecture::X86_64;
constexpr const char *dpbf16 = "llvm.x86.avx512bf16.dpbf16ps.", *vnni = "llvm.x86.avx512.vpdpbusd.";
constexpr const char *sdot = "llvm.aarch64.neon.sdot", *udot = "llvm.aarch64.neon.udot";
constexpr std::array choices = {
    Choice{arm, "bf16", {"llvm.aarch64.neon.bfmmla", BF16, BF16, F32, 4, DotForm::Blocks}},
    Choice{arm, "i8mm", {"llvm.aarch64.neon.smmla", I8, I8, I32, 8, DotForm::Blocks}},
    Choice{arm, "i8mm", {"llvm.aarch64.neon.ummla", U8, U8, I32, 8, DotForm::Blocks}},
    Choice{arm, "i8mm", {"llvm.aarch64.neon.usmmla", U8, I8, I32, 8, DotForm::Blocks}},
    Choice{arm, "dotprod", {sdot, I8, I8, I32, 4, DotForm::Lanes}},
    Choice{arm, "dotprod", {udot, U8, U8, I32, 4, DotForm::Lanes}},
    Choice{arm, "dotprod", {sdot, U8, I8, I32, 4, DotForm::Lanes, false, /*offset_a=*/true}},
    Choice{arm, "dotprod", {udot, I8, U8, I32, 4, DotForm::Lanes, false, /*offset_a=*/true}},
    Choice{x86, "amx-bf16", {"llvm.x86.tdpbf16ps", BF16, BF16, F32, 2, DotForm::Tiles}},
    Choice{x86, "amx-int8", {"llvm.x86.tdpbssd", I8, I8, I32, 4, DotForm::Tiles}},
    Choice{x86, "amx-int8", {"llvm.x86.tdpbuud", U8, U8, I32, 4, DotForm::Tiles}},
    Choice{x86, "amx-int8", {"llvm.x86.tdpbusd", U8, I8, I32, 4, DotForm::Tiles}},
    Choice{x86, "amx-int8", {"llvm.x86.tdpbsud", I8, U8, I32, 4, DotForm::Tiles}},
    Choice{x86, "avx512bf16", {dpbf16, BF16, BF16, F32, 2, DotForm::Lanes}},
    Choice{x86, "avx512vnni", {vnni, U8, I8, I32, 4, DotForm::Lanes}},
    Choice{x86, "avx512vnni", {vnni, I8, U8, I32, 4, DotForm::Lanes, /*swapped=*/true}},
    Choice{x86, "avx512vnni", {vnni, I8, I8, I32, 4, DotForm::Lanes, false, /*offset_a=*/true}},
    Choice{x86, "avxvnni", {vnni, U8, I8, I32, 4, DotForm::Lanes}, 32},
    Choice{x86, "avxvnni", {vnni, I8, U8, I32, 4, DotForm::Lanes, /*swapped=*/true}, 32},
    Choice{x86, "avxvnni", {vnni, I8, I8, I32, 4, DotForm::Lanes, false, /*offset_a=*/true}, 32},
};

tile::cpu::RegisterTile register_tile(const Instruction& instruction, const Machine& machine) {
  using tile::cpu::MatmulUnit;
  tile::cpu::RegisterTile tile = tile::cpu::register_tile(
      instruction.form == DotForm::Blocks ? MatmulUnit::Blocks : MatmulUnit::Lanes, machine);
  // The sums of b need as many registers as a row.
  if (instruction.offset_a && machine.architecture == arm) --tile.vectors;
  return tile;
}

bool same_sum(DType x, DType y) {
  return is_float(x) == is_float(y) && byte_width(x) == byte_width(y);
}

}  // namespace

std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t whole = std::max(unit, most / unit * unit);
  const std::int64_t parts = std::max<std::int64_t>(1, (extent + whole - 1) / whole);
  return round_up(std::max<std::int64_t>(1, (extent + parts - 1) / parts), unit);
}

Instruction instruction_for(const DotShape& shape, const Machine& machine) {
  // One row would leave most of a tile empty, and reads b once: vectors are as fast. Tiles are as
  // wide as the longest vectors, in which panels are counted.
  const bool tiles = shape.m > 1 && machine.vector_bytes == 64;
  for (const Choice& choice : choices) {
    if (choice.instruction.form == DotForm::Tiles && !tiles) continue;
    if (choice.architecture == machine.architecture && machine.has(choice.feature) &&
        machine.vector_bytes <= choice.most_bytes && choice.instruction.a == shape.a &&
        choice.instruction.b == shape.b && same_sum(choice.instruction.c, shape.c))
      return choice.instruction;
  }
  return {.a = shape.c, .b = shape.c, .c = shape.c};
}

std::int64_t panel_columns(const DotShape& shape, const Machine& machine) {
  const Instruction instruction = instruction_for(shape, machine);
  const int lanes = machine.vector_bytes / byte_width(shape.c);
  // One row streams b: half of the registers are accumulators.
  if (shape.m == 1 && instruction.form == DotForm::Lanes)
    return machine.vector_registers / 2 * lanes;
  return std::int64_t{register_tile(instruction, machine).vectors} * lanes;
}

DType panel_dtype(const DotShape& shape, const Machine& machine) {
  return instruction_for(shape, machine).b;
}

DotPlan plan_dot(const DotShape& shape, const Machine& machine, std::int64_t packed_b) {
  const Instruction instruction = instruction_for(shape, machine);
  if (instruction.form == DotForm::Tiles)
    return plan_amx_dot(shape, instruction, machine, packed_b);
  const std::int64_t a_width = byte_width(instruction.a), b_width = byte_width(instruction.b);
  DotPlan plan;
  plan.k_group = instruction.k_group;
  plan.mr = register_tile(instruction, machine).rows;
  if (packed_b != 0 && instruction.form == DotForm::Lanes)
    plan.mr = std::min(plan.mr, tile::cpu::register_rows(packed_b, machine));
  plan.nr = static_cast<int>(packed_b != 0 ? packed_b : panel_columns(shape, machine));
  // A panel of b and one of a, which streams by it, fill most of L1, a block of a fills a quarter
  // of L2; a block of b is in L2 or L3.
  const std::int64_t k_unit = kMaxUnroll * plan.k_group;
  const std::int64_t panels = loads_spread(machine) ? machine.l1d * 15 / 16 : machine.l1d * 7 / 8;
  const std::int64_t k_most = panels / (plan.nr * b_width + plan.mr * a_width);
  plan.kc = even_block(shape.k, k_most, k_unit);
  plan.mc = even_block(shape.m, machine.l2 / 4 / (plan.kc * a_width), plan.mr);
  plan.nc = even_block(shape.n, 3 * machine.l2 / (plan.kc * b_width), plan.nr);
  // Operands that are small, or used once, are read in place.
  plan.pack_b = shape.m > 1 && shape.n * shape.k * b_width > near_bytes(machine);
  plan.pack_a = plan.pack_b || shape.n > 2 * plan.nr;
  // Packing a few short rows costs more than it saves.
  if (packed_b != 0 && shape.k < 48) plan.pack_a = false;
  if (shape.m == 1) {
    plan.pack_a = false;
    if (packed_b != 0) plan.kc = round_up(std::max<std::int64_t>(shape.k, 1), k_unit);
  }
  const std::int64_t panels_a = round_up(plan.mc * plan.kc * byte_width(instruction.a), 128);
  const std::int64_t panels_b =
      packed_b != 0 ? 0 : round_up(plan.nc * plan.kc * byte_width(instruction.b), 128);
  const std::int64_t tile = round_up(std::int64_t{plan.mr} * plan.nr * byte_width(shape.c), 128);
  plan.scratch_bytes = panels_a + tile + panels_b;
  return plan;
}

bool can_add_from(const DotShape& shape, const DotPlan& plan, const Machine& machine) {
  return shape.m > 1 && shape.k <= plan.kc &&
         instruction_for(shape, machine).form != DotForm::Tiles;
}

}  // namespace tessera::codegen
