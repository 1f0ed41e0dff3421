#include <span>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Limit on the number of inputs and outputs.
constexpr std::int64_t kMostParts = 1 << 16;

/// Select by segment: `parts[i]` where the position lies below `ends[i]` and not below the end
/// before. Nested by halves, which keeps the expression shallow.
Scalar by_segment(const Scalar& position, std::span<const Scalar> parts,
                  std::span<const Dim> ends) {
  if (parts.size() == 1) return parts[0];
  const std::size_t half = parts.size() / 2;
  return select(position < Scalar(ends[half - 1]),
                by_segment(position, parts.first(half), ends.first(half)),
                by_segment(position, parts.subspan(half), ends.subspan(half)));
}

/// Sizes of the parts of a split.
Expected<Shape> split_sizes(const Attrs& attrs, const Signature& in, const Dim& whole) {
  if (given(in, 1)) {
    TESSERA_TRY(const Shape sizes, known_sizes(in, 1, "split"));
    Dim total = 0;
    for (const Dim& size : sizes) {
      if (size.constant().value_or(0) < 0)
        return bad_operands(fmt::format("a part would have size {}", size.to_string()));
      total = total + size;
    }
    if (total.is_undefined() || (total - whole).constant().value_or(0) != 0)
      return bad_operands(fmt::format("the parts have size {} together", total.to_string()),
                          fmt::format("the axis has size {}", whole.to_string()));
    if (attrs.has("num_outputs") &&
        attrs.i("num_outputs") != static_cast<std::int64_t>(sizes.size()))
      return bad_operands(fmt::format("{} parts are asked for", attrs.i("num_outputs")),
                          fmt::format("split has {} sizes", sizes.size()));
    return sizes;
  }
  if (!attrs.has("num_outputs"))
    return bad_operands("neither split nor num_outputs is given", "one of them is needed");
  const std::int64_t count = attrs.i("num_outputs");
  if (count < 1 || count > kMostParts)
    return bad_operands(fmt::format("num_outputs is {}", count),
                        fmt::format("it has to be in 1 .. {}", kMostParts));
  // The last part is smaller if the size is not divisible.
  const Dim part = ceil_div(whole, count);
  Shape sizes(static_cast<std::size_t>(count), part);
  sizes.back() = whole - part * (count - 1);
  return sizes;
}

}  // namespace

OpDef concat() {
  return {.name = "concat",
          .summary = "the inputs one after the other along an axis",
          .inputs = {"x+"},
          .attrs = {required_attr("axis", 0)},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype(in));
            const int rank = in[0].rank();
            for (const Argument& argument : in)
              if (argument.rank() != rank)
                return bad_operands(
                    fmt::format("the inputs have {} and {} axes", rank, argument.rank()),
                    "they have to have equally many");
            TESSERA_TRY(const int joined, normal_axis(attrs.i("axis"), rank));
            const auto axis = static_cast<std::size_t>(joined);
            std::vector<Axis> run = axes("i", rank);
            const Scalar position = run[axis];

            std::vector<Operand> operands;
            std::vector<Scalar> parts;
            Shape ends;
            Dim begin = 0;
            for (std::size_t i = 0; i < in.size(); ++i) {
              const Axis segment{fmt::format("s{}", i)};
              Operand operand{fmt::format("x{}", i), in[i].dtype(), sizes(run)};
              operand.shape[axis] = segment;
              std::vector<Scalar> at = indices(run);
              at[axis] = position - Scalar(begin);
              parts.push_back(in.size() == 1 ? operand(at) : operand.or_zero(at));
              begin = begin + segment.size();
              ends.push_back(begin);
              operands.push_back(std::move(operand));
            }
            run[axis].extent = begin;
            return Definition{
                .inputs = operands,
                .outputs = {output(in[0].dtype(), each(run), by_segment(position, parts, ends))}};
          }};
}

OpDef split() {
  return {.name = "split",
          .summary = "parts of x along an axis, of the sizes given or of equal ones",
          .inputs = {"x", "split?"},
          .outputs = {"out+"},
          .attrs = {{"axis", 0}, optional_attr("num_outputs", 1)},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY(const int cut, normal_axis(attrs.i("axis"), in[0].rank()));
            const auto axis = static_cast<std::size_t>(cut);
            TESSERA_TRY(const Shape parts, split_sizes(attrs, in, in[0].dim(cut)));
            std::vector<Axis> run = axes("i", in[0].rank());
            Operand x{"x", in[0].dtype(), sizes(run)};
            x.shape[axis] = in[0].dim(cut);

            Definition definition{.inputs = tessera::concat({x}, rest_as_given({"split"}, in)),
                                  .outputs = {}};
            Dim begin = 0;
            for (const Dim& part : parts) {
              std::vector<Scalar> at = indices(run);
              at[axis] = Scalar(run[axis]) + Scalar(begin);
              run[axis].extent = part;
              definition.outputs.push_back(output(x.dtype, each(run), x(at)));
              definition.outputs.back().name = fmt::format("out{}", definition.outputs.size() - 1);
              begin = begin + part;
            }
            return definition;
          }};
}

}  // namespace tessera::define
