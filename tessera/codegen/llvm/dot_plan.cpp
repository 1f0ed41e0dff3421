#include <algorithm>
#include <array>
#include <string_view>

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {
namespace {

using machine::Architecture;
using machine::Machine;
using Form = Instruction::Form;

/// Instructions that do more than one multiplication per lane, the best first.
struct Choice {
  Architecture architecture;
  std::string_view feature;
  int vector_bytes;
  Instruction instruction;
};

constexpr std::array choices = {
    Choice{Architecture::AArch64, "bf16", 16,
           {"llvm.aarch64.neon.bfmmla", DType::BF16, DType::BF16, DType::F32, 4, Form::Blocks}},
    Choice{Architecture::AArch64, "i8mm", 16,
           {"llvm.aarch64.neon.smmla", DType::I8, DType::I8, DType::I32, 8, Form::Blocks}},
    Choice{Architecture::AArch64, "i8mm", 16,
           {"llvm.aarch64.neon.ummla", DType::U8, DType::U8, DType::I32, 8, Form::Blocks}},
    Choice{Architecture::AArch64, "i8mm", 16,
           {"llvm.aarch64.neon.usmmla", DType::U8, DType::I8, DType::I32, 8, Form::Blocks}},
    Choice{Architecture::AArch64, "dotprod", 16,
           {"llvm.aarch64.neon.sdot", DType::I8, DType::I8, DType::I32, 4, Form::Lanes}},
    Choice{Architecture::AArch64, "dotprod", 16,
           {"llvm.aarch64.neon.udot", DType::U8, DType::U8, DType::I32, 4, Form::Lanes}},
    Choice{Architecture::X86_64, "avx512bf16", 64,
           {"llvm.x86.avx512bf16.dpbf16ps.512", DType::BF16, DType::BF16, DType::F32, 2}},
    Choice{Architecture::X86_64, "avx512vnni", 64,
           {"llvm.x86.avx512.vpdpbusd.512", DType::U8, DType::I8, DType::I32, 4}},
    Choice{Architecture::X86_64, "avx512vnni", 64,
           {"llvm.x86.avx512.vpdpbusd.512", DType::I8, DType::U8, DType::I32, 4, Form::Lanes, true}},
    Choice{Architecture::X86_64, "avx512vnni", 64,
           {"llvm.x86.avx512.vpdpbusd.512", DType::I8, DType::I8, DType::I32, 4, Form::Lanes, false,
            true}},
};

bool same_sum(DType x, DType y) {
  return is_float(x) == is_float(y) && byte_width(x) == byte_width(y);
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The largest block of at most `most` that cuts `extent` into nearly equal parts.
std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t multiple) {
  const std::int64_t parts = std::max<std::int64_t>(1, (extent + most - 1) / most);
  return round_up(std::max<std::int64_t>(1, (extent + parts - 1) / parts), multiple);
}

}  // namespace

Instruction instruction_for(const DotShape& shape, const Machine& machine) {
  for (const Choice& choice : choices) {
    if (choice.architecture == machine.architecture && machine.has(choice.feature) &&
        choice.vector_bytes <= machine.vector_bytes && choice.instruction.a == shape.a &&
        choice.instruction.b == shape.b && same_sum(choice.instruction.c, shape.c))
      return choice.instruction;
  }
  return {.a = shape.c, .b = shape.c, .c = shape.c};
}

std::int64_t panel_columns(const DotShape& shape, const Machine& machine) {
  const int lanes = machine.vector_bytes / byte_width(shape.c);
  const bool arm = machine.architecture == Architecture::AArch64;
  if (shape.m == 1 && instruction_for(shape, machine).form == Form::Lanes) return 16 * lanes;
  return (arm ? 3 : 2) * lanes;
}

DType panel_dtype(const DotShape& shape, const Machine& machine) {
  return instruction_for(shape, machine).b;
}

DotPlan plan_dot(const DotShape& shape, const Machine& machine, std::int64_t packed_b) {
  const Instruction instruction = instruction_for(shape, machine);
  const bool arm = machine.architecture == Architecture::AArch64;
  DotPlan plan;
  plan.k_group = instruction.k_group;
  plan.nr = static_cast<int>(packed_b != 0 ? packed_b : panel_columns(shape, machine));
  plan.mr = arm ? 8 : machine.vector_registers > 16 ? 12 : 6;
  plan.kc = even_block(shape.k, 512, 4 * plan.k_group);
  plan.mc = even_block(shape.m, arm ? 64 : 96, plan.mr);
  plan.nc = even_block(shape.n, std::max<std::int64_t>(plan.nr, 1024 / plan.nr * plan.nr), plan.nr);
  const std::int64_t panels_a = round_up(plan.mc * plan.kc * byte_width(instruction.a), 128);
  const std::int64_t panels_b =
      packed_b != 0 ? 0 : round_up(plan.nc * plan.kc * byte_width(instruction.b), 128);
  const std::int64_t tile = round_up(std::int64_t{plan.mr} * plan.nr * byte_width(shape.c), 128);
  plan.scratch_bytes = panels_a + tile + panels_b;
  return plan;
}

}  // namespace tessera::codegen
