#include "tessera/prove/element_origins.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/data_movement.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kMostMoved = 1 << 20;  // of a value
constexpr std::int64_t kMostMovedInAll = 1 << 25;

/// A shape of numbers; nothing for others, and for large ones.
std::optional<std::vector<std::int64_t>> small_shape(const Type& type) {
  auto shape = static_shape(type);
  const auto count = shape ? element_count(*shape) : std::nullopt;
  return count && *count <= kMostMoved ? std::move(shape) : std::nullopt;
}

}  // namespace

std::optional<ValueId> ElementOrigins::moved_operand(ValueId value) {
  const auto [known, is_new] = operands_.try_emplace(value.index);
  if (!is_new) return known->second;
  const GraphNode* node = graph_.producer(value);
  if (node == nullptr || graph_.outputs(*node).size() != 1) return std::nullopt;
  std::vector<ValueInfo> inputs;
  for (const ValueId id : graph_.inputs(*node)) {
    const Tensor* constant = id.present() ? graph_.constant(id) : nullptr;
    if (!id.present())
      inputs.push_back({.present = false});
    else
      inputs.push_back(constant != nullptr ? constant_info(*constant)
                                           : ValueInfo{.type = graph_.type(id)});
  }
  const auto movement = data_movement(*node->op, *node->attrs, inputs);
  if (!movement || movement->read->otherwise != nullptr) return std::nullopt;
  const ValueId operand = graph_.inputs(*node)[movement->operand];
  if (graph_.type(operand).dtype != graph_.type(value).dtype) return std::nullopt;
  for (const ValueId id : graph_.inputs(*node))
    if (id.present() && id != operand && graph_.constant(id) == nullptr) return std::nullopt;
  return operands_[value.index] = operand;
}

ValueId ElementOrigins::root(ValueId value) {
  while (const auto operand = moved_operand(value)) value = *operand;
  return value;
}

const Tensor* ElementOrigins::origins(ValueId value) {
  if (const auto known = origins_.find(value.index); known != origins_.end())
    return known->second ? &*known->second : nullptr;
  auto made = computed(value);
  if (made) elements_ += made->count();
  std::optional<Tensor>& kept = origins_[value.index] = std::move(made);
  return kept ? &*kept : nullptr;
}

std::optional<Tensor> ElementOrigins::computed(ValueId value) {
  const auto shape = small_shape(graph_.type(value));
  if (!shape || elements_ > kMostMovedInAll) return std::nullopt;
  const auto operand = moved_operand(value);
  if (!operand) {
    std::vector<std::int64_t> positions(static_cast<std::size_t>(*element_count(*shape)));
    std::iota(positions.begin(), positions.end(), 0);
    return Tensor::of<std::int64_t>(DType::I64, *shape, positions);
  }
  const Tensor* moved = origins(*operand);
  if (moved == nullptr) return std::nullopt;
  const GraphNode& node = *graph_.producer(value);
  std::vector<interp::Value> inputs;
  for (const ValueId id : graph_.inputs(node)) {
    if (!id.present())
      inputs.push_back({});
    else
      inputs.push_back({id == *operand ? *moved : *graph_.constant(id)});
  }
  const auto results =
      interp::run_op<double>(*node.op, *node.attrs, inputs, 1, {.memory_limit = 1 << 28});
  if (!results || !results->front().datum.is_tensor()) return std::nullopt;
  const Tensor& result = results->front().datum.tensor();
  const bool fits = result.dtype == DType::I64 && result.shape == *shape;
  return fits ? std::optional(result) : std::nullopt;
}

}  // namespace tessera::prove
