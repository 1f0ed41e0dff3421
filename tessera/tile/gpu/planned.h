#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "tessera/tile/gpu/plan.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/passes/inside.h"

namespace tessera::tile::gpu {

/// A kernel with its layouts, and who makes and who uses each value: what decisions are made from.
struct Planned {
  Planned(const Kernel& of, const Plan& by)
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
  /// Where a tile is kept, or would be.
  Layout home(ValueId id) const {
    const std::optional<Layout>& home = plan.home(id);
    return home ? *home : plan.standard(type(id).shape);
  }
  /// The operation that makes a value; null: it is a parameter.
  const Operation* maker(ValueId id) const {
    return definitions[id] ? &kernel.ops[*definitions[id]] : nullptr;
  }
  /// Whether a value is made in the body of a loop, nested loops apart.
  bool made_in(const Operation& loop, ValueId id) const {
    const std::vector<OpId>& body = loop.regions[0].ops;
    return definitions[id] && std::find(body.begin(), body.end(), *definitions[id]) != body.end();
  }
};

}  // namespace tessera::tile::gpu
