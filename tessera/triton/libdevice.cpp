#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::Builder;
using tile::ValueId;
using F = tile::Function;

/// Writer of functions that tile IR does not have, in terms of those that it has. Numbers are f64,
/// so that results of f32 are correctly rounded but for a few.
class Formula {
 public:
  Formula(Builder& builder, ValueId like) : builder_(builder), type_(builder.type(like)) {}

  ValueId constant(double value) { return builder_.constant(type_, value); }
  ValueId of(F function, ValueId x) { return builder_.map(function, {x}); }
  ValueId of(F function, ValueId x, ValueId y) { return builder_.map(function, {x, y}); }
  ValueId add(ValueId x, ValueId y) { return of(F::Add, x, y); }
  ValueId sub(ValueId x, ValueId y) { return of(F::Sub, x, y); }
  ValueId mul(ValueId x, ValueId y) { return of(F::Mul, x, y); }
  ValueId mul(ValueId x, double y) { return of(F::Mul, x, constant(y)); }
  ValueId div(ValueId x, ValueId y) { return of(F::Div, x, y); }
  ValueId less(ValueId x, double y) { return of(F::Less, x, constant(y)); }
  ValueId equal(ValueId x, double y) { return of(F::Equal, x, constant(y)); }
  ValueId choose(ValueId condition, ValueId x, ValueId y) {
    return builder_.map(F::Select, {condition, x, y});
  }
  ValueId with_sign_of(ValueId magnitude, ValueId sign) {
    return choose(of(F::Less, sign, constant(0)), of(F::Neg, magnitude), magnitude);
  }

  ValueId trunc(ValueId x) { return choose(less(x, 0), of(F::Ceil, x), of(F::Floor, x)); }

  ValueId round_half_away(ValueId x) {
    const ValueId whole = trunc(x);
    const ValueId far = of(F::GreaterEqual, of(F::Abs, sub(x, whole)), constant(0.5));
    return choose(far, add(whole, with_sign_of(constant(1), x)), whole);
  }

  ValueId log1p(ValueId x) {
    const ValueId u = add(constant(1), x);
    const ValueId exact = mul(of(F::Log, u), div(x, sub(u, constant(1))));
    const ValueId near = choose(equal(u, 1), x, exact);
    return choose(of(F::Equal, x, constant(std::numeric_limits<double>::infinity())), x, near);
  }

  ValueId expm1(ValueId x) {
    const ValueId u = of(F::Exp, x), below = sub(u, constant(1));
    ValueId y = mul(below, div(x, of(F::Log, u)));
    y = choose(equal(u, 1), x, y);
    y = choose(equal(below, -1), constant(-1), y);
    return choose(equal(u, std::numeric_limits<double>::infinity()), u, y);
  }

  ValueId sinh(ValueId x) {
    const ValueId e = expm1(of(F::Abs, x));
    const ValueId y = mul(add(e, div(e, add(e, constant(1)))), 0.5);
    const ValueId large = choose(equal(e, std::numeric_limits<double>::infinity()), e, y);
    return with_sign_of(large, x);
  }
  ValueId cosh(ValueId x) {
    const ValueId e = of(F::Exp, of(F::Abs, x));
    return mul(add(e, div(constant(1), e)), 0.5);
  }
  ValueId asinh(ValueId x) {
    const ValueId a = of(F::Abs, x), square = mul(a, a);
    const ValueId root = of(F::Sqrt, add(square, constant(1)));
    const ValueId y = log1p(add(a, div(square, add(constant(1), root))));
    const ValueId large = add(of(F::Log, a), constant(std::numbers::ln2));
    return with_sign_of(choose(of(F::Greater, a, constant(1e150)), large, y), x);
  }
  ValueId acosh(ValueId x) {
    const ValueId t = sub(x, constant(1));
    const ValueId y = log1p(add(t, of(F::Sqrt, add(mul(t, 2.0), mul(t, t)))));
    const ValueId large = add(of(F::Log, x), constant(std::numbers::ln2));
    return choose(of(F::Greater, x, constant(1e150)), large, y);
  }
  ValueId atanh(ValueId x) {
    const ValueId a = of(F::Abs, x);
    return with_sign_of(mul(log1p(div(mul(a, 2.0), sub(constant(1), a))), 0.5), x);
  }

  /// Two halvings of the angle bring the argument below 0.2, where a short series suffices.
  ValueId atan(ValueId x) {
    const ValueId a = of(F::Abs, x);
    const ValueId inverted = of(F::Greater, a, constant(1));
    ValueId t = choose(inverted, div(constant(1), a), a);
    for (int i = 0; i < 2; ++i)
      t = div(t, add(constant(1), of(F::Sqrt, add(constant(1), mul(t, t)))));
    const ValueId square = mul(t, t);
    ValueId sum = constant(0);
    for (int k = 14; k >= 0; --k)
      sum = add(mul(sum, square), constant((k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1)));
    const ValueId angle = mul(mul(sum, t), 4.0);
    return with_sign_of(choose(inverted, sub(constant(std::numbers::pi / 2), angle), angle), x);
  }
  ValueId atan2(ValueId y, ValueId x) {
    const ValueId ax = of(F::Abs, x), ay = of(F::Abs, y);
    const ValueId steep = of(F::Greater, ay, ax);
    const ValueId ratio = div(choose(steep, ax, ay), choose(steep, ay, ax));
    const ValueId same = of(F::Equal, ax, ay);  // both 0, both infinite
    const ValueId one = choose(equal(ax, 0), constant(0), constant(1));
    ValueId angle = atan(choose(same, one, ratio));
    angle = choose(steep, sub(constant(std::numbers::pi / 2), angle), angle);
    const ValueId left = is_negative(x);
    angle = choose(left, sub(constant(std::numbers::pi), angle), angle);
    return choose(is_negative(y), of(F::Neg, angle), angle);
  }
  ValueId asin(ValueId x) {
    const ValueId other = of(F::Sqrt, mul(sub(constant(1), x), add(constant(1), x)));
    return atan(div(x, other));
  }
  ValueId acos(ValueId x) {
    const ValueId t = div(of(F::Sqrt, sub(constant(1), x)), of(F::Sqrt, add(constant(1), x)));
    return mul(atan(t), 2.0);
  }

  /// Whether the sign bit is set; of -0 too.
  ValueId is_negative(ValueId x) {
    const ValueId bits = builder_.bitcast(x, DType::I64);
    return of(F::Less, bits, builder_.constant(builder_.type(bits), 0.0));
  }

  /// 1 - erf for small arguments, a continued fraction for large ones.
  ValueId erfc(ValueId x) {
    const ValueId a = of(F::Abs, x);
    ValueId fraction = a;
    for (int k = 60; k >= 1; --k) fraction = add(a, div(constant(k / 2.0), fraction));
    const ValueId tail =
        div(of(F::Exp, of(F::Neg, mul(a, a))), mul(fraction, std::sqrt(std::numbers::pi)));
    const ValueId right =
        choose(of(F::Greater, a, constant(2)), tail, sub(constant(1), of(F::Erf, a)));
    return choose(less(x, 0), sub(constant(2), right), right);
  }

 private:
  Builder& builder_;
  tile::Type type_;
};

struct Direct {
  std::string_view name;
  F function;
  int operands;
};
/// Functions that tile IR has.
constexpr std::array kDirect = {
    Direct{"exp", F::Exp, 1},         Direct{"exp2", F::Exp2, 1},
    Direct{"log", F::Log, 1},         Direct{"log2", F::Log2, 1},
    Direct{"sin", F::Sin, 1},         Direct{"cos", F::Cos, 1},
    Direct{"tanh", F::Tanh, 1},       Direct{"erf", F::Erf, 1},
    Direct{"sqrt", F::Sqrt, 1},       Direct{"rsqrt", F::Rsqrt, 1},
    Direct{"fabs", F::Abs, 1},        Direct{"abs", F::Abs, 1},
    Direct{"llabs", F::Abs, 1},       Direct{"floor", F::Floor, 1},
    Direct{"ceil", F::Ceil, 1},       Direct{"rint", F::Round, 1},
    Direct{"nearbyint", F::Round, 1}, Direct{"pow", F::Pow, 2},
    Direct{"fmod", F::Rem, 2},        Direct{"fmin", F::Min, 2},
    Direct{"fmax", F::Max, 2},        Direct{"min", F::Min, 2},
    Direct{"max", F::Max, 2},         Direct{"llmin", F::Min, 2},
    Direct{"llmax", F::Max, 2},       Direct{"fma", F::Fma, 3},
    Direct{"fma_rn", F::Fma, 3},      Direct{"fadd_rn", F::Add, 2},
    Direct{"dadd_rn", F::Add, 2},     Direct{"fmul_rn", F::Mul, 2},
    Direct{"dmul_rn", F::Mul, 2},     Direct{"fdiv_rn", F::Div, 2},
    Direct{"ddiv_rn", F::Div, 2},     Direct{"div_rn", F::Div, 2},
    Direct{"add_rn", F::Add, 2},      Direct{"mul_rn", F::Mul, 2},
    Direct{"fsub_rn", F::Sub, 2},     Direct{"sub_rn", F::Sub, 2},
    Direct{"sqrt_rn", F::Sqrt, 1},    Direct{"fsqrt_rn", F::Sqrt, 1},
    Direct{"dsqrt_rn", F::Sqrt, 1},   Direct{"mulhi", F::MulHi, 2},
    Direct{"fast_sin", F::Sin, 1},    Direct{"fast_cos", F::Cos, 1},
    Direct{"fast_exp", F::Exp, 1},    Direct{"fast_log", F::Log, 1},
    Direct{"fast_log2", F::Log2, 1},  Direct{"fast_pow", F::Pow, 2},
    Direct{"fast_tanh", F::Tanh, 1},  Direct{"fast_fdivide", F::Div, 2},
    Direct{"frsqrt_rn", F::Rsqrt, 1},
};

/// `__nv_expf` and `__nv_exp` are one function, of f32 and of f64.
std::string base_name(std::string symbol, bool is_f32) {
  if (symbol.starts_with("__nv_")) symbol = symbol.substr(5);
  if (is_f32 && symbol.ends_with('f')) symbol.pop_back();
  return symbol;
}

std::optional<ValueId> formula(Formula& f, const std::string& name, std::span<const ValueId> x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x.size() == 1) {
    if (name == "log1p") return f.log1p(x[0]);
    if (name == "expm1") return f.expm1(x[0]);
    if (name == "exp10" || name == "fast_exp10") return f.of(F::Pow, f.constant(10), x[0]);
    if (name == "log10" || name == "fast_log10")
      return f.div(f.of(F::Log, x[0]), f.constant(std::numbers::ln10));
    if (name == "tan" || name == "fast_tan") return f.div(f.of(F::Sin, x[0]), f.of(F::Cos, x[0]));
    if (name == "sinh") return f.sinh(x[0]);
    if (name == "cosh") return f.cosh(x[0]);
    if (name == "asinh") return f.asinh(x[0]);
    if (name == "acosh") return f.acosh(x[0]);
    if (name == "atanh") return f.atanh(x[0]);
    if (name == "asin") return f.asin(x[0]);
    if (name == "acos") return f.acos(x[0]);
    if (name == "atan") return f.atan(x[0]);
    if (name == "erfc") return f.erfc(x[0]);
    if (name == "trunc") return f.trunc(x[0]);
    if (name == "round") return f.round_half_away(x[0]);
    if (name == "sinpi")
      return f.of(F::Sin, f.mul(f.of(F::Rem, x[0], f.constant(2)), std::numbers::pi));
    if (name == "cospi")
      return f.of(F::Cos, f.mul(f.of(F::Rem, x[0], f.constant(2)), std::numbers::pi));
    if (name == "rcp_rn" || name == "frcp_rn" || name == "drcp_rn")
      return f.div(f.constant(1), x[0]);
    if (name == "cbrt") {
      return f.with_sign_of(f.of(F::Pow, f.of(F::Abs, x[0]), f.constant(1.0 / 3)), x[0]);
    }
    if (name == "isnan" || name == "isnand") return f.of(F::NotEqual, x[0], x[0]);
    if (name == "isinf" || name == "isinfd") return f.equal(f.of(F::Abs, x[0]), kInfinity);
    if (name == "finite" || name == "isfinited" || name == "isfinite")
      return f.less(f.of(F::Abs, x[0]), kInfinity);
    if (name == "signbit" || name == "signbitd") return f.is_negative(x[0]);
  }
  if (x.size() == 2) {
    if (name == "atan2") return f.atan2(x[0], x[1]);
    if (name == "hypot") return f.of(F::Sqrt, f.add(f.mul(x[0], x[0]), f.mul(x[1], x[1])));
    if (name == "fdim")
      return f.choose(f.of(F::Greater, x[0], x[1]), f.sub(x[0], x[1]), f.constant(0));
    if (name == "copysign") {
      const ValueId a = f.of(F::Abs, x[0]);
      return f.choose(f.is_negative(x[1]), f.of(F::Neg, a), a);
    }
  }
  return std::nullopt;
}

}  // namespace

void Lowering::lower_extern(const Operation& op) {
  const Attribute* symbol = op.attribute("symbol");
  if (symbol == nullptr || op.operands.empty()) return malformed(op, "a symbol and operands");
  const Type type = result_type(op);
  std::vector<ValueId> x;
  for (std::size_t i = 0; i < op.operands.size(); ++i) x.push_back(operand(op, i).id);
  if (builder_.failed()) return;
  const DType from = builder_.type(x[0]).dtype, to = carrier_of(type.element);
  const std::string name = base_name(symbol->text, from == DType::F32);
  for (const Direct& row : kDirect) {
    if (row.name == name && static_cast<std::size_t>(row.operands) == x.size() && from == to) {
      return result(op, type, map(row.function, x));
    }
  }
  if (name == "powi" && x.size() == 2) return result(op, type, map(F::Pow, {x[0], as(x[1], from)}));
  if (is_float(from)) {
    std::vector<ValueId> wide;
    for (const ValueId id : x) wide.push_back(as(id, DType::F64));
    if (from == DType::F64) wide = x;
    Formula formulas(builder_, wide[0]);
    if (const auto made = formula(formulas, name, wide)) {
      return result(op, type, builder_.type(*made).dtype == to ? *made : as(*made, to));
    }
  }
  unsupported(op, fmt::format("function {}", symbol->text),
              "functions of libdevice that have a formula in tessera/triton/libdevice.cpp");
}

}  // namespace tessera::triton
