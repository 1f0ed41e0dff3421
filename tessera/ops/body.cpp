#include "tessera/ops/body.h"

#include "tessera/support/check.h"

namespace tessera {

Body& Val::body() const {
  TESSERA_CHECK(present(), "an input that was left out is used");
  return *body_;
}

const Argument& Val::argument() const {
  return body().argument(*this);
}

Val Body::number(double value, DType dtype) {
  // In place of text it is the empty one, which the operators that would compute with it refuse.
  if (dtype == DType::String) return constant(Tensor::of_strings({}, {""}));
  Buffer buffer(static_cast<std::size_t>(byte_width(dtype)));
  store_number(dtype, buffer.data(), 0, value);
  return constant({.dtype = dtype, .bytes = std::move(buffer).freeze()});
}

Val Body::ints(const Ints& values) {
  return constant(
      Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(values.size())}, values));
}

Val Body::real(const Attrs& attrs, std::string_view name, DType dtype) {
  const Attr* attr = attrs.find(name);
  const auto* symbol = attr == nullptr ? nullptr : std::get_if<Symbol>(attr);
  return symbol != nullptr ? named_real(symbol->name, dtype) : number(attrs.f(name), dtype);
}

Val operator+(const Val& a, const Val& b) {
  return a.body().op("add", {a, b});
}
Val operator-(const Val& a, const Val& b) {
  return a.body().op("sub", {a, b});
}
Val operator*(const Val& a, const Val& b) {
  return a.body().op("mul", {a, b});
}
Val operator/(const Val& a, const Val& b) {
  return a.body().op("div", {a, b});
}
Val operator-(const Val& a) {
  return a.body().op("neg", {a});
}

Val operator+(const Val& a, double b) {
  return a + a.body().number(b, a.dtype());
}
Val operator-(const Val& a, double b) {
  return a - a.body().number(b, a.dtype());
}
Val operator*(const Val& a, double b) {
  return a * a.body().number(b, a.dtype());
}
Val operator/(const Val& a, double b) {
  return a / a.body().number(b, a.dtype());
}
Val operator+(double a, const Val& b) {
  return b.body().number(a, b.dtype()) + b;
}
Val operator-(double a, const Val& b) {
  return b.body().number(a, b.dtype()) - b;
}
Val operator*(double a, const Val& b) {
  return b.body().number(a, b.dtype()) * b;
}
Val operator/(double a, const Val& b) {
  return b.body().number(a, b.dtype()) / b;
}

}  // namespace tessera
