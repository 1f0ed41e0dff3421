#include "tessera/passes/rewriter.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/ir/control.h"
#include "tessera/ir/place.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"
#include "tessera/passes/dce.h"

namespace tessera::passes {

namespace {

/// A type with the sizes that are told as numbers or, where they are not, inferred.
Type refined(Type told, const Type& inferred) {
  if (told.kind == Type::Kind::Unknown) return inferred;
  if (told.kind != inferred.kind || !inferred.shape) return told;
  if (!told.shape) told.shape = inferred.shape;
  for (std::size_t i = 0; i < std::min(told.shape->size(), inferred.shape->size()); ++i) {
    const Dim& size = (*inferred.shape)[i];
    Dim& said = (*told.shape)[i];
    if (!said.constant() && !size.is_undefined()) said = size;
  }
  return told;
}

bool is_whole(const Type& type) {
  return type.is_ranked_tensor() &&
         std::ranges::none_of(*type.shape, [](const Dim& dim) { return dim.is_undefined(); });
}

}  // namespace

Rewriter::Rewriter(const Graph& from, std::vector<Rewrite> rewrites)
    : from_(from),
      rewrites_(std::move(rewrites)),
      mapped_(from.value_count()),
      pending_uses_(from.value_count()),
      rewrites_left_(1000 + 20 * from.nodes().size()) {
  made_.set_name(from.name());
  for (const GraphNode& node : from.nodes())
    for (const ValueId id : from.inputs(node))
      if (id.present()) ++pending_uses_[id.index];
  for (const ValueId id : from.outputs()) ++pending_uses_[id.index];
  for (const ValueId id : from.inputs()) {
    const ValueId input = made_.add_input(from.type(id), {});
    add_value({.type = from.type(id)}, false);
    replace({&id, 1}, {input});
  }
}

void Rewriter::add_value(ValueInfo known, bool constant) {
  known_.push_back(std::move(known));
  constant_.push_back(constant);
  uses_.emplace_back();
}

std::vector<ValueInfo> Rewriter::known(std::span<const ValueId> values) const {
  std::vector<ValueInfo> all;
  for (const ValueId id : values)
    all.push_back(id.present() ? known_[id.index] : ValueInfo{.present = false});
  return all;
}

bool Rewriter::is_used_within(ValueId value, const std::set<const GraphNode*>& nodes) const {
  const Use& use = uses_[value.index];
  return use.pending == 0 && std::ranges::all_of(use.by, [&](std::uint32_t user) {
           return nodes.contains(&made_.nodes()[user]);
         });
}

std::size_t Rewriter::uses(ValueId value) const {
  return uses_[value.index].pending + uses_[value.index].by.size();
}

ValueId Rewriter::constant(Tensor tensor) {
  ValueInfo known = constant_info(tensor);
  // Inference asks for numbers; what follows from weights is computed by folding, which is faster.
  constexpr std::int64_t kMostNumbers = 16;
  if (known.content && is_float(tensor.dtype) && tensor.count() > kMostNumbers)
    known.content.reset();
  add_value(std::move(known), true);
  return made_.add_constant(std::move(tensor), {});
}

ValueId Rewriter::mapped(ValueId old) {
  if (!old.present() || mapped_[old.index].present())
    return old.present() ? mapped_[old.index] : old;
  const Tensor* weight = from_.constant(old);
  TESSERA_CHECK(weight != nullptr, "{} is used before it is made", from_.name(old));
  replace({&old, 1}, {constant(*weight)});
  return mapped_[old.index];
}

void Rewriter::replace(std::span<const ValueId> old, const Results& with) {
  for (std::size_t i = 0; i < old.size(); ++i) {
    mapped_[old[i].index] = with[i];
    uses_[with[i].index].pending += pending_uses_[old[i].index];
    // An input or a weight is not called after a result that it takes the place of.
    const bool kept = from_.producer(old[i]) == nullptr || made_.producer(with[i]) != nullptr;
    if (kept && from_.is_named(old[i]) && !made_.is_named(with[i]))
      made_.set_name(with[i], from_.name(old[i]));
  }
}

std::optional<std::vector<ValueInfo>> Rewriter::inferred(const Graph::NewNode& node) {
  std::vector<ValueInfo> results;
  // Of a node whose types are told, inference may add what integers are, or small constants.
  const auto is_told = [&](const Type& type) {
    return is_float(type.dtype) && is_whole(type) && !refined_;
  };
  const auto is_variable = [&](ValueId id) { return id.present() && !known_[id.index].content; };
  const bool skips = !node.outputs.empty() && std::ranges::all_of(node.outputs, is_told) &&
                     std::ranges::any_of(node.inputs, is_variable);
  if (node.op->kind() != OpDef::Kind::Control && !skips)
    if (auto told = infer(*node.op, node.attrs, known(node.inputs))) results = *std::move(told);
  if (node.outputs.empty()) {
    const bool whole =
        std::ranges::all_of(results, [](const ValueInfo& result) { return is_whole(result.type); });
    if (results.empty() || !whole) return std::nullopt;
    return results;
  }
  results.resize(node.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].type = refined(node.outputs[i], results[i].type);
    if (results[i].type == node.outputs[i]) continue;
    refined_ = true;
    if (!results[i].type.shape) continue;
    // A size that stays open gets a name that no other has.
    for (std::size_t axis = 0; axis < results[i].type.shape->size(); ++axis)
      if (Dim& size = (*results[i].type.shape)[axis]; size.is_undefined())
        size = Dim::symbol(fmt::format("_{:x}_{}_{}", from_.hash(), known_.size() + i, axis));
  }
  return results;
}

Rewriter::Results Rewriter::place(Graph::NewNode node, std::vector<ValueInfo> known) {
  const auto index = static_cast<std::uint32_t>(made_.nodes().size());
  node.outputs.clear();
  for (const ValueInfo& result : known) node.outputs.push_back(result.type);
  for (const ValueId id : node.inputs)
    if (id.present()) uses_[id.index].by.push_back(index);
  const bool constant =
      node.op->pure && node.subgraphs.empty() && std::ranges::all_of(node.inputs, [&](ValueId id) {
        return !id.present() || constant_[id.index];
      });
  for (ValueInfo& result : known) add_value(std::move(result), constant);
  dead_.push_back(false);
  return made_.add_node(std::move(node));
}

Rewriter::Results Rewriter::rewritten(Results results) {
  const std::size_t node = made_.nodes().size() - 1;
  for (const Rewrite& rewrite : rewrites_) {
    if (rewrites_left_ == 0) break;
    std::optional<Results> others = rewrite(*this, node);
    if (!others) continue;
    // What takes the place of a result may tell more about itself, not less.
    const bool fits = std::ranges::equal(results, *others, [&](ValueId a, ValueId b) {
      const Type &before = made_.type(a), &after = made_.type(b);
      if (before == after) return true;
      const bool tells = compatible(before, after) && refined(before, after) == after;
      refined_ = refined_ || tells;
      return tells;
    });
    hold(fits ? *others : results);
    for (const ValueId id : fits ? results : *others) drop_if_unused(id);
    release(fits ? *others : results);
    if (!fits) continue;
    --rewrites_left_;
    return *others;
  }
  return results;
}

void Rewriter::hold(const Results& values) {
  for (const ValueId id : values) ++uses_[id.index].pending;
}

void Rewriter::release(const Results& values) {
  for (const ValueId id : values) --uses_[id.index].pending;
}

void Rewriter::drop_if_unused(ValueId value) {
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const GraphNode* producer = made_.producer(id);
    if (producer == nullptr) continue;
    const auto node = static_cast<std::uint32_t>(producer - made_.nodes().data());
    const auto results = made_.outputs(*producer);
    if (dead_[node] || std::ranges::any_of(results, [&](ValueId r) { return uses(r) > 0; }))
      continue;
    dead_[node] = true;
    for (const ValueId input : made_.inputs(*producer)) {
      if (!input.present()) continue;
      std::erase(uses_[input.index].by, node);
      open.push_back(input);
    }
  }
}

std::optional<Rewriter::Results> Rewriter::emit(Graph::NewNode node) {
  std::optional<std::vector<ValueInfo>> known = inferred(node);
  if (!known) return std::nullopt;
  return rewritten(place(std::move(node), *std::move(known)));
}

std::optional<Rewriter::Results> Rewriter::emit(const Graph& graph, const Results& inputs) {
  Results held;  // what later nodes may use
  const auto values = place_nodes<ValueId>(
      graph, inputs, [&](ValueId id) { return constant(*graph.constant(id)); },
      [&](const GraphNode& node, Results operands) {
        Graph::NewNode copy = copied_node(graph, node, [](ValueId id) { return id; });
        copy.inputs = std::move(operands);
        std::optional<Results> results = emit(std::move(copy));
        if (results) {
          hold(*results);
          held.insert(held.end(), results->begin(), results->end());
        }
        return results;
      });
  release(held);
  if (!values) return std::nullopt;
  Results outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back((*values)[id.index]);
  return outputs;
}

std::string Rewriter::where() const {
  const auto results = from_.outputs(from_.nodes()[origin_]);
  return !results.empty() && from_.is_named(results[0]) ? from_.name(results[0]) : "";
}

Expected<Graph> Rewriter::run() {
  for (std::size_t n = 0; n < from_.nodes().size(); ++n) {
    const GraphNode& node = from_.nodes()[n];
    origin_ = n;
    Graph::NewNode copy = copied_node(from_, node, [&](ValueId id) {
      const ValueId operand = mapped(id);
      // Told apart from the use by the new node, which takes the place of this one.
      --uses_[operand.index].pending, --pending_uses_[id.index];
      return operand;
    });
    std::optional<std::vector<ValueInfo>> known = inferred(copy);
    TESSERA_CHECK(known.has_value(), "a node of a valid graph has no types");
    Results results = place(std::move(copy), *std::move(known));
    made_.set_node_name(made_.nodes().size() - 1, from_.node_name(n));
    results = rewritten(std::move(results));
    replace(from_.outputs(node), results);
  }
  return finished();
}

Graph Rewriter::finished() {
  Results outputs;
  std::set<ValueId> taken;
  for (const ValueId id : from_.outputs()) {
    ValueId value = mapped(id);
    // An output keeps its name and is a result of its own; where another value took its place it is
    // that value, copied.
    const bool named = from_.is_named(id) && made_.name(value) != from_.name(id);
    const bool was_result = from_.producer(id) != nullptr && !taken.contains(id);
    const bool plain = made_.producer(value) != nullptr || !was_result;
    if (named || !plain) {
      // A copy of what is known: `place` adds to what it is given a reference into.
      value = place({.op = op::identity, .attrs = {}, .inputs = {value}},
                    {ValueInfo(known_[value.index])})[0];
      if (from_.is_named(id)) made_.set_name(value, from_.name(id));
      mapped_[id.index] = value;
      taken.insert(id);
    }
    outputs.push_back(value);
  }
  made_.set_outputs(std::move(outputs));
  return without_dead(made_);
}

}  // namespace tessera::passes
