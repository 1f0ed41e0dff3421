#include "tessera/prove/claim.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "tessera/ir/expand.h"
#include "tessera/ir/infer.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/text.h"
#include "tessera/prove/classes.h"
#include "tessera/prove/sizes.h"

namespace tessera::prove {
namespace {

/// The number that all elements are; none for other tensors, for what is no number, and for
/// integers that a double does not hold.
std::optional<double> uniform(const Tensor& tensor) {
  if (tensor.dtype == DType::String || tensor.count() == 0) return std::nullopt;
  const double first = number_at(tensor, 0);
  if (!std::isfinite(first)) return std::nullopt;
  if (!is_float(tensor.dtype) && std::fabs(first) >= 0x1p53) return std::nullopt;
  for (std::int64_t i = 1; i < tensor.count(); ++i)
    if (number_at(tensor, i) != first) return std::nullopt;
  return first;
}

/// Whether the content of results may follow from what is known of inputs: types the graph has.
bool may_be_known(const Graph& graph, std::span<const ValueId> results,
                  const std::vector<Known>& inputs) {
  return std::ranges::any_of(results,
                             [&](ValueId id) { return !is_float(graph.type(id).dtype); }) ||
         std::ranges::any_of(inputs, [](const Known& input) { return input.content.has_value(); });
}

/// An operator with its attributes.
std::string key_of(const GraphNode& node) {
  std::string key = node.op->name;
  for (const auto& [name, value] : node.attrs->entries()) key += " " + name + "=" + to_text(value);
  return key;
}

/// `f32[n, 2]`, `i64[2] = [0, n]`, or `_` for what is left out.
std::string argument_text(const Argument& argument) {
  if (!argument.present) return "_";
  std::string text(to_string(argument.type.dtype));
  const auto list = [&](const std::vector<Dim>& dims) {
    std::string items;
    for (const Dim& dim : dims) items += (items.empty() ? "" : ", ") + dim.to_string();
    return "[" + items + "]";
  };
  text += list(argument.type.shape);
  if (argument.value) return text + " = " + list(*argument.value);
  if (argument.content) return text + " is " + tessera::to_text(*argument.content);
  return text;
}

/// ` {group=2, pads=[]}`
std::string attributes_text(const std::vector<std::pair<std::string, Attr>>& entries) {
  std::string text;
  for (const auto& [name, value] : entries)
    text += fmt::format("{}{}={}", text.empty() ? " {" : ", ", name, tessera::to_text(value));
  return text.empty() ? text : text + "}";
}

/// An operator with what its definition is made from: all attributes, and what is known of the
/// operands. `conv {group=2, …} (f32[n, c, h], _)`
std::string call_text(const GraphNode& node, const Signature& signature) {
  std::vector<std::pair<std::string, Attr>> entries(node.attrs->entries().begin(),
                                                    node.attrs->entries().end());
  std::string text = node.op->name + attributes_text(entries) + " (";
  for (const Argument& argument : signature)
    text += (text.back() == '(' ? "" : ", ") + argument_text(argument);
  return text + ")";
}

bool is_composite(const OpDef& op) {
  return op.kind() == OpDef::Kind::Composite;
}

/// What the composites of a graph mean, as graphs of core operators.
Expected<Done> add_bodies(const Graph& graph, std::map<std::string, std::string>& bodies) {
  std::vector<Known> known(graph.value_count());
  for (std::uint32_t index = 0; index < graph.value_count(); ++index) {
    const Tensor* constant = graph.constant({index});
    known[index] =
        constant != nullptr ? tessera::known(*constant) : Known{.type = graph.type({index})};
  }
  for (const GraphNode& node : graph.nodes()) {
    std::vector<Known> inputs;
    for (const ValueId id : graph.inputs(node))
      inputs.push_back(id.present() ? known[id.index] : Known{.present = false});
    if (node.op->kind() == OpDef::Kind::Control) continue;
    TESSERA_TRY(const std::vector<Known> inferred, infer(*node.op, *node.attrs, inputs));
    const auto results = graph.outputs(node);
    for (std::size_t i = 0; i < results.size() && i < inferred.size(); ++i)
      known[results[i].index] = inferred[i];
    const std::optional<Signature> signature = signature_of(inputs);
    if (!is_composite(*node.op) || !signature) continue;
    TESSERA_TRY(Graph body,
                body_of(*node.op, *node.attrs, inputs, static_cast<int>(results.size())));
    TESSERA_TRY(body, expand(body, is_composite));
    bodies.emplace(call_text(node, *signature), tessera::to_text(body));
  }
  return Done{};
}

class Builder {
 public:
  Builder(GraphClaim& result, bool named) : result_(result), named_(named) {}

  /// Adds the values of a graph; returns the names of its outputs.
  Expected<std::vector<std::string>> add(const Graph& graph, bool first) {
    std::vector<Known> known(graph.value_count());
    std::vector<std::string> names(graph.value_count());
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId id = graph.inputs()[i];
      known[id.index] = {.type = graph.type(id)};
      names[id.index] = input_name(i);
      if (first) TESSERA_TRY_DONE(give(names[id.index], graph.type(id)));
    }
    for (std::uint32_t index = 0; index < graph.value_count(); ++index) {
      const Tensor* constant = graph.constant({index});
      if (constant == nullptr) continue;
      known[index] = tessera::known(*constant);
      TESSERA_TRY(names[index], weight(*constant));
    }
    for (const GraphNode& node : graph.nodes()) {
      std::vector<Known> inputs;
      std::vector<std::string> operands;
      std::string key = key_of(node);
      // Every evaluation of these is a new draw: nothing is the same as it.
      if (!node.op->pure) key += fmt::format(" draw {}", numbers_.size());
      for (const ValueId id : graph.inputs(node)) {
        inputs.push_back(id.present() ? known[id.index] : Known{.present = false});
        key += id.present() ? "," + names[id.index] : ",_";
        if (id.present()) operands.push_back(names[id.index]);
      }
      for (const auto& subgraph : graph.subgraphs(node)) key += tessera::to_text(*subgraph);
      const auto results = graph.outputs(node);
      const bool defined = node.op->kind() == OpDef::Kind::Core;
      std::vector<Known> inferred(results.size());
      if (node.op->kind() != OpDef::Kind::Control && may_be_known(graph, results, inputs)) {
        TESSERA_TRY(inferred, infer(*node.op, *node.attrs, inputs));
      }
      inferred.resize(results.size());
      std::optional<Definition> definition;
      std::string call;
      if (defined) {
        const std::optional<Signature> signature = signature_of(inputs);
        if (signature) {
          TESSERA_TRY(definition, node.op->define(*node.attrs, *signature));
          if (named_) {
            call = call_text(node, *signature);
            result_.asked.emplace(call, asked_of_sizes(*node.op, *node.attrs, *signature));
          }
        }
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        inferred[i].type = graph.type(results[i]);
        known[results[i].index] = inferred[i];
        const auto [here, fresh] =
            numbers_.try_emplace(fmt::format("{}.{}", key, i), fmt::format("v{}", numbers_.size()));
        names[results[i].index] = here->second;
        if (!fresh) {
          if (!first) result_.shared.insert(here->second);
          continue;
        }
        if (definition && i < definition->outputs.size() && !definition->outputs[i].forward) {
          result_.claim.values.push_back({here->second, *definition, i, operands, call});
        } else {
          TESSERA_TRY_DONE(give(here->second, graph.type(results[i])));
        }
      }
    }
    std::vector<std::string> outputs;
    for (const ValueId id : graph.outputs()) outputs.push_back(names[id.index]);
    return outputs;
  }

 private:
  Expected<Done> give(const std::string& name, const Type& type) {
    if (type.kind != Type::Kind::Tensor || !type.shape)
      return Diagnostic{.id = "prove-unsupported",
                        .message = fmt::format("{} has no known shape", name)};
    result_.claim.inputs.push_back({name, {type.dtype, *type.shape}});
    return Done{};
  }

  Expected<std::string> weight(const Tensor& tensor) {
    for (const auto& [name, known] : result_.constants)
      if (same_content(known, tensor)) return name;
    const std::string name = fmt::format("c{}", result_.constants.size());
    certify::Input input{name, {tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())}};
    input.uniform = uniform(tensor);
    if (named_) input.content = tessera::to_text(tensor);
    result_.claim.inputs.push_back(std::move(input));
    result_.constants.emplace(name, tensor);
    return name;
  }

  GraphClaim& result_;
  bool named_;
  std::map<std::string, std::string> numbers_;
};

/// Without composites.
Expected<Graph> expanded(const Graph& graph) {
  const bool any = std::ranges::any_of(
      graph.nodes(), [&](const GraphNode& node) { return is_composite(*node.op); });
  if (!any) return graph;
  return expand(graph, is_composite);
}

}  // namespace

std::string input_name(std::size_t input) {
  return fmt::format("x{}", input);
}

namespace {

Expected<GraphClaim> built(const Graph& source, const Graph& target, const Guard& facts,
                           bool named) {
  GraphClaim result;
  result.claim.facts = facts;
  Builder builder(result, named);
  if (named) {
    TESSERA_TRY_DONE(add_bodies(source, result.bodies));
    TESSERA_TRY_DONE(add_bodies(target, result.bodies));
  }
  TESSERA_TRY(const Graph a, expanded(source));
  TESSERA_TRY(const Graph b, expanded(target));
  TESSERA_TRY(const std::vector<std::string> left, builder.add(a, true));
  TESSERA_TRY(const std::vector<std::string> right, builder.add(b, false));
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i)
    result.claim.pairs.emplace_back(left[i], right[i]);
  return result;
}

}  // namespace

Expected<GraphClaim> claim_of(const Graph& source, const Graph& target, const Guard& facts) {
  return built(source, target, facts, false);
}

Expected<GraphClaim> bound_claim_of(const Graph& source, const Graph& target, const Guard& facts) {
  return built(source, target, facts, true);
}

}  // namespace tessera::prove
