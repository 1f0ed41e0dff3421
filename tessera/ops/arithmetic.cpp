#include <span>

#include "tessera/ops/families.h"

namespace tessera::define {
namespace {

/// Combines by halves, which keeps the expression shallow.
Scalar combined(std::span<const Scalar> values, const Binary& combine) {
  if (values.size() == 1) return values[0];
  const std::size_t half = (values.size() + 1) / 2;
  return combine(combined(values.first(half), combine), combined(values.subspan(half), combine));
}

/// Variadic elementwise operator that combines its inputs pairwise; `finish` is given their number.
OpDef variadic(std::string name, std::string summary, const Binary& combine,
               const std::function<Scalar(const Scalar&, std::size_t)>& finish = {}) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"x+"},
          .define = [=](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype(in));
            TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
            const Broadcast all = broadcast({"x", "y"}, in);
            Scalar value = combined(all.values, combine);
            if (finish) value = finish(value, all.values.size());
            return Definition{.inputs = all.operands,
                              .outputs = {output(in[0].dtype(), each(all.axes), value)}};
          }};
}

Scalar added(const Scalar& x, const Scalar& y) {
  return x + y;
}

/// The remainder of the division that rounds towards zero. On floats it is exact, unlike
/// x - trunc(x/y)*y.
Scalar truncated_mod(const Scalar& x, const Scalar& y) {
  if (x.sort() != Sort::Value) return x - (x / y) * y;
  const Scalar magnitude = mod(abs(x), abs(y));
  return select(x < 0.0, -magnitude, magnitude);
}

/// Shift where an amount beyond the width gives 0, or the sign; negative amounts count as such.
Scalar shifted(const Attrs& attrs, const Scalar& x, const Scalar& y) {
  if (attrs.s("direction") == "LEFT") return apply(Fn::ShiftLeft, {x, y});
  if (x.sort() == Sort::Unsigned) return apply(Fn::ShiftRight, {x, y});
  return apply(Fn::ShiftRight, {x, select(y < 0, 63, tessera::min(y, 63))});
}

}  // namespace

OpDef add() {
  return semigroup(elementwise("add", "x + y", added), Laws::Associative::OverReals);
}

OpDef sub() {
  return elementwise("sub", "x - y", [](const Scalar& x, const Scalar& y) { return x - y; });
}

OpDef mul() {
  return semigroup(
      elementwise("mul", "x * y", [](const Scalar& x, const Scalar& y) { return x * y; }),
      Laws::Associative::OverReals);
}

OpDef div() {
  return elementwise("div", "x / y; integers round towards zero",
                     [](const Scalar& x, const Scalar& y) { return x / y; });
}

OpDef mod() {
  return elementwise("mod", "remainder with the sign of y, or of x if fmod is 1",
                     {flag_attr("fmod", 0)},
                     [](const Attrs& attrs, const Scalar& x, const Scalar& y) {
                       return attrs.i("fmod") != 0 ? truncated_mod(x, y) : tessera::mod(x, y);
                     });
}

OpDef pow() {
  return {.name = "pow",
          .summary = "x to the power of y, in the type of x",
          .inputs = {"x", "y"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            for (const Argument& argument : in)
              TESSERA_TRY_DONE(check_domain(Domain::Numbers, argument.dtype()));
            const Broadcast both = broadcast({"x", "y"}, in);
            return Definition{.inputs = both.operands,
                              .outputs = {output(in[0].dtype(), each(both.axes),
                                                 tessera::pow(both.values[0], both.values[1]))}};
          }};
}

OpDef neg() {
  return elementwise("neg", "-x", [](const Scalar& x) { return -x; });
}

OpDef abs() {
  return elementwise("abs", "|x|", [](const Scalar& x) { return tessera::abs(x); });
}

OpDef sign() {
  return elementwise("sign", "-1, 0 or 1", [](const Scalar& x) {
    // What is neither below nor above 0 is 0, or no number.
    const Scalar zero = like(x, 0);
    return select(x > zero, like(x, 1), select(x < zero, like(x, -1), x));
  });
}

OpDef relu() {
  return elementwise("relu", "max(x, 0)",
                     [](const Scalar& x) { return tessera::max(x, like(x, 0)); });
}

OpDef max() {
  return semigroup(variadic("max", "the largest of all inputs",
                            [](const Scalar& x, const Scalar& y) { return tessera::max(x, y); }),
                   Laws::Associative::Exactly);
}

OpDef min() {
  return semigroup(variadic("min", "the smallest of all inputs",
                            [](const Scalar& x, const Scalar& y) { return tessera::min(x, y); }),
                   Laws::Associative::Exactly);
}

OpDef sum() {
  return semigroup(variadic("sum", "the sum of all inputs", added), Laws::Associative::OverReals);
}

OpDef mean() {
  OpDef op =
      variadic("mean", "the mean of all inputs", added, [](const Scalar& total, std::size_t count) {
        return total / like(total, static_cast<double>(count));
      });
  op.laws.commutative = true;
  return op;
}

OpDef clip() {
  return {.name = "clip",
          .summary = "min(max(x, lowest), highest)",
          .inputs = {"x", "min?", "max?"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_same_dtype(in));
            TESSERA_TRY_DONE(check_domain(Domain::Numbers, in[0].dtype()));
            const Broadcast x = broadcast({"x"}, {in[0]});
            std::vector<Operand> operands = x.operands;
            Scalar value = x.values[0];
            if (given(in, 1)) {
              operands.push_back(as_given("min", in[1]));
              TESSERA_TRY(const Scalar lowest, only_element(operands.back()));
              value = tessera::max(value, lowest);
            }
            if (given(in, 2)) {
              operands.push_back(as_given("max", in[2]));
              TESSERA_TRY(const Scalar highest, only_element(operands.back()));
              value = tessera::min(value, highest);
            }
            return Definition{.inputs = operands,
                              .outputs = {output(in[0].dtype(), each(x.axes), value)}};
          }};
}

OpDef bitwise_and() {
  return semigroup(elementwise(
                       "bitwise_and", "bits set in both",
                       [](const Scalar& x, const Scalar& y) { return x && y; }, Domain::Integers),
                   Laws::Associative::Exactly);
}

OpDef bitwise_or() {
  return semigroup(elementwise(
                       "bitwise_or", "bits set in either",
                       [](const Scalar& x, const Scalar& y) { return x || y; }, Domain::Integers),
                   Laws::Associative::Exactly);
}

OpDef bitwise_xor() {
  return semigroup(elementwise(
                       "bitwise_xor", "bits set in one of both",
                       [](const Scalar& x, const Scalar& y) {
                         return apply(Fn::Xor, {x, y});
                       },
                       Domain::Integers),
                   Laws::Associative::Exactly);
}

OpDef bitwise_not() {
  return elementwise(
      "bitwise_not", "bits not set", [](const Scalar& x) { return !x; }, Domain::Integers);
}

OpDef bit_shift() {
  OpDef op = elementwise("bit_shift", "x shifted by y bits to the LEFT or RIGHT",
                         {required_attr("direction", std::string())}, shifted, Domain::Integers);
  op.define = [define = std::move(op.define)](const Attrs& attrs,
                                              const Signature& in) -> Expected<Definition> {
    const std::string& direction = attrs.s("direction");
    if (direction != "LEFT" && direction != "RIGHT")
      return bad_operands("direction is " + direction, "it has to be LEFT or RIGHT");
    return define(attrs, in);
  };
  return op;
}

}  // namespace tessera::define
