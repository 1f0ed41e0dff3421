#include "tessera/tile/cpu/prepare.h"

#include <cstddef>

#include "tessera/tile/passes/narrow.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tessera/tile/passes/version_indices.h"
#include "tessera/tile/passes/version_loops.h"

namespace tessera::tile::cpu {
namespace {

/// dot(a, b, c) of narrow c  =>  cast(dot(a, b, cast(c)))
void widen_dots(Kernel& kernel, Region& region) {
  std::vector<OpId> ops;
  for (const OpId id : region.ops) {
    for (std::size_t i = 0; i < kernel.ops[id].regions.size(); ++i) {
      Region inner = kernel.ops[id].regions[i];
      widen_dots(kernel, inner);
      kernel.ops[id].regions[i] = std::move(inner);
    }
    const bool widens =
        kernel.ops[id].code == Code::Dot && is_half(kernel.type(kernel.ops[id].out[0]).dtype);
    if (!widens) {
      ops.push_back(id);
      continue;
    }
    const Type wide = kernel.type(kernel.ops[id].out[0]).of(DType::F32);
    const auto new_value = [&] {
      kernel.values.push_back({wide, {}});
      return static_cast<ValueId>(kernel.values.size() - 1);
    };
    const auto new_op = [&](Operation op) {
      op.source = kernel.ops[id].source;
      kernel.ops.push_back(std::move(op));
      ops.push_back(static_cast<OpId>(kernel.ops.size() - 1));
    };
    Operation dot = kernel.ops[id];
    const ValueId start = new_value(), sum = new_value(), result = dot.out[0];
    new_op({.code = Code::Cast, .in = {dot.in[2]}, .out = {start}});
    dot.in[2] = start;
    dot.out[0] = sum;
    new_op(std::move(dot));
    new_op({.code = Code::Cast, .in = {sum}, .out = {result}});
  }
  region.ops = std::move(ops);
}

/// Cost in nanoseconds of vector work per element, and of one multiply-add of a dot.
constexpr double kElement = 0.2, kMultiplyAdd = 0.025;
constexpr double kUnknownRounds = 16;

double region_work(const Kernel& kernel, const Region& region) {
  double work = 0;
  for (const OpId id : region.ops) {
    const Operation& op = kernel.ops[id];
    double inner = 0;
    for (const Region& r : op.regions) inner += region_work(kernel, r);
    if (op.code == Code::For || op.code == Code::While) inner *= kUnknownRounds;
    work += inner;
    if (op.code == Code::Dot) {
      const Extents& a = kernel.type(op.in[0]).shape;
      work += kMultiplyAdd * static_cast<double>(kernel.type(op.out[0]).count()) *
              static_cast<double>(a[1]);
    } else if (!op.in.empty() && kernel.type(op.in.back()).is_tile()) {
      work += kElement * static_cast<double>(kernel.type(op.in.back()).count());
    }
  }
  return work;
}

}  // namespace

Kernel prepare(const Kernel& kernel, bool keep_pointers) {
  Kernel result = simplify(kernel);
  if (!keep_pointers) {
    result = simplify(version_loops(version_indices(result, WrappedElements::Mask)));
    result = split(simplify(narrow(recover(result))), Loops::Whole);
  }
  Region body = result.body;
  widen_dots(result, body);
  result.body = std::move(body);
  return result;
}

double work_of(const Kernel& kernel) {
  return region_work(kernel, kernel.body);
}

}  // namespace tessera::tile::cpu
