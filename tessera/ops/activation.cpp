#include <numbers>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// An elementwise function of floating-point numbers.
OpDef activation(std::string name, std::string summary, Unary f) {
  return elementwise(std::move(name), std::move(summary), std::move(f), Domain::Floats);
}

OpDef activation(std::string name, std::string summary, std::vector<AttrSpec> attrs, UnaryWith f) {
  return elementwise(std::move(name), std::move(summary), std::move(attrs), std::move(f),
                     Domain::Floats);
}

// No argument of these overflows into a NaN: exp reaches infinity only under a division or a
// choice.
Scalar logistic(const Scalar& x) {
  return 1.0 / (1.0 + exp(-x));
}
Scalar log_one_plus_exp(const Scalar& x) {
  return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

}  // namespace

OpDef sigmoid() {
  return activation("sigmoid", "1 / (1 + exp(-x))", logistic);
}

OpDef softplus() {
  return activation("softplus", "log(1 + exp(x))", log_one_plus_exp);
}

OpDef softsign() {
  return activation("softsign", "x / (1 + |x|)",
                    [](const Scalar& x) { return x / (1.0 + abs(x)); });
}

OpDef mish() {
  return activation("mish", "x * tanh(softplus(x))",
                    [](const Scalar& x) { return x * tanh(log_one_plus_exp(x)); });
}

OpDef swish() {
  return activation(
      "swish", "x * sigmoid(alpha * x)", {{"alpha", 1.0}},
      [](const Attrs& attrs, const Scalar& x) { return x * logistic(attrs.f("alpha") * x); });
}

OpDef swiglu() {
  return {.name = "swiglu",
          .summary = "swish(gate) * x, of equal shapes",
          .inputs = {"gate", "x"},
          .attrs = {{"alpha", 1.0}},
          .define = [](const Attrs& attrs, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_domain(Domain::Floats, in[0].dtype()));
            TESSERA_TRY_DONE(check_same_dtype(in));
            if (in[0].rank() != in[1].rank())
              return bad_operands(
                  fmt::format("gate and x have {} and {} axes", in[0].rank(), in[1].rank()),
                  "they have to have equal shapes");
            const std::vector<Axis> run = axes("i", in[0].rank());
            const Operand gate{"gate", in[0].dtype(), sizes(run)};
            const Operand x{"x", in[1].dtype(), sizes(run)};
            const Scalar a = gate(indices(run));
            return Definition{
                .inputs = {gate, x},
                .outputs = {output(in[0].dtype(), each(run),
                                   a * logistic(attrs.f("alpha") * a) * x(indices(run)))}};
          }};
}

OpDef elu() {
  return activation("elu", "x, below zero alpha * (exp(x) - 1)", {{"alpha", 1.0}},
                    [](const Attrs& attrs, const Scalar& x) {
                      return select(x < 0.0, attrs.f("alpha") * (exp(x) - 1.0), x);
                    });
}

OpDef selu() {
  return activation("selu", "gamma * x, below zero gamma * alpha * (exp(x) - 1)",
                    {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}},
                    [](const Attrs& attrs, const Scalar& x) {
                      const Scalar below = attrs.f("alpha") * (exp(x) - 1.0);
                      return attrs.f("gamma") * select(x < 0.0, below, x);
                    });
}

OpDef celu() {
  return activation("celu", "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))", {{"alpha", 1.0}},
                    [](const Attrs& attrs, const Scalar& x) {
                      const Scalar alpha = attrs.f("alpha");
                      return max(x, 0.0) + min(alpha * (exp(x / alpha) - 1.0), 0.0);
                    });
}

OpDef leaky_relu() {
  return activation(
      "leaky_relu", "x, below zero alpha * x", {{"alpha", 0.01}},
      [](const Attrs& attrs, const Scalar& x) { return select(x < 0.0, attrs.f("alpha") * x, x); });
}

OpDef thresholded_relu() {
  return activation(
      "thresholded_relu", "x where it is above alpha, else 0", {{"alpha", 1.0}},
      [](const Attrs& attrs, const Scalar& x) { return select(x > attrs.f("alpha"), x, 0.0); });
}

OpDef hard_sigmoid() {
  return activation("hard_sigmoid", "alpha * x + beta, kept within 0 and 1",
                    {{"alpha", 0.2}, {"beta", 0.5}}, [](const Attrs& attrs, const Scalar& x) {
                      return max(min(attrs.f("alpha") * x + attrs.f("beta"), 1.0), 0.0);
                    });
}

OpDef hard_swish() {
  return activation("hard_swish", "x * hard_sigmoid(x) with alpha 1/6 and beta 1/2",
                    [](const Scalar& x) { return x * max(min(x / 6.0 + 0.5, 1.0), 0.0); });
}

OpDef gelu() {
  OpDef op =
      activation("gelu", "x times the normal distribution function, or its tanh approximation",
                 {{"approximate", "none"}}, [](const Attrs& attrs, const Scalar& x) {
                   if (attrs.s("approximate") == "none")
                     return 0.5 * x * (1.0 + erf(x * (1.0 / std::numbers::sqrt2)));
                   const double slope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
                   return 0.5 * x * (1.0 + tanh(slope * (x + 0.044715 * (x * x * x))));
                 });
  op.define = [define = std::move(op.define)](const Attrs& attrs,
                                              const Signature& in) -> Expected<Definition> {
    if (const std::string& form = attrs.s("approximate"); form != "none" && form != "tanh")
      return bad_operands(fmt::format("approximate is {}", form), "it has to be none or tanh");
    return define(attrs, in);
  };
  return op;
}

OpDef shrink() {
  return elementwise("shrink", "x moved by bias towards zero, 0 where |x| is at most lambd",
                     {{"bias", 0.0}, {"lambd", 0.5}}, [](const Attrs& attrs, const Scalar& x) {
                       const auto number = [&](const char* name) {
                         const Scalar value = attrs.f(name);
                         return x.sort() == Sort::Value ? value : cast(DType::I64, value);
                       };
                       const Scalar bias = number("bias"), lambd = number("lambd");
                       return select(x < -lambd, x + bias, select(x > lambd, x - bias, like(x, 0)));
                     });
}

OpDef prelu() {
  OpDef op = elementwise(
      "prelu", "x, below zero slope * x; slope is broadcast to x",
      [](const Scalar& x, const Scalar& slope) { return select(x < like(x, 0), slope * x, x); });
  op.inputs = {"x", "slope"};
  op.define = [define = std::move(op.define)](const Attrs& attrs,
                                              const Signature& in) -> Expected<Definition> {
    if (in[1].rank() > in[0].rank())
      return bad_operands(fmt::format("slope has {} axes", in[1].rank()),
                          fmt::format("x has {} axes", in[0].rank()));
    return define(attrs, in);
  };
  return op;
}

}  // namespace tessera::define
