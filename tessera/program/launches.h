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

/// Addresses of the tensors of a group, by name.
using Addresses = std::map<std::string, runtime::Address, std::less<>>;
/// Values of the graph, by their names in stages.
using ValueIds = std::map<std::string, ValueId, std::less<>>;

/// Fusion group with its kernels.
struct LoweredGroup {
  CanonicalGroup canonical;
  std::shared_ptr<const Lowering> lowering;
};
/// Lowers a group; a diagnostic says why it cannot be lowered.
Expected<LoweredGroup> lowered(const lower::Group& group, Lowerings& lowerings);

/// Operands of the launches of a group.
struct LaunchOperands {
  Addresses values = {};    // tensors other than constants
  ValueIds constants = {};  // weights, which kernels may read packed
};

/// Launch of a kernel whose arguments are at the addresses that `address_of(name)` gives.
runtime::step::Launch launch_of(
    const lower::Lowered& lowered, std::uint32_t kernel,
    const std::function<const runtime::Address&(const std::string&)>& address_of,
    const DraftBuilder& out);

/// Appends the launches of a group's kernels, with the weights and temporaries that they need.
/// `what` names the operators.
void add_launches(DraftBuilder& out, const Graph& graph, const LoweredGroup& group,
                  const LaunchOperands& operands, const std::string& what, double flops);

}  // namespace tessera::program
