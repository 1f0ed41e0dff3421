#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tessera/ir/graph.h"
#include "tessera/program/canonical.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// Where the tensors of a group are, by name.
using Addresses = std::map<std::string, runtime::Address, std::less<>>;
/// Values of the graph, by what they are called in stages.
using ValueIds = std::map<std::string, ValueId, std::less<>>;

/// A group and its kernels.
struct LoweredGroup {
  Canonical canonical;
  std::shared_ptr<const Lowering> lowering;
};
/// The diagnostic is why the group has no form as kernels.
Expected<LoweredGroup> lowered(const lower::Group& group, Lowerings& lowerings);

/// What a group is launched on.
struct LaunchOperands {
  Addresses values = {};    // its tensors, but for constants
  ValueIds constants = {};  // weights that its kernels may want packed
};

/// Appends the launches of a group's kernels, with the weights and temporaries that they need.
/// `what` names the operators.
void add_launches(DraftBuilder& out, const Graph& graph, const LoweredGroup& group,
                  const LaunchOperands& operands, const std::string& what, double flops);

}  // namespace tessera::program
