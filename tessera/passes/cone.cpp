#include "tessera/passes/cone.h"

#include <algorithm>

#include "tessera/expr/walk.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

constexpr std::size_t kMostNodes = 48;       // of a cone
constexpr std::int64_t kMostUniform = 4096;  // elements of a constant that may be one number

Functions bit(Fn fn) {
  return Functions{1} << static_cast<unsigned>(fn);
}

/// The functions of numbers in a definition: arithmetic on positions does not count.
Functions functions_of(const Definition& definition) {
  Functions all = 0;
  const auto visit = [&](const Scalar& scalar) {
    if (const auto* apply = std::get_if<node::Apply>(&scalar.node()))
      if (std::ranges::any_of(apply->args,
                              [](const Scalar& arg) { return arg.sort() == Sort::Value; }))
        all |= bit(apply->fn);
    if (std::holds_alternative<node::Component>(scalar.node())) all |= kFolds;
  };
  for (const Output& output : definition.outputs) for_each_within(output.value, visit);
  return all;
}

std::vector<ValueInfo> known_inputs(const Graph& graph, const GraphNode& node) {
  std::vector<ValueInfo> inputs;
  for (const ValueId id : graph.inputs(node)) {
    const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
    if (constant != nullptr)
      inputs.push_back(constant_info(*constant));
    else
      inputs.push_back(id.present() ? ValueInfo{.type = graph.type(id)}
                                    : ValueInfo{.present = false});
  }
  return inputs;
}

Functions functions_of(const Graph& graph, const GraphNode& node) {
  const std::vector<ValueInfo> inputs = known_inputs(graph, node);
  if (node.op->kind() == OpDef::Kind::Composite) {
    Functions all = 0;
    if (const auto body = body_of(*node.op, *node.attrs, inputs, 1))
      for (const GraphNode& inner : body->nodes()) all |= functions_of(*body, inner);
    return all;
  }
  const auto signature = signature_of(inputs);
  if (node.op->kind() != OpDef::Kind::Core || !signature) return 0;
  const auto definition = node.op->define(*node.attrs, *signature);
  return definition ? functions_of(*definition) : 0;
}

/// The one number that all elements are.
std::optional<double> uniform(const Tensor& tensor) {
  if (!is_float(tensor.dtype) || tensor.count() < 1 || tensor.count() > kMostUniform) return {};
  const double first = number_at(tensor, 0);
  for (std::int64_t i = 1; i < tensor.count(); ++i)
    if (number_at(tensor, i) != first) return std::nullopt;
  return first;
}

}  // namespace

Functions functions(std::initializer_list<Fn> list) {
  Functions all = 0;
  for (const Fn fn : list) all |= bit(fn);
  return all;
}

Cones::Cones(const Graph& graph) : graph_(graph), users_(graph.value_count()) {
  std::map<std::pair<const OpDef*, const Attrs*>, Functions> known;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    for (const ValueId id : graph.inputs(node))
      if (id.present()) users_[id.index].push_back(n);
    const auto [it, added] = known.try_emplace({node.op, node.attrs}, 0);
    if (added) it->second = functions_of(graph, node);
    applied_.push_back(it->second);
  }
  for (const ValueId id : graph.outputs()) users_[id.index].push_back(graph.nodes().size());
}

std::optional<std::size_t> Cones::producer_of(ValueId value) const {
  const GraphNode* producer = value.present() ? graph_.producer(value) : nullptr;
  if (producer == nullptr) return std::nullopt;
  return static_cast<std::size_t>(producer - graph_.nodes().data());
}

bool Cones::is_parameter(ValueId value) const {
  if (const Tensor* constant = graph_.constant(value))
    return is_float(constant->dtype) && !uniform(*constant);
  return false;
}

bool Cones::is_closed(const std::set<std::size_t>& nodes, ValueId output) const {
  return std::ranges::all_of(nodes, [&](std::size_t n) {
    return std::ranges::all_of(graph_.outputs(graph_.nodes()[n]), [&](ValueId id) {
      return id == output || std::ranges::all_of(users_[id.index], [&](std::size_t user) {
               return nodes.contains(user);
             });
    });
  });
}

Cone Cones::made(const std::set<std::size_t>& nodes, ValueId output, ValueId input) const {
  Cone cone{.output = output, .input = input, .nodes = {nodes.begin(), nodes.end()}};
  const std::size_t rank = graph_.type(input).shape->size();
  for (const std::size_t n : nodes) {
    const GraphNode& node = graph_.nodes()[n];
    cone.applied |= applied_[n];
    for (const ValueId id : graph_.inputs(node)) {
      const Tensor* constant = id.present() ? graph_.constant(id) : nullptr;
      if (constant == nullptr) continue;
      if (is_parameter(id)) {
        if (std::ranges::find(cone.parameters, id) == cone.parameters.end())
          cone.parameters.push_back(id);
      } else if (is_float(constant->dtype) && constant->count() > 0) {
        cone.numbers.push_back(number_at(*constant, 0));
      }
    }
    if ((applied_[n] & kFolds) == 0 || graph_.inputs(node).empty()) continue;
    // The axes along which it folds go away or stay with one position.
    const Type &from = graph_.type(graph_.inputs(node)[0]),
               &to = graph_.type(graph_.outputs(node)[0]);
    if (!from.is_ranked_tensor() || !to.is_ranked_tensor() || from.shape->size() != rank) continue;
    std::size_t kept = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const bool same_rank = to.shape->size() == rank;
      const std::size_t at = same_rank ? axis : kept;
      if (at < to.shape->size() && (*to.shape)[at] == (*from.shape)[axis])
        ++kept;
      else
        cone.axes.insert(axis);
    }
  }
  return cone;
}

std::vector<Cone> Cones::ending_in(std::size_t node) const {
  std::vector<Cone> found;
  const auto results = graph_.outputs(graph_.nodes()[node]);
  if (results.size() != 1 || !graph_.type(results[0]).is_ranked_tensor()) return found;
  const ValueId output = results[0];
  std::set<std::size_t> nodes;
  std::set<ValueId> frontier = {output};
  // The latest value goes first, so that when one is left, all ways lead through it.
  while (!frontier.empty() && nodes.size() < kMostNodes) {
    const ValueId last = *std::prev(frontier.end());
    frontier.erase(last);
    const auto producer = producer_of(last);
    if (!producer) return found;
    const GraphNode& from = graph_.nodes()[*producer];
    if (from.op->kind() == OpDef::Kind::Opaque || from.op->kind() == OpDef::Kind::Control ||
        !from.op->pure)
      return found;
    nodes.insert(*producer);
    for (const ValueId id : graph_.inputs(from))
      if (id.present() && graph_.constant(id) == nullptr) frontier.insert(id);
    if (frontier.size() != 1 || graph_.type(*frontier.begin()) != graph_.type(output)) continue;
    if (is_closed(nodes, output)) found.push_back(made(nodes, output, *frontier.begin()));
  }
  return found;
}

bool Cones::is_contraction(std::size_t node) const {
  const Functions product = kFolds | bit(Fn::Mul);
  const auto inputs = graph_.inputs(graph_.nodes()[node]);
  return (applied_[node] & product) == product && inputs.size() == 2 && inputs[0].present() &&
         inputs[1].present() && graph_.constant(inputs[0]) == nullptr &&
         graph_.constant(inputs[1]) == nullptr;
}

bool Cones::is_transpose_or_scale(std::size_t n) const {
  const GraphNode& node = graph_.nodes()[n];
  const Functions scaling = bit(Fn::Mul) | bit(Fn::Div) | bit(Fn::Neg);
  const Functions applied = applied_[n];
  const Type& result = graph_.type(graph_.outputs(node)[0]);
  int values = 0;
  for (const ValueId id : graph_.inputs(node)) {
    if (!id.present()) continue;
    const Tensor* constant = graph_.constant(id);
    if (constant != nullptr ? applied == 0 || !uniform(*constant) : ++values > 1) return false;
  }
  if (node.op->kind() != OpDef::Kind::Core || values != 1) return false;
  if (applied != 0) return (applied & ~scaling) == 0;
  const Type& from = graph_.type(graph_.inputs(node)[0]);
  if (!from.is_ranked_tensor() || !result.is_ranked_tensor()) return false;
  Shape turned = *from.shape;
  if (turned.size() < 2 || turned.size() != result.shape->size()) return false;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return turned == *result.shape && node.op == op::transpose;
}

std::optional<Cone> Cones::over(const std::set<std::size_t>& nodes, ValueId output) const {
  if (!is_closed(nodes, output)) return std::nullopt;
  std::vector<ValueId> inputs;
  for (const std::size_t n : nodes)
    for (const ValueId id : graph_.inputs(graph_.nodes()[n])) {
      if (!id.present() || std::ranges::find(inputs, id) != inputs.end()) continue;
      const Tensor* constant = graph_.constant(id);
      if (constant != nullptr && (uniform(*constant) || !is_float(constant->dtype))) continue;
      if (const auto from = producer_of(id); from && nodes.contains(*from)) continue;
      if (!graph_.type(id).is_ranked_tensor()) return std::nullopt;
      inputs.push_back(id);
    }
  if (inputs.empty()) return std::nullopt;
  Cone cone = made(nodes, output, inputs[0]);
  cone.parameters.assign(inputs.begin() + 1, inputs.end());
  return cone;
}

std::vector<Cone> Cones::after_matmuls(std::size_t node) const {
  std::vector<Cone> found;
  const auto results = graph_.outputs(graph_.nodes()[node]);
  if (results.size() != 1 || !graph_.type(results[0]).is_ranked_tensor()) return found;
  // Predecessors of the node, up to a distance.
  std::set<std::size_t> before = {node};
  for (std::size_t n = node + 1; n-- > (node > 2 * kMostNodes ? node - 2 * kMostNodes : 0);)
    if (before.contains(n))
      for (const ValueId id : graph_.inputs(graph_.nodes()[n]))
        if (const auto from = producer_of(id)) before.insert(*from);
  for (const std::size_t product : before) {
    if (product == node || !is_contraction(product)) continue;
    std::set<std::size_t> nodes = {product};
    Functions applied = 0;
    for (std::size_t n = product + 1; n <= node; ++n) {
      if (!before.contains(n)) continue;
      for (const ValueId id : graph_.inputs(graph_.nodes()[n]))
        if (const auto from = producer_of(id); from && nodes.contains(*from)) nodes.insert(n);
    }
    bool plain = nodes.contains(node) && nodes.size() <= kMostNodes;
    for (const std::size_t n : nodes) {
      applied |= applied_[n];
      const auto kind = graph_.nodes()[n].op->kind();
      plain = plain && (kind == OpDef::Kind::Core || kind == OpDef::Kind::Composite);
    }
    // Comparisons of scores (IsNaN, == -inf) give fully masked rows another result than softmax,
    // which proofs over the reals do not distinguish: such cones are not attention.
    const Functions comparisons = bit(Fn::Equal) | bit(Fn::Less) | bit(Fn::LessEqual);
    if (!plain || (applied & bit(Fn::Exp)) == 0 || (applied & comparisons) != 0) continue;
    if (auto cone = over(nodes, results[0])) found.push_back(*std::move(cone));
    // Absorbs nodes that scale or transpose the operands.
    for (bool more = true; more;) {
      more = false;
      for (const std::size_t n : std::vector(nodes.begin(), nodes.end()))
        for (const ValueId id : graph_.inputs(graph_.nodes()[n])) {
          const auto from = producer_of(id);
          if (!from || nodes.contains(*from) || !is_transpose_or_scale(*from)) continue;
          std::set<std::size_t> wider = nodes;
          wider.insert(*from);
          if (!is_closed(wider, results[0])) continue;
          nodes = std::move(wider);
          more = true;
        }
    }
    if (auto cone = over(nodes, results[0]);
        cone && (found.empty() || found.back().nodes.size() < cone->nodes.size()))
      found.push_back(*std::move(cone));
  }
  return found;
}

std::optional<Cone> Cones::rotation(std::size_t node) const {
  // A concatenation chooses.
  const Functions allowed =
      bit(Fn::Mul) | bit(Fn::Add) | bit(Fn::Sub) | bit(Fn::Neg) | bit(Fn::Select);
  const auto results = graph_.outputs(graph_.nodes()[node]);
  if (results.size() != 1 || !graph_.type(results[0]).is_ranked_tensor()) return std::nullopt;
  const Type& type = graph_.type(results[0]);
  std::set<std::size_t> nodes;
  std::set<ValueId> open = {results[0]}, taken;  // what is still to be looked at, and what is not
  std::optional<Cone> found;
  const auto is_inside = [&](std::size_t user) { return nodes.contains(user); };
  while (!open.empty() && nodes.size() < 24) {
    const ValueId last = *std::prev(open.end());
    open.erase(last);
    const auto producer = producer_of(last);
    const bool opens = producer && graph_.nodes()[*producer].op->kind() == OpDef::Kind::Core &&
                       (applied_[*producer] & ~allowed) == 0 &&
                       (last == results[0] || std::ranges::all_of(users_[last.index], is_inside));
    if (!opens) {
      taken.insert(last);
      continue;
    }
    nodes.insert(*producer);
    for (const ValueId id : graph_.inputs(graph_.nodes()[*producer]))
      if (id.present() && graph_.constant(id) == nullptr) open.insert(id);
    std::set<ValueId> all = open;
    all.insert(taken.begin(), taken.end());
    if (all.size() > 3 ||
        std::ranges::none_of(all, [&](ValueId id) { return graph_.type(id) == type; }))
      continue;
    // Its parts change places.
    if (std::ranges::none_of(nodes, [&](std::size_t inner) { return applied_[inner] == 0; }))
      continue;
    auto cone = over(nodes, results[0]);
    if (cone && cone->parameters.size() == 2) found = std::move(cone);
  }
  return found;
}

Graph Cone::graph(const Graph& whole) const {
  Graph made;
  std::map<ValueId, ValueId> mapped;
  mapped[input] = made.add_input(whole.type(input), {});
  for (const ValueId id : parameters) mapped[id] = made.add_input(whole.type(id), {});
  for (const std::size_t n : nodes) {
    const GraphNode& node = whole.nodes()[n];
    const std::vector<ValueId> results = made.add_node(copied_node(whole, node, [&](ValueId id) {
      if (!mapped.contains(id)) mapped[id] = made.add_constant(*whole.constant(id), {});
      return mapped[id];
    }));
    for (std::size_t i = 0; i < results.size(); ++i) mapped[whole.outputs(node)[i]] = results[i];
  }
  made.set_outputs({mapped[output]});
  return made;
}

}  // namespace tessera::passes
