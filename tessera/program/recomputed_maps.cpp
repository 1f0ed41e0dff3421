#include "tessera/program/recomputed_maps.h"

#include <algorithm>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/support/tensor.h"

namespace tessera::program {

void RecomputedMaps::dissolve_recomputed() {
  for (std::size_t g = 0; g < open_groups_.size(); ++g)
    if (is_recomputed(g)) dissolve(g);
}

/// Whether a node computes a few cheap functions of each element.
bool RecomputedMaps::is_cheap(std::size_t n) const {
  bool cheap = out_.stages[n].size() == 1;
  for (const tile::Stage& stage : out_.stages[n])
    for_each_within(stage.output.value, [&](const Scalar& part) {
      const auto* apply = std::get_if<node::Apply>(&part.node());
      cheap = cheap && !std::holds_alternative<node::Component>(part.node());
      if (apply == nullptr) return;
      switch (apply->fn) {
        case Fn::Neg:
        case Fn::Abs:
        case Fn::Not:
        case Fn::Add:
        case Fn::Sub:
        case Fn::Mul:
        case Fn::Max:
        case Fn::Min:
        case Fn::Equal:
        case Fn::Less:
        case Fn::LessEqual:
        case Fn::And:
        case Fn::Or:
        case Fn::Select: break;
        default: cheap = false;
      }
    });
  return cheap;
}

/// Bytes of the tensors that a group reads; none if one is computed by what is in no group.
std::optional<std::int64_t> RecomputedMaps::bytes_read(std::size_t g) const {
  const auto& nodes = open_groups_[g].group.nodes;
  std::set<std::uint32_t> seen;
  std::int64_t bytes = 0;
  for (const std::size_t n : nodes)
    for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
      if (!input.present() || !seen.insert(input.index).second) continue;
      const auto from = node_of_[input.index];
      if (from && std::ranges::find(nodes, *from) != nodes.end()) continue;
      if (from && !group_of_[*from] && out_.kinds[*from] == NodeKind::Move) return std::nullopt;
      bytes += bytes_of(input);
    }
  return bytes;
}
std::int64_t RecomputedMaps::bytes_of(ValueId value) const {
  return element_count(shape(value)).value_or(0) * byte_width(graph_.type(value).dtype);
}

/// Whether a group of maps is better computed by each group that reads its result, which then
/// reads the operands: the result is neither written nor read.
bool RecomputedMaps::is_recomputed(std::size_t g) const {
  constexpr std::size_t kMostRecomputed = 4;
  const OpenGroup& maps = open_groups_[g];
  const auto& nodes = maps.group.nodes;
  if (maps.gone || maps.group.kind != NodeKind::Map || nodes.size() > kMostRecomputed ||
      !std::ranges::all_of(
          nodes, [&](std::size_t n) { return out_.kinds[n] == NodeKind::Map && is_cheap(n); }))
    return false;
  const std::vector<ValueId> results = results_of(g);
  if (results.size() != 1) return false;
  std::set<std::size_t> readers;
  for (const std::size_t user : users_[results[0].index]) {
    if (user == out_.kinds.size() || !group_of_[user]) return false;
    const NodeKind kind = out_.kinds[user];
    if (kind != NodeKind::Map && kind != NodeKind::Reduction) return false;
    readers.insert(current(*group_of_[user]));
  }
  const auto reads_once = [&](std::size_t reader) {
    const NodeKind kind = open_groups_[reader].group.kind;
    return kind == NodeKind::Map || kind == NodeKind::Reduction || kind == NodeKind::Contraction;
  };
  const auto from = bytes_read(g);
  const std::int64_t to = bytes_of(results[0]);
  const auto count = static_cast<std::int64_t>(readers.size());
  return from && std::ranges::all_of(readers, reads_once) &&
         count * *from <= *from + (1 + count) * to;
}

}  // namespace tessera::program
