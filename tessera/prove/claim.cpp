#include "tessera/prove/claim.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "tessera/expr/text.h"
#include "tessera/expr/walk.h"
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
                  const std::vector<ValueInfo>& inputs) {
  return std::ranges::any_of(results,
                             [&](ValueId id) { return !is_float(graph.type(id).dtype); }) ||
         std::ranges::any_of(inputs,
                             [](const ValueInfo& input) { return input.content.has_value(); });
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

/// A definition, and what the operator asks of sizes beyond it: `asks k == m`.
std::string definition_text(const Definition& definition, const GraphNode& node,
                            const Signature& signature) {
  std::string text = tessera::to_text(definition);
  for (const Condition& condition : asked_of_sizes(*node.op, *node.attrs, signature))
    text += fmt::format("asks {}\n", tessera::to_text(condition));
  return text;
}

bool has_control_flow(const Graph& graph) {
  return std::ranges::any_of(
      graph.nodes(), [](const GraphNode& node) { return node.op->kind() == OpDef::Kind::Control; });
}

/// The types of results; empty where one is not known.
std::string types_text(const std::vector<ValueInfo>& results) {
  std::string text;
  for (const ValueInfo& result : results) {
    if (!result.type.is_ranked_tensor()) return {};
    text += (text.empty() ? "" : ", ") + to_string(result.type);
  }
  return text;
}

/// `inputs` is what is known of the inputs of the graph.
Expected<Done> add_calls(const Graph& graph, const std::vector<ValueInfo>& inputs,
                         CallMeanings& meanings) {
  std::vector<ValueInfo> known(graph.value_count());
  for (std::uint32_t index = 0; index < graph.value_count(); ++index)
    if (const Tensor* constant = graph.constant({index})) known[index] = constant_info(*constant);
  for (std::size_t i = 0; i < inputs.size(); ++i) known[graph.inputs()[i].index] = inputs[i];
  for (const GraphNode& node : graph.nodes()) {
    std::vector<ValueInfo> operands, present;
    for (const ValueId id : graph.inputs(node)) {
      operands.push_back(id.present() ? known[id.index] : ValueInfo{.present = false});
      if (id.present()) present.push_back(known[id.index]);
    }
    const auto results = graph.outputs(node);
    if (node.op->kind() == OpDef::Kind::Control) {
      for (const ValueId result : results) known[result.index].type = graph.type(result);
      continue;
    }
    TESSERA_TRY(std::vector<ValueInfo> inferred, infer(*node.op, *node.attrs, operands));
    inferred.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) known[results[i].index] = inferred[i];
    const std::optional<Signature> signature = signature_of(operands);
    if (!signature) continue;
    const std::string call = call_text(node, *signature);
    if (node.op->kind() == OpDef::Kind::Core) {
      auto definition = node.op->define(*node.attrs, *signature);
      if (!definition && !is_needs_value(definition.error())) return std::move(definition).error();
      if (definition) {
        meanings.definitions.emplace(call, definition_text(*definition, node, *signature));
        // The second checker does not read forward writes.
        if (std::ranges::none_of(definition->outputs,
                                 [](const Output& output) { return output.forward.has_value(); }))
          continue;
      }
    }
    if (is_composite(*node.op)) {
      TESSERA_TRY(Graph body,
                  body_of(*node.op, *node.attrs, operands, static_cast<int>(results.size())));
      TESSERA_TRY(body, expand(body, is_composite));
      if (!has_control_flow(body)) {
        // Inputs beyond the operands are symbolic float attributes.
        for (const ValueId id : body.inputs().subspan(present.size()))
          present.push_back({.type = body.type(id)});
        TESSERA_TRY_DONE(add_calls(body, present, meanings));
        meanings.bodies.emplace(call, tessera::to_text(body));
        continue;
      }
    }
    if (std::string types = types_text(inferred); !types.empty())
      meanings.results.emplace(call, std::move(types));
  }
  return Done{};
}

class Builder {
 public:
  Builder(GraphClaim& result, bool named) : result_(result), named_(named) {}

  /// Adds the values of a graph; returns the names of its outputs.
  Expected<std::vector<std::string>> add(const Graph& graph, bool first) {
    std::vector<ValueInfo> known(graph.value_count());
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
      known[index] = constant_info(*constant);
      TESSERA_TRY(names[index], weight(*constant));
    }
    for (const GraphNode& node : graph.nodes()) {
      std::vector<ValueInfo> inputs;
      std::vector<std::string> operands;
      std::string key = key_of(node);
      // Every evaluation of these is a new draw: nothing is the same as it.
      if (!node.op->pure) key += fmt::format(" draw {}", numbers_.size());
      for (const ValueId id : graph.inputs(node)) {
        inputs.push_back(id.present() ? known[id.index] : ValueInfo{.present = false});
        key += id.present() ? "," + names[id.index] : ",_";
        if (id.present()) operands.push_back(names[id.index]);
      }
      for (const auto& subgraph : graph.subgraphs(node)) key += tessera::to_text(*subgraph);
      const auto results = graph.outputs(node);
      const bool defined = node.op->kind() == OpDef::Kind::Core;
      std::vector<ValueInfo> inferred(results.size());
      if (node.op->kind() != OpDef::Kind::Control && may_be_known(graph, results, inputs)) {
        TESSERA_TRY(inferred, infer(*node.op, *node.attrs, inputs));
      }
      inferred.resize(results.size());
      std::shared_ptr<const Definition> definition;
      std::string call;
      if (defined) {
        const std::optional<Signature> signature = signature_of(inputs);
        if (signature) {
          TESSERA_TRY(definition, tessera::defined(*node.op, *node.attrs, *signature));
          if (named_) call = call_text(node, *signature);
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
          result_.claim.values.push_back({here->second, definition, i, operands, call});
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

/// Whether an expression reads an operand only in place of what is out of range, as `pad` does.
bool is_fill(const Scalar& scalar, const std::string& operand) {
  bool result = true;
  const std::function<void(const Scalar&)> visit = [&](const Scalar& part) {
    if (const auto* read = std::get_if<node::Read>(&part.node())) {
      result = result && read->operand != operand;
      for (const Scalar& index : read->at) visit(index);
      const auto* fill =
          read->otherwise == nullptr ? nullptr : std::get_if<node::Read>(&read->otherwise->node());
      if (read->otherwise != nullptr && (fill == nullptr || fill->operand != operand))
        visit(*read->otherwise);
      return;
    }
    for_each_part(part, visit);
  };
  visit(scalar);
  return result;
}

/// Minus infinity around an image, which a maximum leaves out: a constant of this number that is a
/// fill wherever it is read.
void mark_fills(GraphClaim& made) {
  for (certify::Input& input : made.claim.inputs) {
    const auto constant = made.constants.find(input.name);
    if (constant == made.constants.end() || !is_float(constant->second.dtype) ||
        constant->second.count() != 1 || number_at(constant->second, 0) != -HUGE_VAL)
      continue;
    const auto fills = [&](const certify::Value& value) {
      for (std::size_t i = 0; i < value.operands.size(); ++i)
        if (value.operands[i] == input.name &&
            !is_fill(value.definition->outputs[value.output].value,
                     value.definition->inputs[i].name))
          return false;
      return true;
    };
    if (std::ranges::all_of(made.claim.values, fills)) input.uniform = -HUGE_VAL;
  }
}

constexpr std::int64_t kMostContent = 64;  // numbers of a tensor that is written out
constexpr int kMostPieces = 32;            // in which it is

/// A number of a tensor; none for what is not finite or no number.
std::optional<Scalar> literal(const Tensor& tensor, std::int64_t i) {
  switch (sort_of(tensor.dtype)) {
    case Sort::Value: {
      const double number = number_at(tensor, i);
      if (!std::isfinite(number)) return std::nullopt;
      return Scalar(number);
    }
    case Sort::Bool: return truth(integer_at(tensor, i) != 0);
    case Sort::Integer: return Scalar(integer_at(tensor, i));
    case Sort::Unsigned:
      if (integer_at(tensor, i) < 0) return std::nullopt;
      return Scalar(Node(node::Constant{.sort = Sort::Unsigned, .integer = integer_at(tensor, i)}));
    case Sort::Text: break;
  }
  return std::nullopt;
}

/// What an element of a tensor is, by cases of its position.
class Content {
 public:
  explicit Content(const Tensor& tensor) : tensor_(tensor) {}

  std::optional<Definition> definition() {
    if (tensor_.count() == 0 || tensor_.count() > kMostContent) return std::nullopt;
    for (std::size_t axis = 0; axis < tensor_.shape.size(); ++axis)
      run_.push_back({fmt::format("i{}", axis), Dim(tensor_.shape[axis])});
    const auto value = part(0, 0, tensor_.count());
    if (!value || pieces_ > kMostPieces) return std::nullopt;
    return Definition{
        .inputs = {},
        .outputs = {{.name = "out", .dtype = tensor_.dtype, .axes = each(run_), .value = *value}}};
  }

 private:
  bool is_same(std::int64_t a, std::int64_t b, std::int64_t count) const {
    const auto width = static_cast<std::int64_t>(byte_width(tensor_.dtype));
    return std::memcmp(tensor_.bytes.data() + a * width, tensor_.bytes.data() + b * width,
                       static_cast<std::size_t>(count * width)) == 0;
  }

  /// How many elements from `at` on grow by the same step, of integers.
  std::int64_t progression(std::int64_t at, std::int64_t end, std::int64_t& step) const {
    if (sort_of(tensor_.dtype) != Sort::Integer || at + 1 >= end) return 1;
    constexpr std::int64_t kLargest = std::int64_t{1} << 31;
    const auto value = [&](std::int64_t i) { return integer_at(tensor_, i); };
    for (std::int64_t i = at; i < end; ++i)
      if (value(i) > kLargest || value(i) < -kLargest) return 1;
    step = value(at + 1) - value(at);
    std::int64_t next = at + 2;
    while (next < end && value(next) - value(next - 1) == step) ++next;
    const bool plain = step >= -1 && step <= 1;
    return next - at >= 3 || plain ? next - at : 1;
  }

  /// The elements from `begin` on that an index of the axes from `axis` on runs through.
  std::optional<Scalar> part(std::size_t axis, std::int64_t begin, std::int64_t count) {
    if (axis == run_.size()) return ++pieces_, literal(tensor_, begin);
    const std::int64_t size = tensor_.shape[axis], inner = count / size;
    const Scalar at = run_[axis];
    std::vector<std::pair<std::int64_t, Scalar>> pieces;  // the last position of each
    for (std::int64_t i = 0; i < size && pieces_ <= kMostPieces;) {
      std::int64_t next = i + 1, step = 0;
      while (next < size && is_same(begin + i * inner, begin + next * inner, inner)) ++next;
      const std::int64_t run =
          axis + 1 == run_.size() && next == i + 1 ? progression(begin + i, begin + size, step) : 1;
      std::optional<Scalar> value;
      if (run > 1) {
        next = i + run;
        ++pieces_;
        value = at * Scalar(step) + Scalar(integer_at(tensor_, begin + i) - step * i);
      } else {
        value = part(axis + 1, begin + i * inner, inner);
      }
      if (!value) return std::nullopt;
      pieces.emplace_back(next - 1, *value);
      i = next;
    }
    if (pieces.empty()) return std::nullopt;
    Scalar result = pieces.back().second;
    for (std::size_t i = pieces.size() - 1; i-- > 0;)
      result = select(at <= Scalar(pieces[i].first), pieces[i].second, result);
    return result;
  }

  const Tensor& tensor_;
  std::vector<Axis> run_;
  int pieces_ = 0;
};

}  // namespace

std::optional<GraphClaim> with_contents(const GraphClaim& claim) {
  GraphClaim result = claim;
  std::vector<certify::Value> values;
  std::erase_if(result.claim.inputs, [&](const certify::Input& input) {
    const auto here = claim.constants.find(input.name);
    if (here == claim.constants.end() || input.uniform || here->second.dtype == DType::String)
      return false;
    auto definition = Content(here->second).definition();
    if (!definition) return false;
    values.push_back(
        {input.name, std::make_shared<const Definition>(*std::move(definition)), 0, {}});
    return true;
  });
  if (values.empty()) return std::nullopt;
  result.claim.values.insert(result.claim.values.begin(), values.begin(), values.end());
  return result;
}

void CallMeanings::merge(const CallMeanings& other) {
  definitions.insert(other.definitions.begin(), other.definitions.end());
  bodies.insert(other.bodies.begin(), other.bodies.end());
  results.insert(other.results.begin(), other.results.end());
}

Expected<Done> add_calls(const Graph& graph, CallMeanings& meanings) {
  std::vector<ValueInfo> inputs;
  for (const ValueId id : graph.inputs()) inputs.push_back({.type = graph.type(id)});
  return add_calls(graph, inputs, meanings);
}

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
    TESSERA_TRY_DONE(add_calls(source, result.meanings));
    TESSERA_TRY_DONE(add_calls(target, result.meanings));
  }
  TESSERA_TRY(const Graph a, expanded(source));
  TESSERA_TRY(const Graph b, expanded(target));
  TESSERA_TRY(const std::vector<std::string> left, builder.add(a, true));
  TESSERA_TRY(const std::vector<std::string> right, builder.add(b, false));
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i)
    result.claim.pairs.emplace_back(left[i], right[i]);
  mark_fills(result);
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
