#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/elements.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

enum class Branch : std::uint8_t {
  LessOrEqual,
  Less,
  GreaterOrEqual,
  Greater,
  Equal,
  NotEqual,
  Member,
};
constexpr std::string_view kBranchNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                             "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

enum class Aggregate : std::uint8_t { Average, Sum, Min, Max };
constexpr std::string_view kAggregateNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};

/// Reference to a node of a forest: a branch, or, negative, a leaf.
using Place = std::int64_t;
Place leaf(std::size_t index) {
  return -1 - static_cast<Place>(index);
}

struct Node {
  Branch branch = Branch::LessOrEqual;
  bool missing_is_true = false;
  std::int64_t feature = 0;
  double value = 0;
  std::size_t members = 0;  // Member: index of the set
  Place yes = 0, no = 0;
};

struct Vote {
  std::int64_t target = 0;
  double weight = 0;
};

struct Forest {
  std::vector<Node> nodes;
  std::vector<Place> roots;
  std::vector<Vote> votes;
  std::vector<std::size_t> first_vote;  // by leaf; at the end, the number of votes
  std::vector<std::vector<double>> sets;
  std::int64_t targets = 1;
  Aggregate aggregate = Aggregate::Sum;
};

bool holds(const Forest& forest, const Node& node, double x) {
  if (node.missing_is_true && std::isnan(x)) return true;
  switch (node.branch) {
    case Branch::LessOrEqual: return x <= node.value;
    case Branch::Less: return x < node.value;
    case Branch::GreaterOrEqual: return x >= node.value;
    case Branch::Greater: return x > node.value;
    case Branch::Equal: return x == node.value;
    case Branch::NotEqual: return x != node.value;
    case Branch::Member:
      return !std::isnan(x) && std::ranges::binary_search(forest.sets[node.members], x);
  }
  return false;
}

/// Leaf that a row of features reaches; none where the nodes form a cycle.
template <class Row>
std::optional<std::size_t> reached(const Forest& forest, Place at, const Row& row) {
  for (std::size_t steps = 0; at >= 0; ++steps) {
    if (steps > forest.nodes.size()) return std::nullopt;
    const Node& node = forest.nodes[static_cast<std::size_t>(at)];
    at = holds(forest, node, row(node.feature)) ? node.yes : node.no;
  }
  return static_cast<std::size_t>(-1 - at);
}

/// Votes are summed in T, one tree after the other.
template <class T>
Expected<Done> evaluate(const Arguments& in, const Forest& forest, const Tensor& x, Draft& out) {
  const std::int64_t features = x.shape.back();
  const std::int64_t rows = x.shape.size() == 1 ? 1 : x.shape[0];
  if (rows == 0) return Done{};
  const auto targets = static_cast<std::size_t>(forest.targets);
  std::vector<T> sums(targets);
  std::vector<char> voted(targets);
  return visit_elements(x, [&]<class Elements>(const Elements& elements) -> Expected<Done> {
    if constexpr (!std::is_same_v<typename Elements::Key, std::string>) {
      for (std::int64_t n = 0; n < rows; ++n) {
        std::ranges::fill(sums, T{});
        std::ranges::fill(voted, 0);
        const auto row = [&](std::int64_t feature) {
          return static_cast<double>(elements[n * features + feature]);
        };
        for (const Place root : forest.roots) {
          const auto found = reached(forest, root, row);
          if (!found) return in.fault("the nodes of a tree form a cycle");
          for (std::size_t v = forest.first_vote[*found]; v < forest.first_vote[*found + 1]; ++v) {
            const auto target = static_cast<std::size_t>(forest.votes[v].target);
            const T weight = static_cast<T>(forest.votes[v].weight);
            T& sum = sums[target];
            const bool first = voted[target] == 0;
            voted[target] = 1;
            switch (forest.aggregate) {
              case Aggregate::Average:
              case Aggregate::Sum: sum += weight; break;
              case Aggregate::Min: sum = first || weight < sum ? weight : sum; break;
              case Aggregate::Max: sum = first || weight > sum ? weight : sum; break;
            }
          }
        }
        for (std::size_t t = 0; t < targets; ++t) {
          if (forest.aggregate == Aggregate::Average)
            sums[t] /= static_cast<T>(forest.roots.size());
          out.set_number(n * forest.targets + static_cast<std::int64_t>(t),
                         static_cast<double>(sums[t]));
        }
      }
    }
    return Done{};
  });
}

Results run(const Arguments& in, const Forest& forest, DType dtype) {
  TESSERA_TRY(const Tensor x, in.number_tensor(0));
  if (x.shape.size() != 1 && x.shape.size() != 2)
    return in.fault(fmt::format("x has the shape {}", shape_text(x.shape)),
                    "it must have 1 or 2 axes");
  const std::int64_t features = x.shape.back(), rows = x.shape.size() == 1 ? 1 : x.shape[0];
  for (const Node& node : forest.nodes)
    if (node.feature < 0 || node.feature >= features)
      return in.fault(fmt::format("a node looks at feature {}", node.feature),
                      fmt::format("x has {}", features));
  for (const Vote& vote : forest.votes)
    if (vote.target < 0 || vote.target >= forest.targets)
      return in.fault(fmt::format("a leaf votes for {}", vote.target),
                      fmt::format("there are {} targets or classes", forest.targets));
  TESSERA_TRY(Draft out, in.allocate(dtype, {rows, forest.targets}));
  TESSERA_TRY_DONE(x.dtype == DType::F64 ? evaluate<double>(in, forest, x, out)
                                         : evaluate<float>(in, forest, x, out));
  return in.results({std::move(out).finish()});
}

/// A list of numbers, or the tensor attribute of its name that ends in _as_tensor.
Floats numbers_of(const Arguments& in, const std::string& name) {
  const std::string tensor_name = name + "_as_tensor";
  if (!in.attrs().has(tensor_name)) return in.floats(name);
  const Tensor& tensor = in.attrs().tensor(tensor_name);
  Floats list;
  for (std::int64_t i = 0; i < tensor.count(); ++i) list.push_back(number_at(tensor, i));
  return list;
}

template <class Names>
std::optional<std::size_t> position_of(const Names& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<std::size_t>(found - std::begin(names));
}

bool entry(const Ints& flags, std::size_t i) {
  return i < flags.size() && flags[i] == 1;
}

/// Nodes by tree id and node id.
class NodeNumbers {
 public:
  void reserve(std::size_t count) { places_.reserve(count); }
  bool add(std::int64_t tree, std::int64_t node, Place place) {
    return places_.emplace(std::pair(tree, node), place).second;
  }
  std::optional<Place> find(std::int64_t tree, std::int64_t node) const {
    const auto found = places_.find(std::pair(tree, node));
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct Hash {
    std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& key) const {
      return static_cast<std::size_t>(key.first) * 0x9E3779B97F4A7C15u +
             static_cast<std::size_t>(key.second);
    }
  };
  std::unordered_map<std::pair<std::int64_t, std::int64_t>, Place, Hash> places_;
};

Expected<Forest> numbered_forest(const Arguments& in) {
  const Strings modes = in.strings("nodes_modes");
  const Ints trees = in.ints("nodes_treeids"), ids = in.ints("nodes_nodeids");
  const Ints features = in.ints("nodes_featureids"), yes = in.ints("nodes_truenodeids");
  const Ints no = in.ints("nodes_falsenodeids");
  const Ints missing = in.ints("nodes_missing_value_tracks_true");
  const Floats values = numbers_of(in, "nodes_values");
  const std::size_t count = modes.size();
  for (const std::size_t size :
       {trees.size(), ids.size(), features.size(), yes.size(), no.size(), values.size()})
    if (size != count)
      return in.fault(
          fmt::format("there are {} modes of nodes and {} of another list", count, size),
          "the lists nodes_* must be equally long");

  Forest forest;
  const auto aggregate = position_of(kAggregateNames, in.attrs().s("aggregate_function"));
  if (!aggregate)
    return in.fault(fmt::format("aggregate_function is {}", in.attrs().s("aggregate_function")),
                    "it must be AVERAGE, SUM, MIN or MAX");
  forest.aggregate = static_cast<Aggregate>(*aggregate);
  if (in.attrs().has("n_targets")) forest.targets = in.attrs().i("n_targets");

  NodeNumbers numbers;
  numbers.reserve(count);
  std::size_t leaves = 0;
  std::vector<std::size_t> branches;  // their positions in the lists
  std::unordered_map<std::int64_t, Place> roots;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_leaf = modes[i] == "LEAF";
    const Place place = is_leaf ? leaf(leaves++) : static_cast<Place>(branches.size());
    if (!is_leaf) branches.push_back(i);
    if (!numbers.add(trees[i], ids[i], place))
      return in.fault(fmt::format("node {} of tree {} is there twice", ids[i], trees[i]));
    if (roots.emplace(trees[i], place).second) forest.roots.push_back(place);
  }
  for (const std::size_t i : branches) {
    const auto branch = position_of(kBranchNames, modes[i]);
    if (!branch) return in.fault(fmt::format("a node has the mode {}", modes[i]));
    const auto then = numbers.find(trees[i], yes[i]), otherwise = numbers.find(trees[i], no[i]);
    if (!then || !otherwise)
      return in.fault(fmt::format("tree {} has no node {}", trees[i], then ? no[i] : yes[i]));
    forest.nodes.push_back({.branch = static_cast<Branch>(*branch),
                            .missing_is_true = entry(missing, i),
                            .feature = features[i],
                            .value = values[i],
                            .yes = *then,
                            .no = *otherwise});
  }

  const Ints targets = in.ints("target_ids"), at = in.ints("target_nodeids");
  const Ints of_tree = in.ints("target_treeids");
  const Floats weights = numbers_of(in, "target_weights");
  if (at.size() != targets.size() || of_tree.size() != targets.size() ||
      weights.size() != targets.size())
    return in.fault(fmt::format("there are {} votes, {} weights", targets.size(), weights.size()),
                    "the lists of votes must be equally long");
  std::vector<std::vector<Vote>> votes(leaves);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto place = numbers.find(of_tree[i], at[i]);
    if (!place) return in.fault(fmt::format("tree {} has no node {}", of_tree[i], at[i]));
    if (*place < 0)
      votes[static_cast<std::size_t>(-1 - *place)].push_back({targets[i], weights[i]});
  }
  for (const std::vector<Vote>& own : votes) {
    forest.first_vote.push_back(forest.votes.size());
    forest.votes.insert(forest.votes.end(), own.begin(), own.end());
  }
  forest.first_vote.push_back(forest.votes.size());
  return forest;
}

Expected<Forest> indexed_forest(const Arguments& in) {
  const Tensor &modes = in.attrs().tensor("nodes_modes"),
               &splits = in.attrs().tensor("nodes_splits");
  const Tensor& weights = in.attrs().tensor("leaf_weights");
  const Ints features = in.ints("nodes_featureids"), yes = in.ints("nodes_truenodeids");
  const Ints no = in.ints("nodes_falsenodeids"), yes_leaf = in.ints("nodes_trueleafs");
  const Ints no_leaf = in.ints("nodes_falseleafs"), targets = in.ints("leaf_targetids");
  const Ints missing = in.ints("nodes_missing_value_tracks_true");
  const std::int64_t count = modes.count();
  if (is_float(modes.dtype) || modes.dtype == DType::String || !is_float(splits.dtype) ||
      !is_float(weights.dtype))
    return in.fault("nodes_modes, nodes_splits or leaf_weights has a wrong type");
  for (const std::int64_t size : {splits.count(), std::ssize(features), std::ssize(yes),
                                  std::ssize(no), std::ssize(yes_leaf), std::ssize(no_leaf)})
    if (size != count)
      return in.fault(
          fmt::format("there are {} modes of nodes and {} of another list", count, size),
          "the lists nodes_* must be equally long");
  if (weights.count() != std::ssize(targets))
    return in.fault(fmt::format("{} leaves have {} weights", targets.size(), weights.count()));

  Forest forest;
  const std::int64_t aggregate = in.attrs().i("aggregate_function");
  if (aggregate < 0 || aggregate > 3)
    return in.fault(fmt::format("aggregate_function is {}", aggregate), "it must be 0, 1, 2 or 3");
  forest.aggregate = static_cast<Aggregate>(aggregate);
  if (in.attrs().has("n_targets")) forest.targets = in.attrs().i("n_targets");
  for (std::size_t i = 0; i < targets.size(); ++i) {
    forest.first_vote.push_back(i);
    forest.votes.push_back({targets[i], number_at(weights, static_cast<std::int64_t>(i))});
  }
  forest.first_vote.push_back(targets.size());
  if (in.attrs().has("membership_values")) {
    const Tensor& members = in.attrs().tensor("membership_values");
    std::vector<double> set;
    for (std::int64_t i = 0; i < members.count(); ++i) {
      const double member = number_at(members, i);
      if (!std::isnan(member)) {
        set.push_back(member);
        continue;
      }
      std::ranges::sort(set);
      forest.sets.push_back(std::exchange(set, {}));
    }
    if (!set.empty()) {
      std::ranges::sort(set);
      forest.sets.push_back(std::move(set));
    }
  }
  const auto place = [&](std::int64_t index, bool is_leaf) -> std::optional<Place> {
    if (index < 0 || index >= (is_leaf ? std::ssize(targets) : count)) return std::nullopt;
    return is_leaf ? leaf(static_cast<std::size_t>(index)) : index;
  };
  std::size_t sets = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t mode = integer_at(modes, i);
    if (mode < 0 || mode > 6) return in.fault(fmt::format("a node has the mode {}", mode));
    Node node{.branch = static_cast<Branch>(mode),
              .missing_is_true = entry(missing, at),
              .feature = features[at],
              .value = number_at(splits, i)};
    if (node.branch == Branch::Member) node.members = sets++;
    const auto then = place(yes[at], yes_leaf[at] != 0),
               otherwise = place(no[at], no_leaf[at] != 0);
    if (!then || !otherwise)
      return in.fault(fmt::format("node {} leads to one that is not there", i));
    node.yes = *then;
    node.no = *otherwise;
    forest.nodes.push_back(node);
  }
  if (sets != forest.sets.size())
    return in.fault(fmt::format("{} nodes look for members of {} sets", sets, forest.sets.size()));
  for (const std::int64_t root : in.ints("tree_roots")) {
    const auto found = place(root, false);
    if (!found) return in.fault(fmt::format("there is no node {} to be a root", root));
    forest.roots.push_back(*found);
  }
  return forest;
}

}  // namespace

Results ml_tree_ensemble(const Call& call) {
  const Arguments in(call, "ml_tree_ensemble");
  TESSERA_TRY(const Tensor x, in.float_tensor(0));
  TESSERA_TRY(const Forest forest, indexed_forest(in));
  return run(in, forest, x.dtype);
}

Results ml_tree_ensemble_regressor(const Call& call) {
  const Arguments in(call, "ml_tree_ensemble_regressor");
  TESSERA_TRY_DONE(in.number_tensor(0));
  TESSERA_TRY(const Forest forest, numbered_forest(in));
  return run(in, forest, DType::F32);
}

}  // namespace tessera::host
