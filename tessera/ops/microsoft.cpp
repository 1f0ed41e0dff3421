#include <algorithm>

#include "tessera/ops/composite.h"
#include "tessera/ops/window.h"

// Operators that ONNX Runtime's optimizer puts into models (domain com.microsoft).

namespace tessera::define {
namespace {

/// Adds the bias if it is present.
Val biased(const Vals& in, std::size_t i) {
  return given(in, i) ? in[0] + in[i] : in[0];
}

/// Normalization of the sum of x, skip and an optional bias.
OpDef skip_norm(std::string name, std::string summary, std::vector<std::string> inputs,
                std::function<Vals(Body&, const Attrs&, const Val& sum, const Vals& in)> norm) {
  const std::size_t bias = inputs.size() - 1;
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = std::move(inputs),
          .outputs = {"out", "mean", "inv_std_var", "sum"},
          .attrs = {{"epsilon", 1e-12}},
          .expand = [norm = std::move(norm), bias](Body& b, const Attrs& attrs,
                                                   const Vals& in) -> Expected<Vals> {
            const Val sum = biased(in, bias) + in[1];
            Vals results = norm(b, attrs, sum, in);
            results.push_back(sum);
            return results;
          }};
}

/// Activation of a fused operator and the names of its parameters; those of clip are its limits.
struct ConvActivation {
  std::string_view name, op;
  std::vector<std::string_view> parameters = {};
};

Expected<Val> activated(Body& b, const Val& x, const std::string& name, const Floats& parameters) {
  static const ConvActivation kActivations[] = {
      {"Relu", "relu"},
      {"Sigmoid", "sigmoid"},
      {"Tanh", "tanh"},
      {"Clip", "clip", {"min", "max"}},
      {"Elu", "elu", {"alpha"}},
      {"HardSigmoid", "hard_sigmoid", {"alpha", "beta"}},
      {"LeakyRelu", "leaky_relu", {"alpha"}},
      {"Softplus", "softplus"},
  };
  if (name.empty()) return x;
  const auto* known = std::ranges::find(kActivations, name, &ConvActivation::name);
  if (known == std::end(kActivations))
    return bad_operands(fmt::format("the activation is {}", name));
  const std::size_t count = std::min(parameters.size(), known->parameters.size());
  Vals inputs{x};
  Attrs attrs;
  for (std::size_t i = 0; i < count; ++i) {
    if (known->op == "clip")
      inputs.push_back(b.number(parameters[i], x.dtype()));
    else
      attrs.set(known->parameters[i], parameters[i]);
  }
  return b.op(known->op, inputs, attrs);
}

/// Attributes of one operator among those of a fused one.
Attrs own_attrs(const Attrs& attrs, std::initializer_list<std::string_view> others) {
  Attrs own = attrs;
  for (const std::string_view name : others) own.erase(name);
  return own;
}

}  // namespace

OpDef ms_fused_conv() {
  return {
      .name = "ms_fused_conv",
      .summary = "activation(conv(x, w, b) + z)",
      .inputs = {"x", "w", "b?", "z?"},
      .attrs = window_attrs({{"group", 1}, {"activation", ""}, {"activation_params", Floats{}}}),
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        Val y = b.op("conv", {in[0], in[1], given(in, 2) ? in[2] : Val{}},
                     own_attrs(attrs, {"activation", "activation_params"}));
        if (given(in, 3)) y = y + in[3];
        TESSERA_TRY(const Val result,
                    activated(b, y, attrs.s("activation"), attrs.floats("activation_params")));
        return Vals{result};
      }};
}

OpDef ms_fused_gemm() {
  return {.name = "ms_fused_gemm",
          .summary = "activation(gemm(a, b, c))",
          .inputs = {"a", "b", "c?"},
          .attrs = {{"alpha", 1.0},
                    {"beta", 1.0},
                    flag_attr("transA", 0),
                    flag_attr("transB", 0),
                    {"activation", ""},
                    optional_attr("activation_alpha", 0.0),
                    optional_attr("activation_beta", 0.0),
                    optional_attr("activation_gamma", 0.0)},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            constexpr std::string_view kParameters[] = {"activation_alpha", "activation_beta",
                                                        "activation_gamma"};
            Attrs own = own_attrs(attrs, {"activation"});
            Floats parameters;
            for (const std::string_view name : kParameters) {
              if (attrs.has(name)) parameters.push_back(attrs.f(name));
              own.erase(name);
            }
            TESSERA_TRY(const Val result,
                        activated(b, b.op("gemm", in, own), attrs.s("activation"), parameters));
            return Vals{result};
          }};
}

OpDef ms_gelu() {
  return {.name = "ms_gelu",
          .summary = "gelu(x)",
          .inputs = {"x"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            return Vals{b.op("gelu", in)};
          }};
}

OpDef ms_bias_gelu() {
  return {.name = "ms_bias_gelu",
          .summary = "gelu(x + bias)",
          .inputs = {"x", "bias"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            return Vals{b.op("gelu", {biased(in, 1)})};
          }};
}

OpDef ms_fast_gelu() {
  return {.name = "ms_fast_gelu",
          .summary = "gelu(x + bias) by its tanh approximation",
          .inputs = {"x", "bias?"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            return Vals{b.op("gelu", {biased(in, 1)}, {{"approximate", "tanh"}})};
          }};
}

OpDef ms_quick_gelu() {
  return {.name = "ms_quick_gelu",
          .summary = "x * sigmoid(alpha * x)",
          .inputs = {"x"},
          .attrs = {{"alpha", 1.702}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            return Vals{b.op("swish", {in[0]}, {{"alpha", attrs.f("alpha")}})};
          }};
}

OpDef ms_fused_matmul() {
  return {.name = "ms_fused_matmul",
          .summary =
              "alpha times the matrix product of a and b, each perhaps transposed; a batch "
              "transposition moves the first axis to the place before the last",
          .inputs = {"a", "b"},
          .attrs = {{"alpha", 1.0},
                    flag_attr("transA", 0),
                    flag_attr("transB", 0),
                    flag_attr("transBatchA", 0),
                    flag_attr("transBatchB", 0)},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const auto arranged = [&](const Val& x, const char* matrix, const char* batch) {
              const int rank = x.rank();
              if (rank < 2) return x;
              Ints order = counted(0, rank);
              if (attrs.i(batch) != 0 && rank > 2) {
                order.erase(order.begin());
                order.insert(order.end() - 1, 0);
              }
              if (attrs.i(matrix) != 0) std::swap(order.end()[-1], order.end()[-2]);
              return order == counted(0, rank) ? x : transposed(x, order);
            };
            const Val product = b.op("matmul", {arranged(in[0], "transA", "transBatchA"),
                                                arranged(in[1], "transB", "transBatchB")});
            return Vals{attrs.f("alpha") == 1 ? product : product * attrs.f("alpha")};
          }};
}

OpDef ms_simplified_layer_normalization() {
  return {.name = "ms_simplified_layer_normalization",
          .summary = "x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on",
          .inputs = {"x", "scale"},
          .attrs = {{"axis", -1}, {"epsilon", 1e-5}, {"stash_type", "f32"}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            return Vals{b.op("rms_normalization", in, attrs)};
          }};
}

OpDef ms_skip_layer_normalization() {
  return skip_norm(
      "ms_skip_layer_normalization", "layer_normalization(x + skip + bias) over the last axis",
      {"x", "skip", "scale", "beta?", "bias?"},
      [](Body& b, const Attrs& attrs, const Val& sum, const Vals& in) {
        return b.call("layer_normalization", {sum, in[2], given(in, 3) ? in[3] : Val{}}, attrs, 3);
      });
}

OpDef ms_skip_simplified_layer_normalization() {
  return skip_norm("ms_skip_simplified_layer_normalization",
                   "rms_normalization(x + skip + bias) over the last axis",
                   {"x", "skip", "scale", "bias?"},
                   [](Body& b, const Attrs& attrs, const Val& sum, const Vals& in) {
                     const Val y = b.op("rms_normalization", {sum, in[2]}, attrs);
                     const Attrs last{{"keepdims", 1}};
                     const Val axes = b.ints({-1});
                     const Val mean = b.op("reduce_mean", {sum, axes}, last);
                     const Val square = b.op("reduce_mean", {sum * sum, axes}, last);
                     const Val inverse = 1.0 / b.op("sqrt", {square + attrs.f("epsilon")});
                     return Vals{y, mean, inverse};
                   });
}

}  // namespace tessera::define
