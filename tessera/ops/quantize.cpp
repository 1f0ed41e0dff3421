#include "tessera/ops/composite.h"
#include "tessera/ops/families.h"
#include "tessera/ops/window.h"

namespace tessera::define {
namespace {

/// Scale or zero point, as an element per element of the quantized tensor.
struct QuantizationParameter {
  Operand operand;
  Scalar element;
};

/// Quantization granularity: per tensor, per axis, or per block along an axis.
struct Granularity {
  std::vector<Axis> at;  // the axes of the tensor
  std::int64_t axis = 0, block = 0;

  Expected<QuantizationParameter> of(std::string name, const Argument& given) const {
    const int rank = static_cast<int>(at.size());
    Operand operand{std::move(name), given.dtype()};
    std::vector<Scalar> where;
    if (given.rank() == 0 || (given.rank() == 1 && given.dim(0).is(1) && block == 0)) {
      if (given.rank() == 1) operand.shape = {1}, where = {0};
    } else if (given.rank() == 1 && block == 0) {
      TESSERA_TRY(const int along, normal_axis(axis, rank));
      operand.shape = {at[static_cast<std::size_t>(along)]};
      where = {at[static_cast<std::size_t>(along)]};
    } else if (block > 0 && given.rank() == rank) {
      TESSERA_TRY(const int along, normal_axis(axis, rank));
      const auto blocked = static_cast<std::size_t>(along);
      operand.shape = sizes(at);
      operand.shape[blocked] = ceil_div(operand.shape[blocked], block);
      where = indices(at);
      where[blocked] = floor_div(where[blocked], block);
    } else {
      return bad_operands(fmt::format("{} has {} axes", operand.name, given.rank()),
                          "it is one number, one for each index of axis, or one for each block");
    }
    const Scalar element = widened(given.dtype(), operand(std::move(where)));
    return QuantizationParameter{std::move(operand), element};
  }
};

Expected<Granularity> granularity(const Attrs& attrs, const Argument& x) {
  if (attrs.i("block_size") < 0)
    return bad_operands(fmt::format("block_size is {}", attrs.i("block_size")));
  return Granularity{axes("i", x.rank()), attrs.i("axis"), attrs.i("block_size")};
}

/// Reshapes a per-channel vector with `trailing` axes of size 1; other ranks stay.
Val per_channel(const Val& x, int trailing) {
  return x.rank() == 1 && trailing > 0 ? unsqueezed(x, counted(1, 1 + trailing)) : x;
}

/// Requantizes integer accumulators. As in common runtimes, the scales are combined into one f32
/// factor.
Val requantized(const Val& sums, const Val& factor, const Val& zero_point) {
  Body& b = sums.body();
  return b.op("quantize_linear",
              {converted(sums, DType::F32) * factor, b.number(1, DType::F32), zero_point},
              {{"axis", -2}});
}

}  // namespace

OpDef quantize_linear() {
  return {
      .name = "quantize_linear",
      .summary = "saturate(round(x / y_scale) + y_zero_point), ties to even",
      .inputs = {"x", "y_scale", "y_zero_point?"},
      .outputs = {"y"},
      .attrs = {{"axis", 1},
                {"block_size", 0},
                optional_attr("output_dtype", ""),
                optional_attr("precision", ""),
                flag_attr("saturate", 1)},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        const bool shifted = given(in, 2);
        TESSERA_TRY(const DType to,
                    dtype_attr(attrs, "output_dtype", shifted ? in[2].dtype() : DType::U8));
        const bool to_float = is_float(to);
        const bool fits =
            to_float ? is_small(to) && to != DType::F8E8M0 : is_integer(to) && byte_width(to) <= 4;
        if (!fits || (shifted && in[2].dtype() != to))
          return bad_operands(fmt::format("the result is of type {}", to_string(to)),
                              "it is of the zero point's type, an integer of at most 32 bits or a "
                              "float of at most 8 bits other than f8e8m0");
        const DType default_precision = is_small(in[1].dtype()) ? DType::F32 : in[1].dtype();
        TESSERA_TRY(const DType precision, dtype_attr(attrs, "precision", default_precision));
        TESSERA_TRY(const Narrowing how, narrowing_attr(attrs));
        TESSERA_TRY(const Granularity lie, granularity(attrs, in[0]));
        TESSERA_TRY(const QuantizationParameter scale, lie.of("y_scale", in[1]));

        const Operand x{"x", in[0].dtype(), sizes(lie.at)};
        std::vector<Operand> inputs = {x, scale.operand};
        Scalar level = cast(precision, x(indices(lie.at)) / scale.element);
        if (!to_float) level = round(level);
        if (shifted) {
          TESSERA_TRY(const QuantizationParameter zero, lie.of("y_zero_point", in[2]));
          inputs.push_back(zero.operand);
          level = level + zero.element;
        }
        return Definition{
            .inputs = std::move(inputs),
            .outputs = {{.name = "y",
                         .dtype = to,
                         .axes = each(lie.at),
                         .value = to_float ? narrowed(to, level, how)
                                           : cast(to, min(max(level, lowest(to)), highest(to)))}}};
      },
  };
}

OpDef dequantize_linear() {
  return {
      .name = "dequantize_linear",
      .summary = "(x - x_zero_point) * x_scale",
      .inputs = {"x", "x_scale", "x_zero_point?"},
      .outputs = {"y"},
      .attrs = {{"axis", 1}, {"block_size", 0}, optional_attr("output_dtype", "")},
      .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
        TESSERA_TRY(const DType to, dtype_attr(attrs, "output_dtype", in[1].dtype()));
        if (!is_float(to) || is_small(to))
          return bad_operands(fmt::format("the result is of type {}", to_string(to)),
                              "it has to be of a float type of at least 16 bits");
        TESSERA_TRY(const Granularity lie, granularity(attrs, in[0]));
        TESSERA_TRY(const QuantizationParameter scale, lie.of("x_scale", in[1]));

        const Operand x{"x", in[0].dtype(), sizes(lie.at)};
        std::vector<Operand> inputs = {x, scale.operand};
        Scalar level = widened(in[0].dtype(), x(indices(lie.at)));
        if (given(in, 2)) {
          TESSERA_TRY(const QuantizationParameter zero, lie.of("x_zero_point", in[2]));
          inputs.push_back(zero.operand);
          level = level - zero.element;
        }
        return Definition{
            .inputs = std::move(inputs),
            .outputs = {
                {.name = "y", .dtype = to, .axes = each(lie.at), .value = level * scale.element}}};
      },
  };
}

OpDef qlinear_matmul() {
  return {
      .name = "qlinear_matmul",
      .summary = "the matrix product of quantized tensors, quantized",
      .inputs = {"a", "a_scale", "a_zero_point", "b", "b_scale", "b_zero_point", "y_scale",
                 "y_zero_point"},
      .outputs = {"y"},
      .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
        const int rows = in[0].rank() > 1 ? 1 : 0;
        const Val sums = b.op("matmul_integer", {in[0], in[3], in[2], in[5]});
        const Val factor = per_channel(converted(in[1], DType::F32), rows) *
                           converted(in[4], DType::F32) /
                           per_channel(converted(in[6], DType::F32), rows);
        return Vals{requantized(sums, factor, in[7])};
      },
  };
}

OpDef qlinear_conv() {
  return {
      .name = "qlinear_conv",
      .summary = "conv of quantized tensors, quantized",
      .inputs = {"x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale",
                 "y_zero_point", "b?"},
      .outputs = {"y"},
      .attrs = window_attrs({{"group", 1}}),
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        const int rank = in[0].rank();
        Val sums = b.op("conv_integer", {in[0], in[3], in[2], in[5]}, attrs);
        if (given(in, 8)) sums = sums + per_channel(in[8], rank - 2);
        const Val factor = converted(in[1], DType::F32) *
                           per_channel(converted(in[4], DType::F32), rank - 2) /
                           converted(in[6], DType::F32);
        return Vals{requantized(sums, factor, in[7])};
      },
  };
}

}  // namespace tessera::define
