#include <limits>

#include "tessera/ops/families.h"

namespace tessera::define {

OpDef equal() {
  OpDef op = elementwise(
      "equal", "x = y", [](const Scalar& x, const Scalar& y) { return tessera::equal(x, y); },
      Domain::Any);
  op.laws.commutative = true;
  return op;
}

OpDef less() {
  return elementwise("less", "x < y", [](const Scalar& x, const Scalar& y) { return x < y; });
}

OpDef less_or_equal() {
  return elementwise("less_or_equal", "x <= y",
                     [](const Scalar& x, const Scalar& y) { return x <= y; });
}

OpDef greater() {
  return elementwise("greater", "x > y", [](const Scalar& x, const Scalar& y) { return x > y; });
}

OpDef greater_or_equal() {
  return elementwise("greater_or_equal", "x >= y",
                     [](const Scalar& x, const Scalar& y) { return x >= y; });
}

OpDef logical_and() {
  return semigroup(elementwise(
                       "logical_and", "x and y",
                       [](const Scalar& x, const Scalar& y) { return x && y; }, Domain::Truths),
                   Laws::Associative::Exactly);
}

OpDef logical_or() {
  return semigroup(elementwise(
                       "logical_or", "x or y",
                       [](const Scalar& x, const Scalar& y) { return x || y; }, Domain::Truths),
                   Laws::Associative::Exactly);
}

OpDef logical_xor() {
  return semigroup(elementwise(
                       "logical_xor", "either x or y",
                       [](const Scalar& x, const Scalar& y) {
                         return apply(Fn::Xor, {x, y});
                       },
                       Domain::Truths),
                   Laws::Associative::Exactly);
}

OpDef logical_not() {
  return elementwise(
      "logical_not", "not x", [](const Scalar& x) { return !x; }, Domain::Truths);
}

OpDef is_nan() {
  return elementwise(
      "is_nan", "whether x is not a number", [](const Scalar& x) { return tessera::is_nan(x); },
      Domain::Floats);
}

OpDef is_inf() {
  return elementwise(
      "is_inf", "whether x is infinite, of the signs asked for",
      {flag_attr("detect_negative", 1), flag_attr("detect_positive", 1)},
      [](const Attrs& attrs, const Scalar& x) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        Scalar found = truth(false);
        if (attrs.i("detect_negative") != 0) found = found || tessera::equal(x, -kInfinity);
        if (attrs.i("detect_positive") != 0) found = found || tessera::equal(x, kInfinity);
        return found;
      },
      Domain::Floats);
}

OpDef where() {
  return {.name = "where",
          .summary = "x where the condition holds, else y",
          .inputs = {"condition", "x", "y"},
          .define = [](const Attrs&, const Signature& in) -> Expected<Definition> {
            TESSERA_TRY_DONE(check_domain(Domain::Truths, in[0].dtype()));
            TESSERA_TRY_DONE(check_same_dtype({in[1], in[2]}));
            const Broadcast all = broadcast({"condition", "x", "y"}, in);
            return Definition{
                .inputs = all.operands,
                .outputs = {output(in[1].dtype(), each(all.axes),
                                   select(all.values[0], all.values[1], all.values[2]))}};
          }};
}

}  // namespace tessera::define
