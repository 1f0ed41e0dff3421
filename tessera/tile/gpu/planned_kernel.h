#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "tessera/tile/gpu/plan.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/passes/bounds.h"

namespace tessera::tile::gpu {

/// A kernel with its layouts, def-use information and bounds analysis: the input of the GPU
/// optimization decisions.
struct PlannedKernel {
  PlannedKernel(const Kernel& of, const Plan& by)
      : kernel(of),
        plan(by),
        definitions(tile::definitions(of)),
        uses(tile::uses(of)),
        bounds(of) {}

  const Kernel& kernel;
  const Plan& plan;
  std::vector<std::optional<OpId>> definitions;
  std::vector<int> uses;
  Bounds bounds;

  const Type& type(ValueId id) const { return kernel.type(id); }
  /// Layout of a tile; the default one where it is rematerialized.
  Layout home(ValueId id) const {
    const std::optional<Layout>& home = plan.home(id);
    return home ? *home : plan.standard(type(id).shape);
  }
  /// Operation that defines a value; null for parameters.
  const Operation* defining_op(ValueId id) const {
    return definitions[id] ? &kernel.ops[*definitions[id]] : nullptr;
  }
  /// Whether a value is defined in the body of a loop, nested loops excluded.
  bool is_defined_in(const Operation& loop, ValueId id) const {
    const std::vector<OpId>& body = loop.regions[0].ops;
    return definitions[id] && std::find(body.begin(), body.end(), *definitions[id]) != body.end();
  }
  /// Whether a value may differ between iterations of a loop: it is carried, or defined in the
  /// body.
  bool varies_in(const Operation& loop, ValueId id) const {
    const std::vector<ValueId>& params = loop.regions[0].params;
    return std::find(params.begin(), params.end(), id) != params.end() || is_defined_in(loop, id);
  }
};

}  // namespace tessera::tile::gpu
