#include "tessera/passes/cone.h"

#include <algorithm>

#include "tessera/expr/walk.h"
#include "tessera/ir/expand.h"

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

std::vector<Known> known_inputs(const Graph& graph, const GraphNode& node) {
  std::vector<Known> inputs;
  for (const ValueId id : graph.inputs(node)) {
    const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
    if (constant != nullptr)
      inputs.push_back(known(*constant));
    else
      inputs.push_back(id.present() ? Known{.type = graph.type(id)} : Known{.present = false});
  }
  return inputs;
}

Functions functions_of(const Graph& graph, const GraphNode& node) {
  const std::vector<Known> inputs = known_inputs(graph, node);
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
    const GraphNode* producer = graph_.producer(last);
    if (producer == nullptr || producer->op->kind() == OpDef::Kind::Opaque ||
        producer->op->kind() == OpDef::Kind::Control || !producer->op->pure)
      return found;
    nodes.insert(static_cast<std::size_t>(producer - graph_.nodes().data()));
    for (const ValueId id : graph_.inputs(*producer))
      if (id.present() && graph_.constant(id) == nullptr) frontier.insert(id);
    if (frontier.size() != 1 || graph_.type(*frontier.begin()) != graph_.type(output)) continue;
    if (is_closed(nodes, output)) found.push_back(made(nodes, output, *frontier.begin()));
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
    Graph::NewNode copy{.op = node.op, .attrs = *node.attrs};
    for (const ValueId id : whole.inputs(node)) {
      if (id.present() && !mapped.contains(id))
        mapped[id] = made.add_constant(*whole.constant(id), {});
      copy.inputs.push_back(id.present() ? mapped[id] : id);
    }
    for (const ValueId id : whole.outputs(node)) copy.outputs.push_back(whole.type(id));
    const std::vector<ValueId> results = made.add_node(std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i) mapped[whole.outputs(node)[i]] = results[i];
  }
  made.set_outputs({mapped[output]});
  return made;
}

}  // namespace tessera::passes
