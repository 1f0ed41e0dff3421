#include "tessera/ir/verify.h"

#include <algorithm>
#include <set>

#include "tessera/ir/control.h"
#include "tessera/ir/infer.h"

namespace tessera {
namespace {

Diagnostic invalid(std::string message, std::string note = {}) {
  return {.id = "graph-invalid", .message = std::move(message), .note = std::move(note)};
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), made_(graph.value_count()), known_(graph.value_count()) {}

  Expected<Done> run() {
    TESSERA_TRY_DONE(check_names());
    TESSERA_TRY_DONE(check_sources());
    for (const GraphNode& node : graph_.nodes())
      if (auto checked = check(node); !checked)
        return placed(std::move(checked).error(), title(node));
    for (const ValueId output : graph_.outputs())
      if (!is_made(output)) return invalid("an output is not a value of the graph");
    return Done{};
  }

 private:
  /// `a, b = split`
  std::string title(const GraphNode& node) const {
    std::string results;
    for (const ValueId id : graph_.outputs(node))
      results += (results.empty() ? "" : ", ") + graph_.name(id);
    return results + " = " + node.op->name;
  }

  static Diagnostic placed(Diagnostic diagnostic, const std::string& outer) {
    std::string& item = diagnostic.where.item;
    item = item.empty() ? outer : outer + ": " + item;
    return diagnostic;
  }

  bool is_made(ValueId id) const { return id.index < made_.size() && made_[id.index]; }

  Expected<Done> check_names() const {
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < graph_.value_count(); ++i)
      if (graph_.is_named(ValueId{i}) && !names.insert(graph_.name(ValueId{i})).second)
        return invalid(fmt::format("two values are called {}", graph_.name(ValueId{i})));
    return Done{};
  }

  Expected<Done> check_sources() {
    for (const ValueId id : graph_.inputs()) {
      if (id.index >= made_.size() || graph_.constant(id) != nullptr ||
          graph_.producer(id) != nullptr || made_[id.index])
        return invalid("an input is a constant, a result, or listed twice");
      made_[id.index] = true;
      known_[id.index] = {.type = graph_.type(id)};
    }
    for (std::uint32_t i = 0; i < graph_.value_count(); ++i) {
      const Tensor* constant = graph_.constant(ValueId{i});
      if (constant == nullptr) continue;
      made_[i] = true;
      known_[i] = constant_info(*constant);
      if (const Type& type = graph_.type(ValueId{i}); type != known_[i].type)
        return invalid(
            fmt::format("the constant {} has type {}", graph_.name(ValueId{i}), to_string(type)),
            "its content is " + to_string(known_[i].type));
    }
    return Done{};
  }

  Expected<Done> check(const GraphNode& node) {
    if (find_op(node.op->name) != node.op) return invalid("the operator is not in the catalog");
    TESSERA_TRY(const Attrs complete, completed(*node.op, *node.attrs));
    if (complete != *node.attrs) return invalid("attributes that have defaults are missing");

    std::vector<bool> present;
    std::vector<ValueInfo> inputs;
    for (const ValueId id : graph_.inputs(node)) {
      if (id.present() && !is_made(id))
        return invalid(fmt::format("input {} is not made before it is used", present.size()));
      present.push_back(id.present());
      inputs.push_back(id.present() ? known_[id.index] : ValueInfo{.present = false});
    }
    TESSERA_TRY_DONE(check_arity(*node.op, present));
    const auto results = graph_.outputs(node);
    TESSERA_TRY_DONE(check_results(*node.op, results.size()));
    if (node.op->kind() == OpDef::Kind::Control) {
      TESSERA_TRY_DONE(check_control(node, inputs));
    } else {
      TESSERA_TRY_DONE(check_types(node, inputs));
    }
    for (const ValueId id : results) made_[id.index] = true;
    return Done{};
  }

  Expected<Done> check_types(const GraphNode& node, const std::vector<ValueInfo>& inputs) {
    if (!graph_.subgraphs(node).empty()) return invalid("only control flow has subgraphs");
    TESSERA_TRY(std::vector<ValueInfo> inferred, infer(*node.op, *node.attrs, inputs));
    const auto results = graph_.outputs(node);
    inferred.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Type& type = graph_.type(results[i]);
      if (!agrees(type, inferred[i].type))
        return invalid(fmt::format("{} has type {}", graph_.name(results[i]), to_string(type)),
                       "inference says " + to_string(inferred[i].type));
      // The declared type is propagated: it may be more precise.
      inferred[i].type = type;
      known_[results[i].index] = std::move(inferred[i]);
    }
    return Done{};
  }

  /// Whether a declared type implies the inferred one; undefined sizes match any size.
  static bool agrees(const Type& type, const Type& inferred) {
    if (inferred.kind == Type::Kind::Unknown) return true;
    if (type.kind != inferred.kind || type.dtype != inferred.dtype) return false;
    if (!inferred.shape) return true;
    return type.shape &&
           std::ranges::equal(*type.shape, *inferred.shape, [](const Dim& said, const Dim& told) {
             return told.is_undefined() || said == told;
           });
  }

  Expected<Done> check_control(const GraphNode& node, const std::vector<ValueInfo>& inputs) {
    const auto subgraphs = graph_.subgraphs(node);
    const auto labels = subgraph_labels(*node.op);
    for (std::size_t i = 0; i < subgraphs.size(); ++i)
      if (auto inner = verify(*subgraphs[i]); !inner)
        return placed(std::move(inner).error(),
                      std::string(i < labels.size() ? labels[i] : "subgraph"));
    std::vector<Type> types;
    types.reserve(inputs.size());
    for (const ValueInfo& input : inputs)
      types.push_back(input.present ? input.type : Type::unknown());
    TESSERA_TRY(const std::vector<Type> told,
                control_results(*node.op, *node.attrs, types, subgraphs));
    const auto results = graph_.outputs(node);
    if (results.size() != told.size())
      return invalid(fmt::format("{} has {} results", node.op->name, results.size()),
                     fmt::format("its subgraphs give {}", told.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Type& type = graph_.type(results[i]);
      if (!compatible(type, told[i]))
        return invalid(fmt::format("{} has type {}", graph_.name(results[i]), to_string(type)),
                       "its subgraphs give " + to_string(told[i]));
      known_[results[i].index] = {.type = type};
    }
    return Done{};
  }

  const Graph& graph_;
  std::vector<bool> made_;
  std::vector<ValueInfo> known_;
};

}  // namespace

Expected<Done> verify(const Graph& graph) {
  return Verifier(graph).run();
}

Expected<Done> check_results(const OpDef& op, std::size_t count) {
  std::size_t least = 0, most = op.outputs.size();
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i].ends_with('*') || op.outputs[i].ends_with('+'))
      most = std::numeric_limits<std::size_t>::max();
    // The first result is required; the others may be omitted.
    if (i == 0 && !op.outputs[i].ends_with('*')) least = 1;
  }
  if (count >= least && count <= most) return Done{};
  return Diagnostic{.id = "op-arity",
                    .message = fmt::format("{} has {} results", op.name, count),
                    .note = least == most  ? fmt::format("it has {}", least)
                            : count > most ? fmt::format("it has at most {}", most)
                                           : fmt::format("it has {} or more", least)};
}

}  // namespace tessera
