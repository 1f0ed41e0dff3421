#include "tessera/ops/composite.h"

// Operators that ONNX Runtime's optimizer puts into models (domain com.microsoft).

namespace tessera::op {
namespace {

/// x plus the bias, where there is one.
Val biased(const Vals& in, std::size_t i) {
  return given(in, i) ? in[0] + in[i] : in[0];
}

/// The sum of x, skip and the last input (a bias that may be left out), normalized.
OpDef skip_norm(std::string name, std::string summary, std::vector<std::string> inputs,
                std::function<Vals(Body&, const Attrs&, const Val& sum, const Vals& in)> norm) {
  const std::size_t bias = inputs.size() - 1;
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = std::move(inputs),
          .outputs = {"out", "mean", "inv_std_var", "sum"},
          .attrs = {{"epsilon", 1e-5}},
          .expand = [norm = std::move(norm), bias](Body& b, const Attrs& attrs,
                                                   const Vals& in) -> Expected<Vals> {
            const Val sum = biased(in, bias) + in[1];
            Vals results = norm(b, attrs, sum, in);
            results.push_back(sum);
            return results;
          }};
}

}  // namespace

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
                    {"transA", 0},
                    {"transB", 0},
                    {"transBatchA", 0},
                    {"transBatchB", 0}},
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

}  // namespace tessera::op
