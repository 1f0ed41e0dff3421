#include "tessera/passes/fold.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/interp/interp.h"
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

Rewriter::Rewrite fold_rewrite(const FoldLimits& limits, Changes& changes) {
  return FoldRewrite(limits, changes);
}

}  // namespace tessera::passes
