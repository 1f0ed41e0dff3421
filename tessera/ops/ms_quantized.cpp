#include "tessera/ops/composite.h"
#include "tessera/ops/window.h"

// Operators on quantized tensors that ONNX Runtime's quantizer puts into models (domain
// com.microsoft): each computes with the numbers that the integers stand for.

namespace tessera::define {
namespace {

Val present(const Vals& in, std::size_t i) {
  return given(in, i) ? in[i] : Val();
}

/// The numbers of three inputs: integers, their scale and their zero point.
Val numbers(Body& b, const Vals& in, std::size_t first) {
  return b.op("dequantize_linear", {in[first], in[first + 1], present(in, first + 2)});
}

/// The same as integers again, by the inputs that say how.
Val integers(Body& b, const Val& y, const Vals& in, std::size_t scale) {
  return b.op("quantize_linear", {y, in[scale], present(in, scale + 1)});
}

/// `image`, whose channels are its second or its last axis, with the other of both orders.
Val channels_second(const Val& image) {
  Ints order = counted(0, image.rank() - 1);
  order.insert(order.begin() + 1, image.rank() - 1);
  return transposed(image, order);
}
Val channels_last(const Val& image) {
  Ints order = counted(0, image.rank());
  order.erase(order.begin() + 1);
  order.push_back(1);
  return transposed(image, order);
}

/// Applies an operator of images with channels first to `x`, whose channels come last if the
/// attribute channels_last is set.
Expected<Val> of_image(const Attrs& attrs, const Val& x,
                       const std::function<Val(const Val& image, const Attrs& own)>& apply) {
  Attrs own = attrs;
  own.erase("channels_last");
  if (!attrs.has("channels_last") || attrs.i("channels_last") == 0) return apply(x, own);
  if (x.rank() < 3)
    return bad_operands(fmt::format("the image has {} axes", x.rank()),
                        "it has N, spatial axes and C");
  const Val y = apply(channels_second(x), own);
  return y.rank() < 3 ? y : channels_last(y);  // the operator may have refused its input
}

/// Sums of products of integers as the numbers that they stand for, with an optional bias.
Val numbers_of_sums(const Val& sums, const Val& a_scale, const Val& b_scale, const Val& bias) {
  const Val y = converted(sums, a_scale.dtype()) * (a_scale * b_scale);
  return bias.present() ? y + bias : y;
}

/// A function of one tensor, applied to what its integers stand for.
OpDef of_one(std::string name, std::string_view op, std::vector<AttrSpec> attrs) {
  return {.name = std::move(name),
          .summary = fmt::format("{} of a quantized tensor, quantized", op),
          .inputs = {"x", "x_scale", "x_zero_point?", "y_scale", "y_zero_point?"},
          .outputs = {"y"},
          .attrs = std::move(attrs),
          .expand = [op](Body& b, const Attrs& given, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY(const Val y,
                        of_image(given, numbers(b, in, 0), [&](const Val& x, const Attrs& own) {
                          return b.op(op, {x}, own);
                        }));
            return Vals{integers(b, y, in, 3)};
          }};
}

/// The same of two.
OpDef of_two(std::string name, std::string_view op) {
  return {.name = std::move(name),
          .summary = fmt::format("{} of two quantized tensors, quantized", op),
          .inputs = {"a", "a_scale", "a_zero_point?", "b", "b_scale", "b_zero_point?", "c_scale",
                     "c_zero_point?"},
          .outputs = {"c"},
          .expand = [op](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            return Vals{integers(b, b.op(op, {numbers(b, in, 0), numbers(b, in, 3)}), in, 6)};
          }};
}

}  // namespace

OpDef ms_qlinear_add() {
  return of_two("ms_qlinear_add", "add");
}

OpDef ms_qlinear_mul() {
  return of_two("ms_qlinear_mul", "mul");
}

OpDef ms_qlinear_conv() {
  return {.name = "ms_qlinear_conv",
          .summary = "qlinear_conv of an image whose channels may come last",
          .inputs = {"x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale",
                     "y_zero_point", "b?"},
          .outputs = {"y"},
          .attrs = window_attrs({{"group", 1}, flag_attr("channels_last", 0)}),
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY(const Val y, of_image(attrs, in[0], [&](const Val& x, const Attrs& own) {
                          Vals operands = in;
                          operands[0] = x;
                          return b.op("qlinear_conv", operands, own);
                        }));
            return Vals{y};
          }};
}

OpDef ms_nhwc_max_pool() {
  return {.name = "ms_nhwc_max_pool",
          .summary = "max_pool of an image whose channels come last",
          .inputs = {"x"},
          .outputs = {"y"},
          .attrs = window_attrs({flag_attr("ceil_mode", 0)}),
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            Attrs own = attrs;
            own.set("channels_last", 1);
            TESSERA_TRY(const Val y, of_image(own, in[0], [&](const Val& x, const Attrs& pool) {
                          return b.op("max_pool", {x}, pool);
                        }));
            return Vals{y};
          }};
}

OpDef ms_matmul_integer_to_float() {
  return {.name = "ms_matmul_integer_to_float",
          .summary = "the matrix product of quantized tensors, as numbers, plus a bias",
          .inputs = {"a", "b", "a_scale", "b_scale", "a_zero_point?", "b_zero_point?", "bias?"},
          .outputs = {"y"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            const Val sums = b.op("matmul_integer", {in[0], in[1], present(in, 4), present(in, 5)});
            return Vals{numbers_of_sums(sums, in[2], in[3], present(in, 6))};
          }};
}

OpDef ms_dynamic_quantize_matmul() {
  return {.name = "ms_dynamic_quantize_matmul",
          .summary = "the matrix product of a, quantized by its range, and quantized b, as numbers",
          .inputs = {"a", "b", "b_scale", "b_zero_point?", "bias?"},
          .outputs = {"y"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            const Vals a = b.call("dynamic_quantize_linear", {in[0]}, {}, 3);
            const Val sums = b.op("matmul_integer", {a.at(0), in[1], a.at(2), present(in, 3)});
            return Vals{numbers_of_sums(sums, a.at(1), in[2], present(in, 4))};
          }};
}

OpDef ms_qlinear_leaky_relu() {
  return of_one("ms_qlinear_leaky_relu", "leaky_relu", {{"alpha", 0.01}});
}

OpDef ms_qlinear_sigmoid() {
  return of_one("ms_qlinear_sigmoid", "sigmoid", {});
}

OpDef ms_qlinear_average_pool() {
  std::vector<AttrSpec> attrs =
      window_attrs({flag_attr("ceil_mode", 0), flag_attr("count_include_pad", 0),
                    flag_attr("channels_last", 0)});
  std::erase_if(attrs, [](const AttrSpec& attr) { return attr.name == "dilations"; });
  OpDef pool = of_one("ms_qlinear_average_pool", "average_pool", std::move(attrs));
  pool.expand = [expand = pool.expand](Body& b, const Attrs& given,
                                       const Vals& in) -> Expected<Vals> {
    // ONNX Runtime divides by the part of a window that hangs over the padding too, unlike in
    // AveragePool; that is nowhere said.
    if (given.i("ceil_mode") != 0 && given.i("count_include_pad") != 0)
      return bad_operands("ceil_mode and count_include_pad are set",
                          "what the mean of a window at the end is taken over is not defined");
    return expand(b, given, in);
  };
  return pool;
}

OpDef ms_qlinear_global_average_pool() {
  return of_one("ms_qlinear_global_average_pool", "global_average_pool",
                {flag_attr("channels_last", 0)});
}

OpDef ms_qlinear_softmax() {
  return {.name = "ms_qlinear_softmax",
          .summary = "softmax of a quantized tensor, quantized",
          .inputs = {"x", "x_scale", "x_zero_point?", "y_scale", "y_zero_point"},
          .outputs = {"y"},
          .attrs = {{"axis", -1}, required_attr("opset", 13)},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const std::int64_t axis = attrs.i("axis");
            if (attrs.i("opset") < 13 && axis != -1 && axis != in[0].rank() - 1)
              return bad_operands(fmt::format("axis is {}", axis),
                                  "before opset 13 it has to be the last one");
            return Vals{integers(b, b.op("softmax", {numbers(b, in, 0)}, {{"axis", axis}}), in, 3)};
          }};
}

OpDef ms_qlinear_concat() {
  return {.name = "ms_qlinear_concat",
          .summary =
              "concat of quantized tensors, each followed by its scale and zero point, "
              "quantized",
          .inputs = {"y_scale", "y_zero_point", "x+"},
          .outputs = {"y"},
          .attrs = {required_attr("axis", 0)},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            if (in.size() < 5 || in.size() % 3 != 2)
              return bad_operands(fmt::format("there are {} inputs", in.size()),
                                  "each tensor comes with a scale and a zero point");
            Vals parts;
            for (std::size_t i = 2; i < in.size(); i += 3) parts.push_back(numbers(b, in, i));
            return Vals{integers(b, b.op("concat", parts, {{"axis", attrs.i("axis")}}), in, 0)};
          }};
}

OpDef ms_qgemm() {
  return {
      .name = "ms_qgemm",
      .summary =
          "alpha * a * b + c of quantized matrices and integers c, quantized if a scale says "
          "how",
      .inputs = {"a", "a_scale", "a_zero_point", "b", "b_scale", "b_zero_point", "c?", "y_scale?",
                 "y_zero_point?"},
      .outputs = {"y"},
      .attrs = {{"alpha", 1.0}, flag_attr("transA", 0), flag_attr("transB", 0)},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        const auto matrix = [&](std::size_t i, const char* turned) {
          return attrs.i(turned) != 0 ? transposed(in[i], {1, 0}) : in[i];
        };
        Val sums = b.op("matmul_integer", {matrix(0, "transA"), matrix(3, "transB"), in[2], in[5]});
        if (given(in, 6)) sums = sums + in[6];
        const Val factor = in[1] * in[4];
        Val y = converted(sums, DType::F32) * factor;
        if (attrs.f("alpha") != 1) y = y * attrs.f("alpha");
        return Vals{given(in, 7) ? integers(b, y, in, 7) : y};
      }};
}

}  // namespace tessera::define
