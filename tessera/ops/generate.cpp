#include <algorithm>
#include <cmath>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Compile-time value of a float input with one element.
Expected<double> known_number(const Signature& in, std::size_t index, std::string_view name) {
  if (!in[index].content) return needs_value(name);
  if (in[index].content->count() != 1)
    return bad_operands(fmt::format("{} has {} elements", name, in[index].content->count()),
                        "it has to have one");
  return number_at(*in[index].content, 0);
}

/// Compile-time size from an input with one element of any type.
Expected<Dim> known_size(const Signature& in, std::size_t index, std::string_view name) {
  if (in[index].value && in[index].value->size() == 1) return in[index].value->front();
  TESSERA_TRY(const double number, known_number(in, index, name));
  constexpr double kMost = 1e15;
  if (!(std::abs(number) <= kMost))
    return bad_operands(fmt::format("{} is {}", name, number), "it has to be a size");
  return Dim(static_cast<std::int64_t>(std::ceil(number)));
}

/// Number of elements of a range from start, by delta, to below (or, descending, above) limit.
Expected<Dim> range_count(const Signature& in) {
  if (is_integer(in[0].dtype())) {
    TESSERA_TRY(const Dim start, known_size(in, 0, "start"));
    TESSERA_TRY(const Dim limit, known_size(in, 1, "limit"));
    TESSERA_TRY(const Dim delta, known_size(in, 2, "delta"));
    if (delta.is(0)) return bad_operands("delta is 0");
    const Dim count = ceil_div(limit - start, delta);
    // Counting up from 0, the limit is a size and not negative.
    return start.is(0) && delta.is(1) && !limit.constant() ? count : tessera::max(count, 0);
  }
  TESSERA_TRY(const double start, known_number(in, 0, "start"));
  TESSERA_TRY(const double limit, known_number(in, 1, "limit"));
  TESSERA_TRY(const double delta, known_number(in, 2, "delta"));
  const double count = std::ceil((limit - start) / delta);
  constexpr double kMost = 1e15;
  if (!(std::abs(count) <= kMost))
    return bad_operands(fmt::format("from {} to {} by {} there is no end", start, limit, delta));
  return Dim(static_cast<std::int64_t>(std::fmax(count, 0.0)));
}

/// Element of a list of sizes by position.
Scalar listed(const Scalar& position, const std::vector<Axis>& run) {
  Scalar value = run.empty() ? Scalar(0) : Scalar(run.back().size());
  for (std::size_t i = run.size(); i-- > 1;)
    value =
        select(position < Scalar(static_cast<std::int64_t>(i)), Scalar(run[i - 1].size()), value);
  return value;
}

}  // namespace

OpDef range() {
  return {.name = "range",
          .summary = "start, start + delta, … up to limit, which is not reached",
          .inputs = {"start", "limit", "delta"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype(in));
            TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
            const std::vector<Operand> operands = {
                as_given("start", in[0]), as_given("limit", in[1]), as_given("delta", in[2])};
            TESSERA_TRY(const Scalar start, only_element(operands[0]));
            TESSERA_TRY(const Scalar delta, only_element(operands[2]));
            TESSERA_TRY(const Dim count, range_count(in));
            const Axis i{"i", count};
            return Definition{
                .inputs = operands,
                .outputs = {output(in[0].dtype(), each({i}), start + Scalar(i) * delta)}};
          }};
}

OpDef constant_of_shape() {
  return {.name = "constant_of_shape",
          .summary = "a tensor of the given shape, filled with one value, by default 0 in f32",
          .inputs = {"shape"},
          .attrs = {optional_attr("value", Tensor{})},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const Shape shape, known_sizes(in, 0, "shape"));
            DType dtype = DType::F32;
            Scalar value = 0.0;
            if (attrs.has("value")) {
              const Tensor& filling = attrs.tensor("value");
              TESSERA_TRY_DONE(check_domain(Domain::Any, filling.dtype));
              if (filling.count() != 1)
                return bad_operands(fmt::format("value has {} elements", filling.count()),
                                    "it has to have one");
              dtype = filling.dtype;
              value = constant_of(filling, 0);
            }
            const std::vector<Axis> run = axes("i", static_cast<int>(shape.size()));
            std::vector<MergedAxis> result;
            for (std::size_t i = 0; i < shape.size(); ++i)
              result.push_back({{{run[i].name, shape[i]}}});
            return Definition{.inputs = {as_given("shape", in[0])},
                              .outputs = {output(dtype, result, value)}};
          }};
}

OpDef eye_like() {
  return {.name = "eye_like",
          .summary = "ones on the k-th diagonal of a matrix of the shape of x",
          .inputs = {"x"},
          .attrs = {optional_attr("dtype", std::string()), {"k", 0}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            if (in[0].rank() != 2)
              return bad_operands(fmt::format("x has {} axes", in[0].rank()), "it has to have 2");
            TESSERA_TRY(const DType dtype, dtype_attr(attrs, "dtype", in[0].dtype()));
            const Axis i{"i"}, j{"j"};
            // Subtracts j - i rather than adding to i: k may be any number.
            const Scalar diagonal = tessera::equal(Scalar(j) - Scalar(i), Scalar(attrs.i("k")));
            return Definition{.inputs = {{"x", in[0].dtype(), {i, j}}},
                              .outputs = {output(dtype, each({i, j}), diagonal)}};
          }};
}

OpDef one_hot() {
  return {
      .name = "one_hot",
      .summary = "values[1] at the positions that the indices say along a new axis, else values[0]",
      .inputs = {"indices", "depth", "values"},
      .attrs = {{"axis", -1}},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
        TESSERA_TRY(const int axis, normal_axis(attrs.i("axis"), in[0].rank() + 1));
        if (in[2].rank() != 1)
          return bad_operands(fmt::format("values has {} axes", in[2].rank()), "it has to have 1");
        TESSERA_TRY(const Dim depth, known_size(in, 1, "depth"));
        const std::vector<Axis> run = axes("i", in[0].rank());
        const Axis place{"d", depth};
        const Operand indices{"indices", in[0].dtype(), sizes(run)};
        const Operand values{"values", in[2].dtype(), {2}};
        const Scalar index = tessera::cast(DType::I64, indices(tessera::indices(run)));
        const Scalar hot = tessera::equal(wrapped(index, depth), Scalar(place));
        std::vector<Axis> result = run;
        result.insert(result.begin() + axis, place);
        return Definition{
            .inputs = {indices, as_given("depth", in[1]), values},
            .outputs = {output(values.dtype, each(result), select(hot, values({1}), values({0})))}};
      }};
}

OpDef shape() {
  return {.name = "shape",
          .summary = "the sizes of x from one axis to another",
          .inputs = {"x"},
          .attrs = {{"start", 0}, optional_attr("end", 0)},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            const std::int64_t rank = in[0].rank();
            const auto place = [&](std::int64_t axis) {
              return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
            };
            const std::int64_t start = place(attrs.i("start"));
            const std::int64_t end =
                std::max(start, attrs.has("end") ? place(attrs.i("end")) : rank);
            const std::vector<Axis> run = axes("i", in[0].rank());
            const std::vector<Axis> told{run.begin() + start, run.begin() + end};
            const Axis at{"at", end - start};
            return Definition{.inputs = {{"x", in[0].dtype(), sizes(run)}},
                              .outputs = {output(DType::I64, each({at}), listed(at, told))}};
          }};
}

OpDef size() {
  return {.name = "size",
          .summary = "the number of elements of x",
          .inputs = {"x"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            const std::vector<Axis> run = axes("i", in[0].rank());
            return Definition{.inputs = {{"x", in[0].dtype(), sizes(run)}},
                              .outputs = {output(DType::I64, {}, Scalar(product(sizes(run))))}};
          }};
}

OpDef trilu() {
  return {.name = "trilu",
          .summary = "the upper or lower triangle of matrices, from the k-th diagonal; else 0",
          .inputs = {"x", "k?"},
          .attrs = {flag_attr("upper", 1)},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            if (in[0].rank() < 2)
              return bad_operands(fmt::format("x has {} axes", in[0].rank()),
                                  "it has to have at least 2");
            const std::vector<Operand> rest = rest_as_given({"k"}, in);
            Scalar k = 0;
            if (!rest.empty()) {
              TESSERA_TRY_DONE(check_domain(Domain::Integers, in[1].dtype()));
              TESSERA_TRY(k, only_element(rest[0]));
              if (in[1].value && in[1].value->size() == 1) k = in[1].value->front();
            }
            const std::vector<Axis> run = axes("i", in[0].rank());
            const Operand x{"x", in[0].dtype(), sizes(run)};
            const Scalar diagonal = Scalar(run.back()) - Scalar(run[run.size() - 2]);
            const Scalar kept = attrs.i("upper") != 0 ? diagonal >= k : diagonal <= k;
            const Scalar value = x(indices(run));
            return Definition{
                .inputs = tessera::concat({x}, rest),
                .outputs = {output(x.dtype, each(run), select(kept, value, like(value, 0)))}};
          }};
}

}  // namespace tessera::define
