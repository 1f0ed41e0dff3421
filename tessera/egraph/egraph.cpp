#include "tessera/egraph/egraph.h"

#include <algorithm>
#include <set>

#include "tessera/ir/place.h"
#include "tessera/support/check.h"
#include "tessera/support/hash.h"

namespace tessera::egraph {
namespace {

/// Whether the operands of two nodes are the same one by one, or crosswise.
template <class Equal>
bool same_in_order(const ENode& a, const ENode& b, const Equal& equal) {
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (!equal(a.inputs[i], b.inputs[i])) return false;
  return true;
}

}  // namespace

ClassId EGraph::find(ClassId id) const {
  if (!id.present()) return id;
  std::uint32_t at = id.index;
  while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
  return {at};
}

std::vector<ClassId> EGraph::classes() const {
  std::vector<ClassId> all;
  for (std::uint32_t i = 0; i < classes_.size(); ++i)
    if (parents_[i] == i) all.push_back({i});
  return all;
}

std::span<const NodeId> EGraph::nodes_of(const OpDef& op) const {
  const auto it = by_op_.find(&op);
  return it == by_op_.end() ? std::span<const NodeId>() : it->second;
}

std::uint32_t EGraph::origin(const std::string& name) {
  const auto [it, added] = origin_of_.try_emplace(name, origins_.size());
  if (added) origins_.push_back(name);
  return it->second;
}

ClassId EGraph::add_class(EClass made) {
  const auto index = static_cast<std::uint32_t>(classes_.size());
  classes_.push_back(std::move(made));
  parents_.push_back(index);
  proof_.emplace_back();
  ++class_count_;
  return {index};
}

ClassId EGraph::add_input(const Graph& graph, ValueId input, NewInput how) {
  return add_class(
      {.type = &graph.type(input), .input = inputs_++, .from_constants = how.constant});
}

ClassId EGraph::add_constant(const Graph& graph, ValueId constant) {
  const Tensor* tensor = analysis_->interned(*graph.constant(constant));
  const auto [it, added] = constants_.try_emplace(tensor);
  if (added)
    it->second = add_class(
        {.type = &graph.type(constant), .input = {}, .constant = tensor, .from_constants = true});
  return it->second;
}

ClassId EGraph::like(const Type* type) {
  const auto [it, added] = likes_.try_emplace(type);
  if (added) it->second = add_class({.type = type, .input = {}, .from_constants = true});
  return it->second;
}

std::vector<ClassId> EGraph::add(const Graph& graph) {
  std::vector<ClassId> inputs;
  for (const ValueId id : graph.inputs()) inputs.push_back(add_input(graph, id));
  Premises premises;
  return add(graph, inputs, 0, premises);
}

std::vector<ClassId> EGraph::add(const Graph& graph, std::span<const ClassId> inputs,
                                 std::uint32_t origin, Premises& premises) {
  const auto values = place_nodes<ClassId>(
      graph, inputs, [&](ValueId id) { return add_constant(graph, id); },
      [&](const GraphNode& node, std::vector<ClassId> operands) {
        ENode made = made_of(graph, node, std::move(operands));
        made.origin = origin;
        std::vector<const Type*> results;
        for (const ValueId id : graph.outputs(node)) results.push_back(&graph.type(id));
        return std::optional(nodes_[add_node(std::move(made), results, premises)].outputs);
      });
  return *values;
}

ENode EGraph::made_of(const Graph& graph, const GraphNode& node, std::vector<ClassId> inputs) {
  std::vector<Operand> operands;
  for (const ClassId id : inputs) {
    if (!id.present()) {
      operands.emplace_back();
      continue;
    }
    const EClass& found = at(id);
    const bool told = found.constant != nullptr && found.constant->count() <= kSmallTensor;
    operands.push_back({found.type, told ? found.constant : nullptr});
  }
  const auto subgraphs = graph.subgraphs(node);
  ENode made{.application = &analysis_->of(*node.op, *node.attrs, operands),
             .inputs = std::move(inputs),
             .outputs = {},
             .subgraphs = {subgraphs.begin(), subgraphs.end()}};
  for (std::size_t i = 0; i < made.inputs.size(); ++i)
    if (!made.application->reads[i]) made.inputs[i] = like(at(made.inputs[i]).type);
  return made;
}

NodeId EGraph::add_node(ENode node, const std::vector<const Type*>& results, Premises& premises) {
  const std::uint64_t hash = hash_of(node);
  if (const auto found = lookup(hash, node)) {
    const ENode& there = nodes_[*found];
    const auto is_type = [&](ClassId id, const Type* type) { return at(id).type == type; };
    if (std::ranges::equal(there.outputs, results, is_type)) {
      const Premises pairs = operand_pairs(node, there);
      premises.insert(premises.end(), pairs.begin(), pairs.end());
      return *found;
    }
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  for (std::uint32_t i = 0; i < results.size(); ++i)
    node.outputs.push_back(add_class({.type = results[i], .input = {}, .members = {{id, i}}}));
  for (const ClassId input : node.inputs)
    if (input.present()) classes_[find(input).index].users.push_back(id);
  by_hash_[hash].push_back(id);
  by_op_[&node.op()].push_back(id);
  nodes_.push_back(std::move(node));
  live_.push_back(true);
  ++live_count_;
  note_constants(id);
  return id;
}

std::uint64_t EGraph::hash_of(const ENode& node) const {
  Hasher hasher;
  hasher.add(reinterpret_cast<std::uintptr_t>(&node.op()));
  hasher.add(reinterpret_cast<std::uintptr_t>(&node.attrs()));
  if (node.application->commutes) {
    const auto [least, most] = std::minmax({find(node.inputs[0]), find(node.inputs[1])});
    hasher.add(least.index);
    hasher.add(most.index);
    return hasher.value();
  }
  for (const ClassId input : node.inputs) hasher.add(find(input).index);
  return hasher.value();
}

bool EGraph::same(const ENode& a, const ENode& b) const {
  if (&a.op() != &b.op() || &a.attrs() != &b.attrs() || !a.op().pure ||
      a.inputs.size() != b.inputs.size() || a.subgraphs != b.subgraphs)
    return false;
  const auto equal_classes = [&](ClassId x, ClassId y) { return equal(x, y); };
  return same_in_order(a, b, equal_classes) ||
         (a.application->commutes && equal(a.inputs[0], b.inputs[1]) &&
          equal(a.inputs[1], b.inputs[0]));
}

Premises EGraph::operand_pairs(const ENode& a, const ENode& b) const {
  const bool crossed = a.application->commutes &&
                       !(equal(a.inputs[0], b.inputs[0]) && equal(a.inputs[1], b.inputs[1]));
  Premises pairs;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const ClassId other = b.inputs[crossed ? 1 - i : i];
    if (a.inputs[i] != other) pairs.emplace_back(a.inputs[i], other);
  }
  return pairs;
}

std::optional<NodeId> EGraph::lookup(std::uint64_t hash, const ENode& node) const {
  const auto it = by_hash_.find(hash);
  if (it == by_hash_.end()) return std::nullopt;
  for (const NodeId id : it->second)
    if (live_[id] && &nodes_[id] != &node && same(nodes_[id], node)) return id;
  return std::nullopt;
}

bool EGraph::unite(ClassId a, ClassId b, Reason reason) {
  ClassId into = find(a), from = find(b);
  if (into == from) return true;
  if (classes_[into.index].type != classes_[from.index].type) return false;
  link(a, b, std::move(reason));
  const auto weight = [&](ClassId id) {
    const EClass& c = classes_[id.index];
    return c.users.size() + c.members.size();
  };
  if (weight(into) < weight(from)) std::swap(into, from);

  EClass &kept = classes_[into.index], gone = std::exchange(classes_[from.index], {});
  parents_[from.index] = into.index;
  --class_count_;
  dirty_.insert(dirty_.end(), gone.users.begin(), gone.users.end());
  if (kept.from_constants != gone.from_constants)
    dirty_.insert(dirty_.end(), kept.users.begin(), kept.users.end());
  if (!kept.input) kept.input = gone.input;
  if (kept.constant == nullptr) kept.constant = gone.constant;
  kept.from_constants |= gone.from_constants;
  kept.members.insert(kept.members.end(), gone.members.begin(), gone.members.end());
  kept.users.insert(kept.users.end(), gone.users.begin(), gone.users.end());
  return true;
}

void EGraph::rebuild() {
  std::vector<NodeId> dead;
  while (!dirty_.empty()) {
    std::vector<NodeId> nodes = std::exchange(dirty_, {});
    std::ranges::sort(nodes);
    const auto repeated = std::ranges::unique(nodes);
    nodes.erase(repeated.begin(), repeated.end());
    for (const NodeId id : nodes) {
      if (!live_[id]) continue;
      if (const auto gone = repair(id)) dead.push_back(*gone);
    }
  }
  remove_dead(dead);
}

/// A node after its operands were united: the same as another (the later one goes), or to be found
/// by a new hash.
std::optional<NodeId> EGraph::repair(NodeId id) {
  const std::uint64_t hash = hash_of(nodes_[id]);
  std::optional<NodeId> gone;
  if (const auto other = lookup(hash, nodes_[id])) {
    const ENode &mine = nodes_[id], &there = nodes_[*other];
    const Reason reason{.premises = operand_pairs(mine, there)};
    bool united = mine.outputs.size() == there.outputs.size();
    for (std::size_t i = 0; united && i < mine.outputs.size(); ++i)
      united = unite(there.outputs[i], mine.outputs[i], reason);
    if (united) {
      gone = std::max(id, *other);
      live_[*gone] = false;
      --live_count_;
    }
  }
  if (gone == id) return gone;
  std::vector<NodeId>& alike = by_hash_[hash];
  if (std::ranges::find(alike, id) == alike.end()) alike.push_back(id);
  note_constants(id);
  return gone;
}

void EGraph::note_constants(NodeId id) {
  const ENode& node = nodes_[id];
  if (!node.op().pure || !std::ranges::all_of(node.inputs, [&](ClassId input) {
        return !input.present() || at(input).from_constants;
      }))
    return;
  for (const ClassId output : node.outputs) {
    EClass& made = classes_[find(output).index];
    if (std::exchange(made.from_constants, true)) continue;
    dirty_.insert(dirty_.end(), made.users.begin(), made.users.end());
  }
}

void EGraph::remove_dead(const std::vector<NodeId>& dead) {
  std::set<ClassId> touched;
  for (const NodeId id : dead)
    for (const auto* list : {&nodes_[id].inputs, &nodes_[id].outputs})
      for (const ClassId value : *list)
        if (value.present()) touched.insert(find(value));
  for (const ClassId id : touched) {
    EClass& c = classes_[id.index];
    std::erase_if(c.members, [&](const Member& member) { return !live_[member.node]; });
    std::erase_if(c.users, [&](NodeId user) { return !live_[user]; });
  }
}

/// Adds an edge to the forest of proofs. The tree of `a` is turned so that `a` is its root.
void EGraph::link(ClassId a, ClassId b, Reason reason) {
  Edge edge{.to = b, .reason = std::move(reason)};
  for (ClassId at = a; at.present();) {
    std::swap(proof_[at.index], edge);
    const ClassId next = edge.to;
    edge.to = at;
    at = next;
  }
}

std::vector<std::string> EGraph::explain(ClassId a, ClassId b) const {
  std::vector<std::string> names;
  std::set<ClassId> used;  // where edges begin
  Premises open = {{a, b}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    TESSERA_CHECK(equal(from, to), "there is nothing to explain");
    std::vector<ClassId> up;
    for (ClassId at = from; at.present(); at = proof_[at.index].to) up.push_back(at);
    ClassId meeting = to;
    while (std::ranges::find(up, meeting) == up.end()) meeting = proof_[meeting.index].to;
    for (const ClassId start : {from, to})
      for (ClassId at = start; at != meeting; at = proof_[at.index].to) {
        if (!used.insert(at).second) continue;
        const Reason& reason = proof_[at.index].reason;
        const std::string& name = origins_[reason.origin];
        if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
        open.insert(open.end(), reason.premises.begin(), reason.premises.end());
      }
  }
  return names;
}

}  // namespace tessera::egraph
