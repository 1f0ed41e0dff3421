#include "tessera/passes/int8_matmul.h"

#include <algorithm>
#include <optional>

#include "tessera/passes/dce.h"
#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// Sums of products of so many bytes fit into 32 bits.
constexpr std::int64_t kMostTerms = 33'000, kLeastTerms = 8, kLeastColumns = 8;

/// Source of a dequantized value: scale * (bytes - zero).
struct QuantizedOperand {
  ValueId bytes, zero;
  const Tensor* scale = nullptr;  // one number, or one for each position of `axis`
  std::int64_t axis = 0;
};

std::int64_t count_of(const Type& type) {
  const auto shape = static_shape(type);
  return shape ? element_count(*shape).value_or(0) : 0;
}

std::optional<QuantizedOperand> quantized(const Graph& graph, ValueId value) {
  const GraphNode* node = graph.producer(value);
  if (node == nullptr || node->op != op::dequantize_linear) return std::nullopt;
  const auto inputs = graph.inputs(*node);
  QuantizedOperand result{.bytes = inputs[0],
                          .zero = inputs.size() > 2 ? inputs[2] : ValueId{},
                          .scale = graph.constant(inputs[1]),
                          .axis = node->attrs->i("axis")};
  const Type& type = graph.type(result.bytes);
  if ((type.dtype != DType::I8 && type.dtype != DType::U8) || !static_shape(type))
    return std::nullopt;
  if (result.scale == nullptr || result.scale->dtype != DType::F32 ||
      result.scale->shape.size() > 1 || node->attrs->i("block_size") != 0)
    return std::nullopt;
  if (result.axis < 0) result.axis += static_cast<std::int64_t>(type.shape->size());
  return result;
}

/// A contraction of two factors: which axis of the right one its columns are, how many there are
/// and of how many terms each is the sum.
struct IntegerContraction {
  OpRef integer = nullptr;  // the operator on integers
  std::int64_t columns_axis = 0, columns = 0, terms = 0;
  std::size_t trailing = 0;  // axes of the result behind the columns
  double factor = 1;
  bool turned = false;  // the right factor is [columns, terms]
};

std::optional<IntegerContraction> contraction_of(const Graph& graph, const GraphNode& node) {
  if (node.op != op::conv && node.op != op::matmul && node.op != op::gemm) return std::nullopt;
  const auto inputs = graph.inputs(node);
  const auto left = static_shape(graph.type(inputs[0])),
             right = static_shape(graph.type(inputs[1]));
  if (!left || !right || left->size() < 2 || right->size() < 2) return std::nullopt;
  if (node.op == op::conv) {
    const std::int64_t group = node.attrs->i("group");
    std::int64_t terms = 1;
    for (std::size_t i = 1; i < right->size(); ++i) terms *= (*right)[i];
    return IntegerContraction{.integer = op::conv_integer,
                              .columns = (*right)[0] / std::max<std::int64_t>(group, 1),
                              .terms = terms,
                              .trailing = right->size() - 2};
  }
  IntegerContraction result{.integer = op::matmul_integer,
                            .columns_axis = static_cast<std::int64_t>(right->size()) - 1,
                            .columns = right->back(),
                            .terms = left->back()};
  if (node.op == op::gemm) {
    if (node.attrs->i("transA") != 0 || node.attrs->f("beta") != 1) return std::nullopt;
    result.factor = node.attrs->f("alpha");
    result.turned = node.attrs->i("transB") != 0;
    if (result.turned) {
      result.columns_axis = 0;
      result.columns = (*right)[0];
    }
  }
  return result;
}

std::optional<Rebuilder::Results> in_integers(Rebuilder& out, const GraphNode& node) {
  const Graph& graph = out.from();
  const auto contraction = contraction_of(graph, node);
  if (!contraction || contraction->terms > kMostTerms || contraction->terms < kLeastTerms ||
      contraction->columns < kLeastColumns)
    return std::nullopt;
  const auto inputs = graph.inputs(node);
  const ValueId result = graph.outputs(node)[0];
  const auto shape = static_shape(graph.type(result));
  if (!shape || graph.type(result).dtype != DType::F32) return std::nullopt;
  const auto a = quantized(graph, inputs[0]), b = quantized(graph, inputs[1]);
  const auto is_one = [&](ValueId zero) {
    return !zero.present() || count_of(graph.type(zero)) == 1;
  };
  if (!a || !b || a->scale->count() != 1 || !is_one(a->zero)) return std::nullopt;
  const bool by_column = b->scale->count() != 1 || !is_one(b->zero);
  if (by_column && b->axis != contraction->columns_axis) return std::nullopt;

  std::vector<float> factors;
  for (std::int64_t i = 0; i < b->scale->count(); ++i)
    factors.push_back(static_cast<float>(contraction->factor * number_at(*a->scale, 0) *
                                         number_at(*b->scale, i)));
  Writer::Sizes factor_shape;
  if (factors.size() > 1) {
    factor_shape.assign(contraction->trailing + 1, 1);
    factor_shape[0] = static_cast<std::int64_t>(factors.size());
  }
  Writer integers(out, DType::I32), floats(out, DType::F32);
  const auto mapped = [&](ValueId value) { return value.present() ? out.mapped(value) : value; };
  ValueId right = mapped(b->bytes);
  if (contraction->turned) {
    const Type& type = graph.type(b->bytes);
    right = Writer(out, type.dtype).transposed(right, *static_shape(type), {1, 0});
  }
  ValueId value =
      integers.add(contraction->integer,
                   contraction->trailing > 0 || node.op == op::conv ? *node.attrs : Attrs{},
                   {mapped(a->bytes), right, mapped(a->zero), mapped(b->zero)}, *shape);
  value = floats.add(op::cast, {{"to", "f32"}}, {value}, *shape);
  value = floats.add(
      op::mul, {},
      {value, floats.constant(Tensor::of<float>(DType::F32, factor_shape, std::span(factors)))},
      *shape);
  if (inputs.size() > 2 && inputs[2].present()) {
    ValueId bias = out.mapped(inputs[2]);
    if (contraction->trailing > 0) {
      Writer::Sizes wide(contraction->trailing + 1, 1);
      wide[0] = (*shape)[1];
      bias = floats.reshaped(bias, wide);
    }
    value = floats.add(op::add, {}, {value, bias}, *shape);
  }
  return Rebuilder::Results{value};
}

}  // namespace

Graph int8_matmul(const Graph& graph) {
  if (std::ranges::none_of(graph.nodes(),
                           [](const GraphNode& node) { return node.op == op::dequantize_linear; }))
    return graph;
  return without_dead(
      rebuild(graph, [](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
        if (auto made = in_integers(out, node)) return *made;
        return out.copy(node);
      }));
}

}  // namespace tessera::passes
