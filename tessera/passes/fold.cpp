#include "tessera/passes/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tessera/expr/walk.h"
#include "tessera/interp/interp.h"
#include "tessera/ops/operators.h"
#include "tessera/passes/scaled.h"

namespace tessera::passes {
namespace {

/// Largest result in bytes that the interpreter computes; larger ones are left to generated code.
constexpr std::int64_t kMostEvaluated = std::int64_t{4} << 20;

std::optional<std::int64_t> bytes_of(const Type& type) {
  if (!type.is_ranked_tensor()) return std::nullopt;
  const std::optional<std::int64_t> count = product(*type.shape).constant();
  return count ? std::optional(*count * byte_width(type.dtype)) : std::nullopt;
}

/// Integers that inference knows, all of them numbers.
std::optional<Tensor> known_integers(const ValueInfo& known) {
  if (known.content) return known.content;
  if (!known.value || !known.type.is_ranked_tensor() || is_float(known.type.dtype)) return {};
  std::vector<std::int64_t> shape;
  for (const Dim& dim : *known.type.shape) {
    if (!dim.constant()) return std::nullopt;
    shape.push_back(*dim.constant());
  }
  Buffer buffer(known.value->size() * static_cast<std::size_t>(byte_width(known.type.dtype)));
  for (std::size_t i = 0; i < known.value->size(); ++i) {
    const std::optional<std::int64_t> integer = (*known.value)[i].constant();
    if (!integer) return std::nullopt;
    store_integer(known.type.dtype, buffer.data(), static_cast<std::int64_t>(i), *integer);
  }
  return Tensor{known.type.dtype, std::move(shape), std::move(buffer).freeze()};
}

/// Weights that are stored as bytes or less: as floats they take several times as much memory, and
/// products read bytes as such.
bool is_stored_small(const Tensor& constant, const Type& result) {
  return byte_width(constant.dtype) == 1 && constant.dtype != DType::Bool &&
         is_float(result.dtype) && byte_width(result.dtype) > 1 && constant.count() > 64;
}

/// Whether an element depends on elements of the operands alone, at positions along axes or 0: on
/// tensors that are one number each, all elements are equal, whatever the sizes.
bool is_elementwise(const Output& output) {
  const auto is_position = [](const Scalar& index) {
    return std::holds_alternative<node::Index>(index.node()) || index.integer() == 0;
  };
  const auto is_simple = [&](const auto& self, const Scalar& scalar) -> bool {
    const Node& node = scalar.node();
    if (const auto* read = std::get_if<node::Read>(&node))
      return read->otherwise == nullptr && std::ranges::all_of(read->at, is_position);
    if (const auto* apply = std::get_if<node::Apply>(&node))
      return std::ranges::all_of(apply->args, [&](const Scalar& arg) { return self(self, arg); });
    if (const auto* cast = std::get_if<node::Cast>(&node)) return self(self, *cast->arg);
    return std::holds_alternative<node::Constant>(node);
  };
  return !output.forward && is_simple(is_simple, output.value);
}

class FoldRewrite {
 public:
  FoldRewrite(const FoldLimits& limits, Changes& changes) : limits_(limits), changes_(changes) {}

  std::optional<Rewriter::Results> operator()(Rewriter& out, std::size_t index) {
    const GraphNode node = out.made().nodes()[index];
    if (!node.op->pure) return std::nullopt;
    if (node.op->control == OpDef::Control::If) return taken_branch(out, node);
    if (node.op->kind() == OpDef::Kind::Control) return std::nullopt;
    auto results = by_inference(out, node);
    if (!results) results = by_evaluation(out, node);
    if (!results) results = by_one_element(out, node);
    if (results) changes_.emplace_back(fmt::format("{} folded", node.op->name), out.where());
    return results;
  }

 private:
  std::optional<Rewriter::Results> by_inference(Rewriter& out, const GraphNode& node) const {
    std::vector<Tensor> tensors;
    const auto outputs = out.made().outputs(node);
    for (const ValueId id : outputs) {
      if (!limits_.rounds && is_float(out.made().type(id).dtype)) return std::nullopt;
      auto tensor = known_integers(out.known(id));
      if (!tensor) return std::nullopt;
      tensors.push_back(*std::move(tensor));
    }
    Rewriter::Results results;
    for (Tensor& tensor : tensors) results.push_back(out.constant(std::move(tensor)));
    return results;
  }

  std::optional<Rewriter::Results> by_evaluation(Rewriter& out, const GraphNode& node) const {
    const Graph& graph = out.made();
    std::vector<interp::Value> inputs;
    std::int64_t replaced = 0;  // bytes of the operands that go away
    for (const ValueId id : graph.inputs(node)) {
      const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
      if (id.present() && constant == nullptr) return std::nullopt;
      inputs.push_back(constant == nullptr ? interp::Value{} : interp::Value{*constant});
      if (constant != nullptr && constant->count() > limits_.most_numbers) return std::nullopt;
      if (constant != nullptr && is_stored_small(*constant, graph.type(graph.outputs(node)[0])))
        return std::nullopt;
      if (constant != nullptr && out.uses(id) == 1)
        replaced += static_cast<std::int64_t>(constant->bytes.size());
    }
    // A data-dependent size (non_zero) is known after evaluation.
    std::int64_t made = 0;
    for (const ValueId id : graph.outputs(node)) {
      const Type& type = graph.type(id);
      if (type.kind != Type::Kind::Tensor || type.dtype == DType::String) return std::nullopt;
      if (!limits_.rounds && is_float(type.dtype)) return std::nullopt;
      made += bytes_of(type).value_or(0);
    }
    const std::int64_t most = std::max(replaced, limits_.most_bytes);
    if (made > most) return std::nullopt;
    if (auto product = scaled_weights(*node.op, inputs))
      return Rewriter::Results{out.constant(*std::move(product))};
    if (made > std::max(kMostEvaluated, limits_.most_bytes)) return std::nullopt;
    const auto results = interp::run_op<double>(
        *node.op, *node.attrs, inputs, static_cast<int>(graph.outputs(node).size()),
        {.threads = 1, .memory_limit = 16 * std::max(replaced, made) + (64 << 20)});
    // What cannot be computed is left for the run to complain about.
    if (!results || !std::ranges::all_of(*results, [](const interp::Value& value) {
          return value.datum.is_tensor();
        }))
      return std::nullopt;
    std::int64_t bytes = 0;
    for (const interp::Value& result : *results)
      bytes += static_cast<std::int64_t>(result.datum.tensor().bytes.size());
    if (bytes > most) return std::nullopt;
    Rewriter::Results ids;
    for (const interp::Value& result : *results) ids.push_back(out.constant(result.datum.tensor()));
    return ids;
  }

  /// A result that is too large to be a constant, of operands that are one number each: that of
  /// their numbers, expanded.
  std::optional<Rewriter::Results> by_one_element(Rewriter& out, const GraphNode& node) const {
    const Graph& graph = out.made();
    const auto outputs = graph.outputs(node);
    if (node.op->kind() != OpDef::Kind::Core || node.op == op::expand || outputs.size() != 1 ||
        graph.inputs(node).empty())
      return std::nullopt;
    const Type& type = graph.type(outputs[0]);
    const auto shape = type.is_ranked_tensor() ? static_shape(type) : std::nullopt;
    if (!shape || (!limits_.rounds && is_float(type.dtype))) return std::nullopt;
    std::vector<interp::Value> numbers;
    for (const ValueId id : graph.inputs(node)) {
      auto number = id.present() ? number_of(graph, id) : std::nullopt;
      if (!number) return std::nullopt;
      numbers.emplace_back(*std::move(number));
    }
    const auto signature = signature_of(out.known(graph.inputs(node)));
    if (!signature) return std::nullopt;
    const Expected<Definition> definition = node.op->define(*node.attrs, *signature);
    if (!definition || !is_elementwise(definition->outputs[0])) return std::nullopt;
    const auto results = interp::run_op<double>(*node.op, *node.attrs, numbers, 1, {.threads = 1});
    if (!results || !results->front().datum.is_tensor()) return std::nullopt;
    const Tensor& element = results->front().datum.tensor();
    if (element.count() != 1 || element.dtype != type.dtype) return std::nullopt;
    const ValueId number = out.constant({.dtype = element.dtype, .bytes = element.bytes});
    const ValueId sizes = out.constant(Tensor::of<std::int64_t>(
        DType::I64, {static_cast<std::int64_t>(shape->size())}, std::span(*shape)));
    return out.emit({.op = op::expand, .attrs = {}, .inputs = {number, sizes}});
  }

  /// The number that every element of a value is, as a tensor of as many axes.
  static std::optional<Tensor> number_of(const Graph& graph, ValueId value) {
    const GraphNode* node = graph.producer(value);
    const bool is_expanded = node != nullptr && node->op == op::expand;
    const Tensor* constant = graph.constant(is_expanded ? graph.inputs(*node)[0] : value);
    if (constant == nullptr || !graph.type(value).is_ranked_tensor() ||
        constant->dtype == DType::String || !is_uniform(*constant))
      return std::nullopt;
    const auto width = static_cast<std::size_t>(byte_width(constant->dtype));
    Buffer bytes(width);
    std::memcpy(bytes.data(), constant->bytes.data(), width);
    const std::vector<std::int64_t> sizes(graph.type(value).shape->size(), 1);
    return Tensor{constant->dtype, sizes, std::move(bytes).freeze()};
  }

  /// Whether a type has every size that another one has.
  static bool is_as_precise(const Type& type, const Type& other) {
    if (!other.shape) return true;
    return type.shape &&
           std::ranges::equal(*type.shape, *other.shape, [](const Dim& a, const Dim& b) {
             return !b.constant() || a.constant();
           });
  }

  std::optional<Rewriter::Results> taken_branch(Rewriter& out, const GraphNode& node) {
    const auto inputs = out.made().inputs(node);
    const Tensor* condition = out.made().constant(inputs[0]);
    if (condition == nullptr || condition->count() != 1) return std::nullopt;
    const std::size_t branch = integer_at(*condition, 0) != 0 ? 0 : 1;
    const std::shared_ptr<const Graph> graph = out.made().subgraphs(node)[branch];
    const Rewriter::Results captures(inputs.begin() + 1, inputs.end());
    for (std::size_t i = 0; i < captures.size(); ++i)
      if (!is_as_precise(out.made().type(captures[i]), graph->type(graph->inputs()[i])))
        return std::nullopt;
    auto results = out.emit(*graph, captures);
    if (results)
      changes_.emplace_back(
          fmt::format("if replaced by its {} branch", branch == 0 ? "then" : "else"), out.where());
    return results;
  }

  FoldLimits limits_;
  Changes& changes_;
};

}  // namespace

bool is_uniform(const Tensor& constant) {
  const auto width = byte_width(constant.dtype);
  const std::span<const std::byte> bytes = constant.bytes.view();
  return width > 0 && std::ssize(bytes) >= width &&
         std::equal(bytes.begin(), bytes.end() - width, bytes.begin() + width);
}

Rewriter::Rewrite fold_rewrite(const FoldLimits& limits, Changes& changes) {
  return FoldRewrite(limits, changes);
}

}  // namespace tessera::passes
