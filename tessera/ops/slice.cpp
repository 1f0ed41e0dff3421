#include <algorithm>

#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

struct Limits {
  Dim lowest, highest;
};

/// Whether a bound counts from the end: decided by the sign of a number; for symbolic bounds, which
/// are computed from sizes, by their value for large sizes.
bool counts_from_end(const Dim& place) {
  constexpr std::int64_t kLargeSize = 1 << 20;
  const Dim value = place.substituted([](std::string_view) { return Dim(kLargeSize); });
  return value.constant().value_or(0) < 0;
}

/// Clamps a start or end. A bound that counts from the start cannot be below the lowest, nor one
/// that counts from the end above the highest: only the other side is clamped, and only if
/// necessary, which keeps symbolic sizes small.
Dim clamped(const Dim& place, const Dim& size, const Limits& limits) {
  // Numbers beyond every size are how "to the end" is written.
  constexpr std::int64_t kBeyond = std::int64_t{1} << 31;
  if (!size.constant() && place.constant()) {
    if (*place.constant() >= kBeyond) return limits.highest;
    if (*place.constant() <= -kBeyond) return limits.lowest;
  }
  if (!counts_from_end(place)) {
    const bool sure = place.is(0) && limits.highest == size;
    return sure ? place : min(place, limits.highest);
  }
  const bool sure = place.is(-1) && limits.highest == size - 1;
  return sure ? limits.highest : max(place + size, limits.lowest);
}

/// Start, step and length of a slice along one axis.
struct Stride {
  Dim start = 0, count;
  std::int64_t step = 1;
};

struct Range {
  Dim start, end;
  std::int64_t step = 1;
};

Stride stride_of(const Range& range, const Dim& size) {
  const bool forward = range.step > 0;
  const Dim highest = forward ? size : size - 1;
  const Limits starts{forward ? Dim(0) : min(0, size - 1), highest};
  const Limits ends{forward ? 0 : -1, highest};
  const Dim start = clamped(range.start, size, starts), end = clamped(range.end, size, ends);
  const Dim& first = forward ? start : end;
  const Dim& last = forward ? end : start;
  const bool ordered = first == ends.lowest || last == highest;
  const Dim count =
      forward ? ceil_div(end - start, range.step) : ceil_div(start - end, -range.step);
  return {start, ordered ? count : max(count, 0), range.step};
}

Expected<std::vector<Range>> ranges_of(const Signature& in) {
  TESSERA_TRY(const std::vector<Dim> starts, known_sizes(in, 1, "starts"));
  TESSERA_TRY(const std::vector<Dim> ends, known_sizes(in, 2, "ends"));
  Ints steps(starts.size(), 1);
  if (given(in, 4)) {
    TESSERA_TRY(steps, known_integers(in, 4, "steps"));
  }
  if (starts.size() != ends.size() || starts.size() != steps.size())
    return bad_operands(fmt::format("there are {} starts, {} ends and {} steps", starts.size(),
                                    ends.size(), steps.size()),
                        "they have to be equally many");
  std::vector<Range> result;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0) return bad_operands("a step is 0");
    // Steps longer than any size select one element; they are limited to this.
    constexpr std::int64_t kLongest = std::int64_t{1} << 62;
    result.push_back({starts[i], ends[i], std::clamp(steps[i], -kLongest, kLongest)});
  }
  return result;
}

}  // namespace

OpDef slice() {
  return {.name = "slice",
          .summary = "x from starts to ends in steps; negative places count from the end",
          .inputs = {"x", "starts", "ends", "axes?", "steps?"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const std::vector<Range> ranges, ranges_of(in));
            Ints named = all_axes(static_cast<int>(ranges.size()));
            if (given(in, 3)) {
              TESSERA_TRY(named, known_integers(in, 3, "axes"));
            }
            TESSERA_TRY(const std::vector<int> sliced, normal_axes(named, in[0].rank()));
            if (sliced.size() != ranges.size())
              return bad_operands(fmt::format("there are {} axes", sliced.size()),
                                  fmt::format("there are {} starts", ranges.size()));
            std::vector<Axis> run = axes("i", in[0].rank());
            Operand x{"x", in[0].dtype(), sizes(run)};
            std::vector<Scalar> at = indices(run);
            for (std::size_t i = 0; i < ranges.size(); ++i) {
              const auto axis = static_cast<std::size_t>(sliced[i]);
              const Dim& size = in[0].type.shape[axis];
              const Stride stride = stride_of(ranges[i], size);
              x.shape[axis] = size;
              at[axis] = Scalar(run[axis]) * Scalar(stride.step) + Scalar(stride.start);
              run[axis].extent = stride.count;
            }
            return Definition{.inputs = tessera::concat(
                                  {x}, rest_as_given({"starts", "ends", "axes", "steps"}, in)),
                              .outputs = {output(x.dtype, each(run), x(at))}};
          }};
}

OpDef update_slice() {
  return {.name = "update_slice",
          .summary =
              "x with a box of it replaced by update, which begins at the position starts; "
              "what of update lies outside of x is ignored",
          .inputs = {"x", "update", "starts"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype({in[0], in[1]}));
            TESSERA_TRY(const std::vector<Dim> starts, known_sizes(in, 2, "starts"));
            const int rank = in[0].rank();
            if (in[1].rank() != rank || static_cast<int>(starts.size()) != rank)
              return bad_operands(fmt::format("x has {} axes, update {}, and there are {} starts",
                                              rank, in[1].rank(), starts.size()),
                                  "they have to be equally many");
            const std::vector<Axis> run = axes("i", rank);
            const Operand x{"x", in[0].dtype(), sizes(run)};
            const std::vector<Operand> rest = rest_as_given({"update", "starts"}, in);
            const Operand& update = rest[0];
            std::vector<Scalar> at;
            for (int axis = 0; axis < rank; ++axis) {
              const auto i = static_cast<std::size_t>(axis);
              at.push_back(Scalar(run[i]) - Scalar(starts[i]));
            }
            const Scalar value = rank == 0 ? update({}) : update.or_else(at, x(indices(run)));
            return Definition{.inputs = tessera::concat({x}, rest),
                              .outputs = {output(x.dtype, each(run), value)}};
          },
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            const Val &x = in[0], &update = in[1], &starts = in[2];
            const Val size = sizes_of(update, 0, update.rank());
            const Val after = sizes_of(x, 0, x.rank()) - starts - size;
            const Val pads = joined({starts, after}, 0);
            const Val inside = b.op("pad", {filled(1, DType::F32, {size}), pads});
            const Val condition = b.op("cast", {inside}, {{"to", std::string("bool")}});
            return Vals{b.op("where", {condition, b.op("pad", {update, pads}), x})};
          }};
}

OpDef reverse_sequence() {
  return {
      .name = "reverse_sequence",
      .summary = "the first lengths[b] elements of each sequence b in reverse",
      .inputs = {"x", "lengths"},
      .attrs = {{"batch_axis", 1}, {"time_axis", 0}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const int batch, normal_axis(attrs.i("batch_axis"), in[0].rank()));
        TESSERA_TRY(const int time, normal_axis(attrs.i("time_axis"), in[0].rank()));
        TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
        if (batch == time || in[1].rank() != 1)
          return bad_operands(fmt::format("the batch and time axes are {} and {}", batch, time),
                              "they have to differ, and lengths to have one axis");
        const std::vector<Axis> run = axes("i", in[0].rank());
        const Axis& b = run[static_cast<std::size_t>(batch)];
        const Scalar t = run[static_cast<std::size_t>(time)];
        const Operand x{"x", in[0].dtype(), sizes(run)};
        const Operand lengths{"lengths", in[1].dtype(), {b}};
        std::vector<Scalar> at = indices(run);
        at[static_cast<std::size_t>(time)] =
            select(t < lengths({b}), lengths({b}) - Scalar(1) - t, t);
        return Definition{.inputs = {x, lengths}, .outputs = {output(x.dtype, each(run), x(at))}};
      }};
}

}  // namespace tessera::define
