#include "tessera/rules/apply.h"

#include <algorithm>
#include <set>

#include "tessera/ir/place.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/operators.h"
#include "tessera/rules/graph_view.h"
#include "tessera/rules/occurrence.h"

namespace tessera::rules {
namespace {

/// Copies a graph, the target of a match in place of its source.
class Replacement {
 public:
  Replacement(const Graph& from, const Match& match)
      : from_(from), match_(match), mapped_(from.value_count()), live_(from.nodes().size()) {
    for (const ValueId id : source().inputs()) inputs_.push_back(match.values[id.index]);
    for (const ValueId id : source().outputs()) replaced_.push_back(match.values[id.index]);
  }

  Expected<Graph> run() {
    TESSERA_TRY(target_, target_of(from_, match_));
    mark_live();
    made_.set_name(from_.name());
    for (const ValueId id : from_.inputs()) {
      mapped_[id.index] = made_.add_input(from_.type(id), {});
      keep_name(id, mapped_[id.index]);
    }
    // Nodes behind the replaced values wait until the operands of the target are there.
    std::vector<std::size_t> waiting;
    bool placed = !is_needed_ || try_to_place();
    for (std::size_t n = 0; n < from_.nodes().size(); ++n) {
      if (!live_[n]) continue;
      if (!is_ready(from_.inputs(from_.nodes()[n]))) {
        waiting.push_back(n);
        continue;
      }
      copy(n);
      if (placed) continue;
      placed = try_to_place();
      if (placed)
        for (const std::size_t later : std::exchange(waiting, {})) copy(later);
    }
    TESSERA_CHECK(placed && waiting.empty(), "{} was applied to a cycle", match_.rule().name);
    set_outputs();
    TESSERA_TRY_DONE(verify(made_));
    return std::move(made_);
  }

 private:
  const Graph& source() const { return match_.rule().source; }

  /// The nodes that the outputs will depend on.
  void mark_live() {
    std::vector<ValueId> open(from_.outputs().begin(), from_.outputs().end());
    std::set<ValueId> seen;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!id.present() || !seen.insert(id).second) continue;
      if (std::ranges::find(replaced_, id) != replaced_.end()) {
        is_needed_ = true;
        open.insert(open.end(), inputs_.begin(), inputs_.end());
      } else if (const GraphNode* node = from_.producer(id)) {
        live_[static_cast<std::size_t>(node - from_.nodes().data())] = true;
        for (const ValueId input : from_.inputs(*node)) open.push_back(input);
      }
    }
  }

  void keep_name(ValueId old, ValueId made) {
    if (from_.is_named(old) && !made_.is_named(made)) made_.set_name(made, from_.name(old));
  }

  /// A value in the new graph, constants as they are asked for; none if it is not made yet.
  ValueId mapped(ValueId id) {
    ValueId& made = mapped_[id.index];
    if (const Tensor* constant = from_.constant(id); constant != nullptr && !made.present()) {
      made = made_.add_constant(*constant, {});
      keep_name(id, made);
    }
    return made;
  }

  bool is_ready(std::span<const ValueId> ids) {
    return std::ranges::all_of(ids,
                               [&](ValueId id) { return !id.present() || mapped(id).present(); });
  }

  std::vector<ValueId> add(const Graph& graph, const GraphNode& node, std::vector<ValueId> inputs) {
    Graph::NewNode made = copied_node(graph, node, [](ValueId id) { return id; });
    made.inputs = std::move(inputs);
    return made_.add_node(std::move(made));
  }

  void copy(std::size_t n) {
    const GraphNode& node = from_.nodes()[n];
    std::vector<ValueId> inputs;
    for (const ValueId id : from_.inputs(node))
      inputs.push_back(id.present() ? mapped(id) : ValueId{});
    const std::vector<ValueId> results = add(from_, node, std::move(inputs));
    made_.set_node_name(made_.nodes().size() - 1, from_.node_name(n));
    const auto old = from_.outputs(node);
    for (std::size_t i = 0; i < old.size(); ++i) {
      // What the node computes and the target computes as well is the target's.
      if (std::ranges::find(replaced_, old[i]) != replaced_.end()) continue;
      mapped_[old[i].index] = results[i];
      keep_name(old[i], results[i]);
    }
  }

  /// A value of a type: zeros, which nothing reads.
  ValueId anything(const Type& type) {
    Ints shape;
    for (const Dim& dim : *type.shape) shape.push_back(dim.constant().value());
    const Tensor sizes =
        Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(shape.size())}, shape);
    Buffer zero(static_cast<std::size_t>(byte_width(type.dtype)));
    store_number(type.dtype, zero.data(), 0, 0);
    const ValueId number =
        made_.add_constant({.dtype = type.dtype, .bytes = std::move(zero).freeze()}, {});
    return made_.add_node({.op = op::expand,
                           .attrs = {},
                           .inputs = {number, made_.add_constant(sizes, {})},
                           .outputs = {type}})[0];
  }

  /// What an input of the target is in the new graph; none for one that the target does not use.
  ValueId operand(std::size_t input) {
    if (inputs_[input].present()) return mapped(inputs_[input]);
    const bool is_untold =
        std::ranges::count(match_.pattern->untold, source().inputs()[input]) != 0;
    return is_untold ? anything(target_.type(target_.inputs()[input])) : ValueId{};
  }

  bool try_to_place() {
    if (!is_ready(inputs_)) return false;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(operand(i));
    const auto values = place_nodes<ValueId>(
        target_, inputs, [&](ValueId id) { return made_.add_constant(*target_.constant(id), {}); },
        [&](const GraphNode& node, std::vector<ValueId> operands) {
          return std::optional(add(target_, node, std::move(operands)));
        });
    for (std::size_t i = 0; i < replaced_.size(); ++i) {
      mapped_[replaced_[i].index] = (*values)[target_.outputs()[i].index];
      keep_name(replaced_[i], mapped_[replaced_[i].index]);
    }
    return true;
  }

  /// An output whose value goes by another name is that value, copied.
  void set_outputs() {
    std::vector<ValueId> outputs;
    for (const ValueId id : from_.outputs()) {
      ValueId made = mapped(id);
      if (from_.is_named(id) && made_.name(made) != from_.name(id)) {
        made = made_.add_node(
            {.op = op::identity, .attrs = {}, .inputs = {made}, .outputs = {made_.type(made)}})[0];
        made_.set_name(made, from_.name(id));
        mapped_[id.index] = made;
      }
      outputs.push_back(made);
    }
    made_.set_outputs(std::move(outputs));
  }

  const Graph& from_;
  const Match& match_;
  std::vector<ValueId> inputs_, replaced_;  // of the match, in the old graph
  Graph target_, made_;
  std::vector<ValueId> mapped_;  // by value of the old graph; none: not made yet
  std::vector<bool> live_;       // by node of the old graph
  bool is_needed_ = false;       // an output depends on what is replaced
};

}  // namespace

Expected<Graph> target_of(const Graph& graph, const Match& match) {
  return target_of(match.rule(), GraphValues{graph}, match.values, match.binding);
}

Expected<Graph> target_of(const Rule& rule, const std::vector<ValueInfo>& inputs,
                          const Binding& binding) {
  GraphBuilder out;
  Vals values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Type& wanted = rule.source.type(rule.source.inputs()[i]);
    values.push_back(
        out.input({}, inputs[i].present ? inputs[i] : ValueInfo{.type = binding.type(wanted)}));
    if (auto real = binding.real(rule.source.name(rule.source.inputs()[i])))
      values.back() = out.constant(*std::move(real));
  }
  TESSERA_TRY(const Vals outputs, placed(out, rule.target, values, binding, KnownSizes::Constant));
  return out.finish(outputs);
}

Expected<Graph> apply(const Graph& graph, const Match& match) {
  return Replacement(graph, match).run();
}

}  // namespace tessera::rules
