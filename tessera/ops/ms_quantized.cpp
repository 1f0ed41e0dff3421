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

/// A function of one tensor, applied to what its integers stand for.
OpDef of_one(std::string name, std::string_view op, std::vector<AttrSpec> attrs) {
  return {.name = std::move(name),
          .summary = fmt::format("{} of a quantized tensor, quantized", op),
          .inputs = {"x", "x_scale", "x_zero_point?", "y_scale", "y_zero_point?"},
          .outputs = {"y"},
          .attrs = std::move(attrs),
          .expand = [op](Body& b, const Attrs& given, const Vals& in) -> Expected<Vals> {
            if (given.has("channels_last") && given.i("channels_last") != 0)
              return bad_operands("channels_last is set", "images are N C spatial…");
            Attrs own = given;
            own.erase("channels_last");
            return Vals{integers(b, b.op(op, {numbers(b, in, 0)}, own), in, 3)};
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
  return of_one("ms_qlinear_average_pool", "average_pool", std::move(attrs));
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
