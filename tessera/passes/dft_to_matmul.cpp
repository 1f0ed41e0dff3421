#include "tessera/passes/dft_to_matmul.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// Discrete Fourier transform of `taken` input numbers to `given` output numbers, each with one
/// (real) or two parts.
struct Fourier {
  std::int64_t length = 0, taken = 0, given = 0;
  std::int64_t parts_in = 1, parts_out = 2;
  bool inverse = false, onesided = false;

  bool is_small() const {
    return length > 0 && taken * parts_in * given * parts_out <= std::int64_t{4} << 20;
  }

  /// Matrix element: coefficient of part `p` of input `m` in part `z` of output `k`.
  double weight(std::int64_t m, std::int64_t p, std::int64_t k, std::int64_t z) const {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k * m % length) / static_cast<double>(length);
    double result = p == z ? std::cos(angle) : (z == 0 ? 1 : -1) * std::sin(angle);
    if (!inverse) return result;
    if (p != z) result = -result;
    // One half of a real signal's spectrum is given; the other half is its conjugate.
    if (onesided && m != 0 && 2 * m != length) result *= 2;
    return result / static_cast<double>(length);
  }
};

/// Calls `number(m, p, k, z)` for the elements of a matrix [m p, k z], or the other way round.
template <class Number>
Tensor matrix(DType dtype, const Fourier& f, bool turned, const Number& number) {
  const std::int64_t rows = f.taken * f.parts_in, columns = f.given * f.parts_out;
  Buffer buffer(static_cast<std::size_t>(rows * columns * byte_width(dtype)));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      store_number(dtype, buffer.data(), turned ? j * rows + i : i * columns + j,
                   number(turned ? i % f.taken : i / f.parts_in,
                          turned ? i / f.taken : i % f.parts_in, j / f.parts_out, j % f.parts_out));
  return {dtype, turned ? Writer::Sizes{columns, rows} : Writer::Sizes{rows, columns},
          std::move(buffer).freeze()};
}

/// The one integer that an optional input is; nothing where it is not constant.
std::optional<std::int64_t> integer_of(const Graph& graph, const GraphNode& node, std::size_t input,
                                       std::int64_t otherwise) {
  const auto inputs = graph.inputs(node);
  if (input >= inputs.size() || !inputs[input].present()) return otherwise;
  const Tensor* constant = graph.constant(inputs[input]);
  if (constant == nullptr || constant->count() != 1) return std::nullopt;
  return integer_at(*constant, 0);
}

std::optional<ValueId> written_dft(Rebuilder& out, const GraphNode& node) {
  const Graph& graph = out.from();
  const ValueId signal = graph.inputs(node)[0];
  const auto shape = static_shape(graph.type(signal));
  const auto result = static_shape(graph.type(graph.outputs(node)[0]));
  const auto named = integer_of(graph, node, 2, -2);
  if (!shape || !result || !named || product(*shape) == 0) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto axis = static_cast<std::size_t>(*named < 0 ? *named + rank : *named);
  const bool inverse = node.attrs->i("inverse") != 0, onesided = node.attrs->i("onesided") != 0;
  const std::int64_t points = (*shape)[axis];
  const auto length = integer_of(graph, node, 1, onesided && inverse ? (points - 1) * 2 : points);
  if (!length) return std::nullopt;
  const std::int64_t read = onesided && inverse ? *length / 2 + 1 : *length;
  const Fourier f{.length = *length,
                  .taken = points,
                  .given = (*result)[axis],
                  .parts_in = shape->back(),
                  .parts_out = result->back(),
                  .inverse = inverse,
                  .onesided = onesided};
  if (!f.is_small()) return std::nullopt;

  const DType dtype = graph.type(signal).dtype;
  Writer writer(out, dtype);
  // The axis next to the last one, and back; that order is its own inverse if it only swaps.
  Writer::Sizes order(shape->size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[shape->size() - 2]);
  const bool moves = axis + 2 != shape->size();
  ValueId value = out.mapped(signal);
  if (moves) value = writer.transposed(value, *shape, order);
  const std::int64_t rows = product(*shape) / (f.taken * f.parts_in);
  value = writer.reshaped(value, {rows, f.taken * f.parts_in});
  const Tensor weights = matrix(dtype, f, false, [&](auto m, auto p, auto k, auto z) {
    return m < read ? f.weight(m, p, k, z) : 0.0;
  });
  value = writer.add(op::matmul, {}, {value, writer.constant(weights)}, {rows, weights.shape[1]});
  Writer::Sizes apart = *result;
  if (moves) std::swap(apart[axis], apart[shape->size() - 2]);
  value = writer.reshaped(value, apart);
  return moves ? writer.transposed(value, apart, order) : value;
}

std::optional<ValueId> written_stft(Rebuilder& out, const GraphNode& node) {
  const Graph& graph = out.from();
  const auto inputs = graph.inputs(node);
  const auto shape = static_shape(graph.type(inputs[0]));
  const auto result = static_shape(graph.type(graph.outputs(node)[0]));
  const auto step = integer_of(graph, node, 1, 0);
  const bool windowed = inputs.size() > 2 && inputs[2].present();
  const Tensor* window = windowed ? graph.constant(inputs[2]) : nullptr;
  if (!shape || !result || !step || *step < 1 || (windowed && window == nullptr) ||
      product(*result) == 0)
    return std::nullopt;
  const auto length = integer_of(graph, node, 3, windowed ? window->shape[0] : (*shape)[1]);
  if (!length || (windowed && window->shape[0] != *length)) return std::nullopt;
  const Fourier f{
      .length = *length, .taken = *length, .given = (*result)[2], .parts_in = shape->back()};
  if (!f.is_small()) return std::nullopt;

  // The signal [b, l, parts] as [b, parts, l], and its filters [k z, parts, m].
  const DType dtype = graph.type(inputs[0]).dtype;
  const std::int64_t batch = (*shape)[0], frames = (*result)[1], filters = f.given * f.parts_out;
  Writer writer(out, dtype);
  ValueId value = writer.transposed(out.mapped(inputs[0]), *shape, {0, 2, 1});
  Tensor weights = matrix(dtype, f, true, [&](auto m, auto p, auto k, auto z) {
    return f.weight(m, p, k, z) * (windowed ? number_at(*window, m) : 1.0);
  });
  weights.shape = {filters, f.parts_in, f.taken};
  value = writer.add(op::conv, {{"strides", Ints{*step}}}, {value, writer.constant(weights)},
                     {batch, filters, frames});
  value = writer.transposed(value, {batch, filters, frames}, {0, 2, 1});
  return writer.reshaped(value, *result);
}

}  // namespace

Expected<Graph> dft_to_matmul(const Graph& graph) {
  return rebuild(graph, [](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
    std::optional<ValueId> made;
    if (node.op == op::dft) made = written_dft(out, node);
    if (node.op == op::stft) made = written_stft(out, node);
    if (made) return {*made};
    return out.copy(node);
  });
}

}  // namespace tessera::passes
