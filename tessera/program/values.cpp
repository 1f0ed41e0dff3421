#include "tessera/program/values.h"

#include <utility>

namespace tessera::program {

bool is_plain(const Graph& graph, ValueId value) {
  const Type& type = graph.type(value);
  return type.kind == Type::Kind::Tensor && type.dtype != DType::String && static_shape(type);
}

std::size_t rank_of(const Graph& graph, ValueId value) {
  return is_plain(graph, value) ? graph.type(value).shape->size() : 0;
}

std::vector<std::int64_t> shape_of(const Graph& graph, ValueId value) {
  return static_shape(graph.type(value)).value_or(std::vector<std::int64_t>{});
}

bool is_empty(const Graph& graph, ValueId value) {
  return is_plain(graph, value) && element_count(shape_of(graph, value)) == 0;
}

runtime::Value value_of(const Graph& graph, ValueId id, runtime::Value::Home home,
                        const AxisOrder& order, std::optional<DType> dtype) {
  runtime::Value value{
      .name = graph.name(id), .home = home, .dtype = dtype.value_or(graph.type(id).dtype)};
  if (is_plain(graph, id))
    value.shape = in_memory(shape_of(graph, id), order);
  else
    value.home = runtime::Value::Home::Boxed;
  return value;
}

runtime::ValueIndex add_plain_weight(DraftBuilder& out, const Graph& graph, ValueId constant) {
  runtime::Value value =
      value_of(graph, constant, runtime::Value::Home::Weight, row_major(rank_of(graph, constant)));
  return out.add_weight(constant.index, std::move(value), {*graph.constant(constant), {}}, {});
}

}  // namespace tessera::program
