#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/ops/catalog.h"
#include "tessera/rules/proof.h"
#include "tests/rules/rule_check.h"

namespace tessera::rules {
namespace {

using testing::rules_of;

constexpr DType kTypes[] = {DType::F32, DType::I32, DType::Bool};

/// Whether an operator is a function of two operands of a type; where it is `closed`, its result is
/// of that type too.
struct Accepts {
  bool closed;
};
bool accepts(const OpDef& op, DType dtype, Accepts how) {
  const auto attrs = completed(op, {});
  if (!attrs || !check_arity(op, {true, true}) || op.kind() != OpDef::Kind::Core || !op.pure)
    return false;
  const ValueInfo number{.type = Type::tensor(dtype, {})};
  const auto results = infer(op, *attrs, {number, number});
  return results && results->size() == 1 && (!how.closed || (*results)[0].type == number.type);
}

/// Whether `source = target` is proved as it is stated: of floats for all shapes where *b <= *s, of
/// others for shapes that are equal.
bool holds(DType dtype, std::string_view numerics, const std::string& source,
           const std::string& target) {
  const std::vector<Rule> rules = rules_of(
      is_float(dtype)
          ? fmt::format("rule law {{ numerics {1} where *b <= *s "
                        "source (x: {0}[*s], y: {0}[*b], z: {0}[*b]) {{ return {2} }} "
                        "target {{ return {3} }} }}",
                        to_string(dtype), numerics, source, target)
          : fmt::format("rule law {{ numerics {1} source (x: {0}[n], y: {0}[n], z: {0}[n]) "
                        "{{ return {2} }} target {{ return {3} }} }}",
                        to_string(dtype), numerics, source, target));
  return !rules.empty() &&
         std::holds_alternative<prove::Proved>(prove_rule(rules[0], Guards::Stated, {}).verdict);
}

bool is_commutative(const OpDef& op, DType dtype, std::string_view numerics) {
  return holds(dtype, numerics, op.name + "(x, y)", op.name + "(y, x)");
}

bool is_associative(const OpDef& op, DType dtype, std::string_view numerics) {
  return holds(dtype, numerics, fmt::format("{0}({0}(x, y), z)", op.name),
               fmt::format("{0}(x, {0}(y, z))", op.name));
}

/// Functions of bits, which the prover does not look into: three bits at a time are all there is.
bool is_associative_on_all_bits(const OpDef& op) {
  std::vector<std::int64_t> x, y, z;
  for (std::int64_t bits = 0; bits < 8; ++bits)
    for (const std::int64_t shift : {0, 31}) {
      x.push_back((bits & 1) << shift);
      y.push_back((bits >> 1 & 1) << shift);
      z.push_back((bits >> 2 & 1) << shift);
    }
  const std::string head = fmt::format("graph(x: i64[{0}], y: i64[{0}], z: i64[{0}])", x.size());
  const auto tensor = [](const std::vector<std::int64_t>& numbers) {
    return Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(numbers.size())},
                                    numbers);
  };
  const auto result = [&](std::string_view body) {
    const Graph graph = testing::parsed(fmt::format("{} {{ return {} }}", head, body));
    return testing::computed(graph, {tensor(x), tensor(y), tensor(z)});
  };
  const std::vector<Tensor> a = result(fmt::format("{0}({0}(x, y), z)", op.name)),
                            b = result(fmt::format("{0}(x, {0}(y, z))", op.name));
  return a.size() == 1 && b.size() == 1 && equal(Attr(a[0]), Attr(b[0]));
}

TEST(Laws, OfCommutativeOperatorsAreProved) {
  int proved = 0;
  for (const OpDef& op : catalog())
    for (const DType dtype : kTypes) {
      if (!op.laws.commutative || !accepts(op, dtype, {.closed = false})) continue;
      const bool rounds = accepts(op, dtype, {.closed = true}) && is_float(dtype);
      EXPECT_TRUE(is_commutative(op, dtype, rounds ? "exact" : "reals"))
          << op.name << " of " << to_string(dtype);
      ++proved;
    }
  EXPECT_GE(proved, 19);
}

TEST(Laws, OfAssociativeOperatorsAreProved) {
  int proved = 0;
  for (const OpDef& op : catalog())
    for (const DType dtype : kTypes) {
      const auto law = op.laws.associative;
      if (law == Laws::Associative::No || !accepts(op, dtype, {.closed = true})) continue;
      const bool exact = law == Laws::Associative::Exactly && is_float(dtype);
      EXPECT_TRUE(is_associative(op, dtype, exact ? "exact" : "reals") ||
                  (!accepts(op, DType::F32, {.closed = true}) && is_associative_on_all_bits(op)))
          << op.name << " of " << to_string(dtype);
      ++proved;
    }
  EXPECT_GE(proved, 16);
}

TEST(Laws, AreDeclaredWhereTheyHold) {
  const ValueInfo vector{.type = Type::tensor(DType::F32, {Dim::symbol("n")})};
  for (const OpDef& op : catalog()) {
    SCOPED_TRACE(op.name);
    if (!accepts(op, DType::F32, {.closed = true}) ||
        !infer(op, *completed(op, {}), {vector, vector}))
      continue;
    if (!op.laws.commutative) {
      EXPECT_FALSE(is_commutative(op, DType::F32, "reals"));
      continue;
    }
    const auto law = op.laws.associative;
    if (law == Laws::Associative::No) {
      EXPECT_FALSE(is_associative(op, DType::F32, "reals"));
    }
    if (law == Laws::Associative::OverReals) {
      EXPECT_FALSE(is_associative(op, DType::F32, "exact"));
    }
  }
}

}  // namespace
}  // namespace tessera::rules
