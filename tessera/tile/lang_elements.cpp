#include "tessera/tile/lang.h"
#include "tessera/tile/lang_fit.h"

namespace tessera::tile {
namespace {

Val unary(Function function, const Operand& x) {
  const Trace::Line line(x.where());
  return made(build().map(function, {value_of(x)}));
}

Val binary(Function function, const Operand& a, const Operand& b,
           Division division = Division::No) {
  const Trace::Line line(a.where());
  const DType dtype = common_dtype({a, b}, division);
  const Extents shape = common_shape(type_of(a).shape, type_of(b).shape);
  const ValueId left = fit(a, dtype, shape), right = fit(b, dtype, shape);
  return made(build().map(function, {left, right}));
}

Val logical(Function function, const Operand& a, const Operand& b) {
  const Trace::Line line(a.where());
  const Extents shape = common_shape(type_of(a).shape, type_of(b).shape);
  const ValueId left = truth(a, shape), right = truth(b, shape);
  return made(build().map(function, {left, right}));
}

/// Pointer plus elements.
Val moved(const Operand& pointer, const Operand& elements) {
  const Trace::Line line(pointer.where());
  const Extents shape = common_shape(type_of(pointer).shape, type_of(elements).shape);
  const ValueId base = spread(pointer, shape), by = spread(elements, shape);
  return made(build().offset(base, by));
}

}  // namespace

Val operator+(const Operand& a, const Operand& b) {
  if (type_of(a).is_pointer()) return moved(a, b);
  if (type_of(b).is_pointer()) return moved(b, a);
  return binary(Function::Add, a, b);
}
Val operator-(const Operand& a, const Operand& b) {
  if (type_of(a).is_pointer()) return moved(a, Operand(-b, a.where()));
  return binary(Function::Sub, a, b);
}
Val operator*(const Operand& a, const Operand& b) {
  return binary(Function::Mul, a, b);
}
Val operator/(const Operand& a, const Operand& b) {
  return binary(Function::Div, a, b, Division::Yes);
}
Val operator%(const Operand& a, const Operand& b) {
  return binary(Function::Rem, a, b, Division::Yes);
}
Val operator&(const Operand& a, const Operand& b) {
  return binary(Function::And, a, b);
}
Val operator|(const Operand& a, const Operand& b) {
  return binary(Function::Or, a, b);
}
Val operator^(const Operand& a, const Operand& b) {
  return binary(Function::Xor, a, b);
}
Val operator<<(const Operand& a, const Operand& b) {
  return binary(Function::Shl, a, b);
}
Val operator>>(const Operand& a, const Operand& b) {
  return binary(Function::Shr, a, b);
}
Val operator==(const Operand& a, const Operand& b) {
  return binary(Function::Equal, a, b);
}
Val operator!=(const Operand& a, const Operand& b) {
  return binary(Function::NotEqual, a, b);
}
Val operator<(const Operand& a, const Operand& b) {
  return binary(Function::Less, a, b);
}
Val operator<=(const Operand& a, const Operand& b) {
  return binary(Function::LessEqual, a, b);
}
Val operator>(const Operand& a, const Operand& b) {
  return binary(Function::Greater, a, b);
}
Val operator>=(const Operand& a, const Operand& b) {
  return binary(Function::GreaterEqual, a, b);
}
Val operator&&(const Operand& a, const Operand& b) {
  return logical(Function::And, a, b);
}
Val operator||(const Operand& a, const Operand& b) {
  return logical(Function::Or, a, b);
}
Val operator!(const Operand& x) {
  const Trace::Line line(x.where());
  return made(build().map(Function::Not, {truth(x)}));
}
Val operator~(const Operand& x) {
  return unary(Function::Not, x);
}
Val operator-(const Operand& x) {
  return unary(Function::Neg, x);
}

Val exp(const Operand& x) {
  return unary(Function::Exp, x);
}
Val exp2(const Operand& x) {
  return unary(Function::Exp2, x);
}
Val log(const Operand& x) {
  return unary(Function::Log, x);
}
Val log2(const Operand& x) {
  return unary(Function::Log2, x);
}
Val sin(const Operand& x) {
  return unary(Function::Sin, x);
}
Val cos(const Operand& x) {
  return unary(Function::Cos, x);
}
Val tanh(const Operand& x) {
  return unary(Function::Tanh, x);
}
Val erf(const Operand& x) {
  return unary(Function::Erf, x);
}
Val sqrt(const Operand& x) {
  return unary(Function::Sqrt, x);
}
Val rsqrt(const Operand& x) {
  return unary(Function::Rsqrt, x);
}
Val sigmoid(const Operand& x) {
  return unary(Function::Sigmoid, x);
}
Val abs(const Operand& x) {
  return unary(Function::Abs, x);
}
Val floor(const Operand& x) {
  return unary(Function::Floor, x);
}
Val ceil(const Operand& x) {
  return unary(Function::Ceil, x);
}
Val round(const Operand& x) {
  return unary(Function::Round, x);
}

Val maximum(const Operand& a, const Operand& b, Nan nan) {
  return binary(nan == Nan::Ignore ? Function::Max : Function::Maximum, a, b);
}
Val minimum(const Operand& a, const Operand& b, Nan nan) {
  return binary(nan == Nan::Ignore ? Function::Min : Function::Minimum, a, b);
}
Val clamp(const Operand& x, const Operand& low, const Operand& high, Nan nan) {
  const Trace::Line line(x.where());
  return minimum(maximum(x, low, nan), high, nan);
}
Val pow(const Operand& a, const Operand& b) {
  return binary(Function::Pow, a, b);
}
Val umulhi(const Operand& a, const Operand& b) {
  return binary(Function::MulHi, a, b);
}

Val fma(const Operand& a, const Operand& b, const Operand& c) {
  const Trace::Line line(a.where());
  const DType dtype = common_dtype({a, b, c});
  const Extents shape =
      common_shape(common_shape(type_of(a).shape, type_of(b).shape), type_of(c).shape);
  const ValueId x = fit(a, dtype, shape), y = fit(b, dtype, shape), z = fit(c, dtype, shape);
  return made(build().map(Function::Fma, {x, y, z}));
}

Val where(const Operand& condition, const Operand& x, const Operand& y) {
  const Trace::Line line(condition.where());
  const DType dtype = common_dtype({x, y});
  const Extents shape =
      common_shape(common_shape(type_of(x).shape, type_of(y).shape), type_of(condition).shape);
  const ValueId chosen = truth(condition, shape), yes = fit(x, dtype, shape);
  const ValueId no = fit(y, dtype, shape);
  return made(build().map(Function::Select, {chosen, yes, no}));
}

Val cast(const Operand& x, DType dtype) {
  const Trace::Line line(x.where());
  return Val::of(fit(x, dtype, type_of(x).shape));
}

Val cdiv(const Operand& a, const Operand& b) {
  const Trace::Line line(a.where());
  const Operand less = b.is_number() ? Operand(b.number().literal.integer - 1, b.where())
                                     : Operand(b - 1, b.where());
  return (a + less) / b;
}

}  // namespace tessera::tile
