#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/rules/apply.h"
#include "tessera/rules/fit.h"

/// Pattern matching, for graphs and e-graphs alike. What is searched is a `View`: its values are
/// those of a graph or the classes of an e-graph, and a value has one producer or several.
///
///     using Value, Node;                             // an id with present(); a pointer
///     const Type& type(Value), const Tensor* constant(Value);
///     bool is_constant(Value);                       // known at compile time
///     bool equal(Value, Value);
///     bool may_be_result_of(Value, const OpDef&);    // a filter: false if it is not
///     void for_each_producer(Value, output, visit);  // nodes with this value as that output
///     void for_each_node(const OpDef&, visit);       // until `visit` returns false
///     op(Node), inputs(Node), outputs(Node), attrs(Node), has_subgraphs(Node);
///     std::vector<ValueInfo> known_inputs(Node);
///     bool means(Node, const Attrs&);                // it means the same with these attributes
namespace tessera::rules {

/// Occurrence of the source of a rule, matched by operators and operands.
template <class View>
struct Occurrence {
  using Value = typename View::Value;

  std::vector<Value> values;                        // by value of the source; none: not looked for
  std::vector<typename View::Node> nodes;           // by node of the source; null likewise
  std::vector<std::pair<Value, Value>> equalities;  // of values that the source has as one
};

/// Backtracking search for the source of a rule: its nodes one after the other, each with every
/// producer of its value, operands in both orders where the operator is commutative.
template <class View, class Accept>
class OccurrenceSearch {
 public:
  using Value = typename View::Value;

  /// `accept` returns whether to go on.
  OccurrenceSearch(const Pattern& pattern, const View& view, const Accept& accept)
      : pattern_(pattern),
        source_(pattern.rule.source),
        view_(view),
        accept_(accept),
        found_{.values = std::vector<Value>(source_.value_count()),
               .nodes = std::vector<typename View::Node>(source_.nodes().size()),
               .equalities = {}} {}

  /// All occurrences with this value as first output.
  void at(Value root) {
    if (bind(source_.outputs()[0], root)) step(0);
  }

 private:
  void step(std::size_t index) {
    if (index == pattern_.steps.size()) {
      done_ = !accept_(std::as_const(found_));
      return;
    }
    const Pattern::Step& step = pattern_.steps[index];
    const Value at = found_.values[step.at.index];
    const auto visit = [&](typename View::Node node) {
      choose(index, node);
      return !done_;
    };
    if (at.present()) {
      // Sizes that the source computes are numbers here: nothing computes them.
      if (pattern_.is_sizes(step.at) && view_.constant(at) != nullptr) return this->step(index + 1);
      view_.for_each_producer(at, step.output, visit);
    } else if (step.anywhere) {
      view_.for_each_node(*source_.nodes()[step.node].op, [&](typename View::Node node) {
        return !is_new_output(step, node) || visit(node);
      });
    } else {
      this->step(index + 1);  // an operand of such sizes
    }
  }

  /// Two outputs of a rule are two values.
  bool is_new_output(const Pattern::Step& step, typename View::Node node) const {
    const auto& outputs = view_.outputs(node);
    return step.output < outputs.size() && std::ranges::none_of(found_.values, [&](Value value) {
             return value.present() && view_.equal(value, outputs[step.output]);
           });
  }

  void choose(std::size_t index, typename View::Node node) {
    const Pattern::Step& step = pattern_.steps[index];
    const GraphNode& wanted = source_.nodes()[step.node];
    const auto results = source_.outputs(wanted), operands = source_.inputs(wanted);
    const auto &inputs = view_.inputs(node), &outputs = view_.outputs(node);
    if (&view_.op(node) != wanted.op || inputs.size() != operands.size() ||
        outputs.size() != results.size() || view_.has_subgraphs(node))
      return;
    if (wanted.attrs->symbolic() == nullptr && !view_.means(node, *wanted.attrs)) return;
    const bool crosses = commutes(*wanted.op, inputs.size()) && !view_.equal(inputs[0], inputs[1]);
    for (const bool crossed : {false, true}) {
      if (done_ || (crossed && !crosses)) return;
      const std::size_t bound = trail_.size(), equalities = found_.equalities.size();
      bool fits = true;
      for (std::size_t i = 0; fits && i < results.size(); ++i) fits = bind(results[i], outputs[i]);
      for (std::size_t i = 0; fits && i < operands.size(); ++i)
        fits = bind(operands[i], inputs[crossed ? 1 - i : i]);
      if (fits) {
        found_.nodes[step.node] = node;
        this->step(index + 1);
        found_.nodes[step.node] = nullptr;
      }
      for (; trail_.size() > bound; trail_.pop_back()) found_.values[trail_.back()] = {};
      found_.equalities.resize(equalities);
    }
  }

  bool bind(ValueId wanted, Value value) {
    if (!wanted.present() || !value.present()) return wanted.present() == value.present();
    Value& bound = found_.values[wanted.index];
    if (bound.present()) {
      if (!view_.equal(bound, value)) return false;
      if (bound != value) found_.equalities.emplace_back(bound, value);
      return true;
    }
    if (!may_be(wanted, value)) return false;
    bound = value;
    trail_.push_back(wanted.index);
    return true;
  }

  /// Inexpensive filter, by which most values fail.
  bool may_be(ValueId wanted, Value value) const {
    const Type &type = source_.type(wanted), &is = view_.type(value);
    if (!type.is_ranked_tensor() || !is.is_ranked_tensor()) return false;
    const bool is_any_float = type.dtype == DType::F32 && pattern_.generic;
    if (is_any_float ? !is_float(is.dtype) : type.dtype != is.dtype) return false;
    if (source_.constant(wanted) != nullptr) return view_.constant(value) != nullptr;
    if (type.shape->size() != is.shape->size()) return false;
    if (pattern_.is_sizes(wanted) && view_.constant(value) != nullptr) return true;
    if (const GraphNode* node = source_.producer(wanted))
      return view_.may_be_result_of(value, *node->op);
    return !pattern_.constants[wanted.index] || view_.is_constant(value);
  }

  const Pattern& pattern_;
  const Graph& source_;
  const View& view_;
  const Accept& accept_;
  Occurrence<View> found_;
  std::vector<std::uint32_t> trail_;  // values in the order in which they were bound
  bool done_ = false;
};

/// Calls `accept` with every occurrence of a source with this value as first output, until it
/// returns false.
template <class View, class Accept>
void for_each_occurrence(const Pattern& pattern, const View& view, typename View::Value root,
                         const Accept& accept) {
  OccurrenceSearch<View, Accept>(pattern, view, accept).at(root);
}

/// Sizes, attributes and element type of an occurrence; none where they contradict the pattern or
/// its guard.
template <class View>
std::optional<Fit> fit_of(const Pattern& pattern, const View& view,
                          const Occurrence<View>& occurrence) {
  const Graph& source = pattern.rule.source;
  Fit fit(pattern);
  for (std::uint32_t i = 0; i < source.value_count(); ++i)
    if (const auto value = occurrence.values[i]; value.present())
      if (!fit.take_type(source.type(ValueId{i}), view.type(value))) return std::nullopt;
  for (std::size_t n = 0; n < source.nodes().size(); ++n) {
    const GraphNode& wanted = source.nodes()[n];
    const auto node = occurrence.nodes[n];
    if (node == nullptr || wanted.attrs->symbolic() == nullptr) continue;  // compared already
    if (!fit.take_attrs(wanted, view.attrs(node), view.known_inputs(node))) return std::nullopt;
  }
  const auto is_number = [&](std::uint32_t i) {
    return pattern.is_sizes(ValueId{i}) && view.constant(occurrence.values[i]) != nullptr;
  };
  for (std::uint32_t i = 0; i < source.value_count(); ++i) {
    const auto value = occurrence.values[i];
    if (!value.present()) continue;
    if (const Tensor* constant = source.constant(ValueId{i}))
      if (!fit.is_constant(*constant, *view.constant(value))) return std::nullopt;
    if (is_number(i) && !fit.take_sizes(*pattern.known[i].value, *view.constant(value)))
      return std::nullopt;
  }
  const auto type = [&](ValueId id) -> const Type* {
    const auto value = occurrence.values[id.index];
    return value.present() && !is_number(id.index) ? &view.type(value) : nullptr;
  };
  if (!fit.complete(type)) return std::nullopt;
  return fit;
}

/// The target of a rule as a graph of its own, over inputs of the types that are found where it
/// matches; `values` are by value of the source. Sizes that are known are constants.
template <class View>
Expected<Graph> target_of(const Rule& rule, const View& view,
                          const std::vector<typename View::Value>& values, const Binding& binding) {
  std::vector<ValueInfo> inputs;
  for (const ValueId id : rule.source.inputs()) {
    const auto value = values[id.index];
    if (!value.present())
      inputs.push_back({.present = false});
    else if (const Tensor* constant = view.constant(value))
      inputs.push_back(constant_info(*constant));
    else
      inputs.push_back({.type = view.type(value)});
  }
  return target_of(rule, inputs, binding);
}

}  // namespace tessera::rules
