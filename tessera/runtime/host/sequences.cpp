#include <fmt/format.h>

#include <algorithm>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

using Sequence = std::vector<Datum>;

Results one(const Arguments& in, Datum result) {
  return in.results({std::move(result)});
}

/// Position in a sequence, from an optional input.
Expected<std::int64_t> position(const Arguments& in, std::size_t index, std::int64_t places,
                                std::int64_t otherwise) {
  if (!in.has(index)) return in.place("position", otherwise, places);
  TESSERA_TRY(const std::int64_t found, in.integer(index));
  return in.place("position", found, places);
}

Expected<Done> same_dtype(const Arguments& in, const Sequence& elements) {
  for (const Datum& element : elements)
    if (const DType found = element.tensor().dtype; found != elements.front().tensor().dtype)
      return in.fault(fmt::format("a sequence of {} and {}",
                                  to_string(elements.front().tensor().dtype), to_string(found)),
                      "the tensors of a sequence have one dtype");
  return Done{};
}

/// Length of each piece.
Expected<std::vector<std::int64_t>> piece_lengths(const Arguments& in, std::int64_t extent) {
  Tensor split;
  if (in.has(1)) {
    TESSERA_TRY(split, in.integer_tensor(1));
    if (split.shape.size() > 1)
      return in.fault(fmt::format("split has shape {}", shape_text(split.shape)),
                      "a scalar or a list is expected");
  }
  if (in.has(1) && split.shape.size() == 1) {
    std::vector<std::int64_t> lengths = integers_of(split);
    std::int64_t left = extent;
    for (const std::int64_t length : lengths) {
      if (length < 0 || length > left)
        return in.fault(fmt::format("a piece of {} where {} are left", length, left));
      left -= length;
    }
    if (left != 0) return in.fault(fmt::format("split leaves {} of {}", left, extent));
    return lengths;
  }
  const std::int64_t length = in.has(1) ? integer_at(split, 0) : 1;
  if (length < 1) return in.fault(fmt::format("split={}", length), "it must be positive");
  const std::int64_t whole = extent / length, rest = extent % length;
  // Pieces may be empty, so their number is not bounded by the data.
  TESSERA_TRY_DONE(in.fits(whole + 1, sizeof(Datum)));
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(whole), length);
  if (rest != 0) lengths.push_back(rest);
  return lengths;
}

}  // namespace

Results sequence_empty(const Call& call) {
  return one(Arguments(call, "sequence_empty"), Datum::sequence({}));
}

Results sequence_construct(const Call& call) {
  const Arguments in(call, "sequence_construct");
  Sequence elements;
  for (std::size_t i = 0; i < in.count(); ++i) {
    TESSERA_TRY(Tensor element, in.tensor(i));
    elements.emplace_back(std::move(element));
  }
  if (elements.empty()) return in.fault("no inputs", "at least one tensor is expected");
  TESSERA_TRY_DONE(same_dtype(in, elements));
  return one(in, Datum::sequence(std::move(elements)));
}

Results sequence_insert(const Call& call) {
  const Arguments in(call, "sequence_insert");
  TESSERA_TRY(Sequence elements, in.sequence(0));
  TESSERA_TRY(Tensor element, in.tensor(1));
  // There are n + 1 gaps, but a negative position counts elements: -n is before the first.
  const auto size = static_cast<std::int64_t>(elements.size());
  std::int64_t at = size;
  if (in.has(2)) {
    TESSERA_TRY(at, in.integer(2));
    if (at != size) {
      TESSERA_TRY(at, in.place("position", at, size));
    }
  }
  elements.insert(elements.begin() + at, std::move(element));
  TESSERA_TRY_DONE(same_dtype(in, elements));
  return one(in, Datum::sequence(std::move(elements)));
}

Results sequence_erase(const Call& call) {
  const Arguments in(call, "sequence_erase");
  TESSERA_TRY(Sequence elements, in.sequence(0));
  TESSERA_TRY(const std::int64_t at,
              position(in, 1, static_cast<std::int64_t>(elements.size()), -1));
  elements.erase(elements.begin() + at);
  return one(in, Datum::sequence(std::move(elements)));
}

Results sequence_at(const Call& call) {
  const Arguments in(call, "sequence_at");
  TESSERA_TRY(const Sequence elements, in.sequence(0));
  TESSERA_TRY(const std::int64_t index, in.integer(1));
  TESSERA_TRY(const std::int64_t at,
              in.place("position", index, static_cast<std::int64_t>(elements.size())));
  return one(in, elements[static_cast<std::size_t>(at)]);
}

Results sequence_length(const Call& call) {
  const Arguments in(call, "sequence_length");
  TESSERA_TRY(const Sequence elements, in.sequence(0));
  const std::int64_t length[] = {static_cast<std::int64_t>(elements.size())};
  return one(in, Tensor::of<std::int64_t>(DType::I64, {}, length));
}

Results split_to_sequence(const Call& call) {
  const Arguments in(call, "split_to_sequence");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  TESSERA_TRY(const std::size_t axis, in.axis(in.attrs().i("axis"), x.shape.size()));
  const Lanes from = lanes_along(x.shape, axis);
  TESSERA_TRY(const std::vector<std::int64_t> lengths, piece_lengths(in, from.extent));
  const bool squeeze = !in.has(1) && in.attrs().i("keepdims") == 0;

  Sequence pieces;
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    Shape shape = with_extent(x.shape, axis, length);
    if (squeeze) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    TESSERA_TRY(Draft piece, in.allocate(x.dtype, std::move(shape)));
    for (std::int64_t o = 0; o < from.outer; ++o)
      piece.copy(o * length * from.inner, x, from.at(o, start), length * from.inner);
    pieces.emplace_back(std::move(piece).finish());
    start += length;
  }
  return one(in, Datum::sequence(std::move(pieces)));
}

Results concat_from_sequence(const Call& call) {
  const Arguments in(call, "concat_from_sequence");
  TESSERA_TRY(const Sequence sequence, in.sequence(0));
  if (sequence.empty()) return in.fault("the sequence is empty", "one tensor at least is expected");
  TESSERA_TRY_DONE(same_dtype(in, sequence));
  const Tensor& first = sequence.front().tensor();
  const bool stack = in.attrs().i("new_axis") != 0;
  TESSERA_TRY(const std::size_t axis,
              in.axis(in.attrs().i("axis"), first.shape.size() + (stack ? 1 : 0)));

  std::vector<Tensor> pieces;
  std::int64_t extent = 0, text = 0;
  for (const Datum& element : sequence) {
    Tensor& piece = pieces.emplace_back(element.tensor());
    if (stack && piece.shape.size() == first.shape.size())
      piece.shape.insert(piece.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    const Shape& expected = pieces.front().shape;
    const bool fitting = piece.shape.size() == expected.size() &&
                         with_extent(piece.shape, axis, expected[axis]) == expected &&
                         (!stack || element.tensor().shape == first.shape);
    if (!fitting)
      return in.fault(fmt::format("shapes {} and {} differ", shape_text(first.shape),
                                  shape_text(element.tensor().shape)));
    if (__builtin_add_overflow(extent, piece.shape[axis], &extent))
      return in.fault("the sequence is too long");
    text += text_bytes(piece);
  }
  TESSERA_TRY(Draft out,
              in.allocate(first.dtype, with_extent(pieces.front().shape, axis, extent), text));
  std::int64_t start = 0;
  for (const Tensor& piece : pieces) {
    const Lanes from = lanes_along(piece.shape, axis);
    for (std::int64_t o = 0; o < from.outer; ++o)
      out.copy((o * extent + start) * from.inner, piece, from.at(o, 0), from.extent * from.inner);
    start += from.extent;
  }
  return one(in, std::move(out).finish());
}

Results optional(const Call& call) {
  const Arguments in(call, "optional");
  if (!in.has(0)) return one(in, Datum::optional());
  TESSERA_TRY(Datum content, in.datum(0));
  return one(in, Datum::optional(std::move(content)));
}

Results optional_has_element(const Call& call) {
  const Arguments in(call, "optional_has_element");
  bool held = in.has(0);
  if (held && call.inputs[0].kind() == Datum::Kind::Optional)
    held = !call.inputs[0].elements().empty();
  const std::uint8_t answer[] = {static_cast<std::uint8_t>(held)};
  return one(in, Tensor::of<std::uint8_t>(DType::Bool, {}, answer));
}

Results optional_get_element(const Call& call) {
  const Arguments in(call, "optional_get_element");
  TESSERA_TRY(Datum datum, in.datum(0));
  if (datum.kind() != Datum::Kind::Optional) return one(in, std::move(datum));
  if (datum.elements().empty()) return in.fault("the optional is empty");
  return one(in, datum.elements().front());
}

}  // namespace tessera::host
