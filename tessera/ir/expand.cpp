#include "tessera/ir/expand.h"

#include <algorithm>

#include "tessera/ir/builder.h"
#include "tessera/ops/standard.h"

namespace tessera {
namespace {

using OpPredicate = std::function<bool(const OpDef&)>;

Expected<Graph> built(GraphBuilder& body, const OpDef& op, const Attrs& attrs,
                      const std::vector<ValueInfo>& inputs, int outputs) {
  Vals values;
  for (const ValueInfo& input : inputs)
    values.push_back(input.present ? body.input({}, input) : Val{});
  auto made = op.expand(body, attrs, values);
  // The builder's first error is the cause; later results of `expand` are meaningless.
  if (body.failed()) return located(*body.error(), {.item = op.name});
  if (!made) return located(std::move(made).error(), {.item = op.name});
  Vals results;
  for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i) {
    if (i >= made->size() || !(*made)[i].present())
      return located(bad_operands(fmt::format("{} has no result {} on these inputs", op.name, i)),
                     {.item = op.name});
    results.push_back((*made)[i]);
  }
  return body.finish(results);
}

/// Copies graphs into one that is being built, composites replaced.
class Inliner {
 public:
  Inliner(GraphBuilder& out, const OpPredicate& which, NeedsValue needs_value)
      : out_(out), which_(which), needs_value_(needs_value) {}

  /// Inlines a graph over these inputs and returns its outputs.
  Expected<Vals> inlined(const Graph& graph, const Vals& inputs) {
    Vals values(graph.value_count());
    for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
    const auto mapped = [&](ValueId id) {
      if (!id.present()) return Val{};
      Val& value = values[id.index];
      if (const Tensor* constant = graph.constant(id); constant != nullptr && !value.present())
        value = out_.constant(*constant, kept_name(graph, id));
      return value;
    };
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      Vals operands;
      for (const ValueId id : graph.inputs(node)) operands.push_back(mapped(id));
      TESSERA_TRY(const Vals results, placed(graph, n, operands));
      const auto ids = graph.outputs(node);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        values[ids[i].index] = results[i];
        out_.refine(results[i], graph.type(ids[i]));
        if (const std::string name = kept_name(graph, ids[i]); !name.empty())
          out_.name(results[i], name);
      }
    }
    Vals outputs;
    for (const ValueId id : graph.outputs()) outputs.push_back(mapped(id));
    return outputs;
  }

 private:
  static std::string kept_name(const Graph& graph, ValueId id) {
    return graph.is_named(id) ? graph.name(id) : std::string();
  }

  Expected<Vals> body_inlined(const GraphNode& node, const Vals& operands, int wanted) {
    std::vector<ValueInfo> known;
    Vals present;
    for (const Val& operand : operands) {
      known.push_back(operand.present() ? out_.known(operand) : ValueInfo{.present = false});
      if (operand.present()) present.push_back(operand);
    }
    // Size symbols that bodies introduce are distinguished by scope.
    GraphBuilder scope(fmt::format("e{}_", bodies_++));
    TESSERA_TRY(const Graph body, built(scope, *node.op, *node.attrs, known, wanted));
    // Inputs beyond the operands are those that attributes are called by.
    for (const ValueId id : body.inputs().subspan(present.size())) {
      const std::optional<Val> input = out_.find_input(body.name(id));
      if (!input || out_.known(*input).type != body.type(id))
        return bad_operands(
            fmt::format("${} is the value of an attribute of {}", body.name(id), node.op->name),
            fmt::format("there has to be an input {}: {}", body.name(id),
                        to_string(body.type(id))));
      present.push_back(*input);
    }
    TESSERA_TRY(Vals results, inlined(body, present));
    // A result that is an unchanged input gets a value and a name of its own.
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId output = body.outputs()[i];
      const auto before = body.outputs().first(i);
      if (std::ranges::find(body.inputs(), output) != body.inputs().end() ||
          std::ranges::find(before, output) != before.end())
        results[i] = out_.call(identity_op(), {results[i]}, {}, 1).at(0);
    }
    return results;
  }

  Expected<Vals> placed(const Graph& graph, std::size_t index, const Vals& operands) {
    const GraphNode& node = graph.nodes()[index];
    const int wanted = static_cast<int>(graph.outputs(node).size());
    if (node.op->expand && which_(*node.op)) {
      auto results = body_inlined(node, operands, wanted);
      if (results || needs_value_ == NeedsValue::Fail || !is_needs_value(results.error()))
        return results;
    }
    Vals results;
    if (node.op->kind() == OpDef::Kind::Control) {
      GraphBuilder::Subgraphs subgraphs;
      for (const auto& subgraph : graph.subgraphs(node)) {
        TESSERA_TRY(Graph expanded, expand(*subgraph, which_, needs_value_));
        subgraphs.push_back(std::make_shared<const Graph>(std::move(expanded)));
      }
      std::vector<Type> types;
      for (const ValueId id : graph.outputs(node)) types.push_back(graph.type(id));
      results = out_.call_control(*node.op, operands, *node.attrs, std::move(subgraphs), types);
    } else {
      results = out_.call(*node.op, operands, *node.attrs, wanted);
    }
    out_.name_last_node(graph.node_name(index));
    if (out_.failed()) return *out_.error();
    return results;
  }

  GraphBuilder& out_;
  const OpPredicate& which_;
  NeedsValue needs_value_;
  int bodies_ = 0;
};

}  // namespace

bool is_composite(const OpDef& op) {
  return op.kind() == OpDef::Kind::Composite;
}

Expected<Graph> body_of(const OpDef& op, const Attrs& attrs, const std::vector<ValueInfo>& inputs,
                        int outputs) {
  GraphBuilder body;
  return built(body, op, attrs, inputs, outputs);
}

Expected<Graph> expand(const Graph& graph, const OpPredicate& which, NeedsValue needs_value) {
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : graph.inputs())
    inputs.push_back(out.input(graph.is_named(id) ? graph.name(id) : "", {.type = graph.type(id)}));
  TESSERA_TRY(const Vals outputs, Inliner(out, which, needs_value).inlined(graph, inputs));
  TESSERA_TRY(Graph expanded, out.finish(outputs));
  expanded.set_name(graph.name());
  return expanded;
}

}  // namespace tessera
