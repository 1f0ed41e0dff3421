#include "tessera/tile/passes/narrow.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "tessera/tile/passes/facts.h"
#include "tessera/tile/passes/ranges.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// Whether the low bits of the result depend only on the low bits of the operands.
bool is_modular(const Kernel& kernel, const Operation& op) {
  if (op.code != Code::Map) return false;
  const Type& type = kernel.type(op.out[0]);
  return type.is_tile() && type.dtype == DType::I64 &&
         (op.function == Function::Add || op.function == Function::Sub ||
          op.function == Function::Mul);
}

/// Whether the cast of a 64-bit integer reads its low 32 bits only.
bool takes_low_bits(DType to, const Facts& from) {
  if (is_float(to)) return fits(range_of(from), DType::I32);
  return to != DType::Bool && byte_width(to) <= 4;
}

}  // namespace

Kernel narrow(const Kernel& kernel) {
  std::vector<OpId> order;
  for_each_op(kernel, kernel.body, [&](OpId id) { order.push_back(id); });
  if (std::ranges::none_of(order, [&](OpId id) { return is_modular(kernel, kernel.ops[id]); }))
    return kernel;
  const std::vector<Facts> facts = facts_of(kernel);
  std::vector<bool> wide(kernel.values.size(), false);  // some use reads more than the low bits
  for (const OpId id : std::views::reverse(order)) {
    const Operation& op = kernel.ops[id];
    const bool is_narrow = is_modular(kernel, op) && !wide[op.out[0]];
    for (const ValueId in : op.in)
      if (!is_narrow &&
          (op.code != Code::Cast || !takes_low_bits(kernel.type(op.out[0]).dtype, facts[in])))
        wide[in] = true;
  }
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    if (!is_modular(kernel, op) || wide[op.out[0]]) return out.copy(op);
    std::vector<ValueId> operands;
    for (const ValueId in : out.of(op.in))
      operands.push_back(out.type(in).dtype == DType::I32 ? in : out.cast(in, DType::I32));
    out.set(op.out[0], out.map(op.function, std::move(operands)));
  });
}

}  // namespace tessera::tile
