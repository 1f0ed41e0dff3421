#include "tessera/prove/rounding.h"

#include <gtest/gtest.h>

#include "tessera/prove/exactness.h"
#include "tessera/rules/proof.h"
#include "tessera/rules/shipped.h"
#include "tests/rules/rule_check.h"

namespace tessera::rules {
namespace {

/// Whether the proof of `source = target` shows that both sides are correctly rounded.
bool shows_exactness(const std::string& inputs, const std::string& source,
                     const std::string& target) {
  const std::vector<Rule> rules =
      testing::rules_of("rule r { source (" + inputs + ") { return " + source +
                        " } target { return " + target + " } }");
  if (rules.empty()) return false;
  const prove::Verdict verdict = verdict_of(rules[0], Guards::Stated, {});
  const auto* proved = std::get_if<prove::Proved>(&verdict);
  EXPECT_NE(proved, nullptr) << source << " = " << target;
  return proved != nullptr && prove::rounds_correctly(proved->certificate.claim);
}

TEST(Rounding, IsCorrectWhereElementsAreMovedOrChosen) {
  EXPECT_TRUE(
      shows_exactness("x: f32[a, b]", "transpose(transpose(x) {perm=[1, 0]}) {perm=[1, 0]}", "x"));
  EXPECT_TRUE(shows_exactness("x: f32[a, b], y: f32[a, b], z: f32[a, b]",
                              "concat(concat(x, y) {axis=0}, z) {axis=0}",
                              "concat(x, y, z) {axis=0}"));
  EXPECT_TRUE(
      shows_exactness("x: f32[a], y: f32[a], z: f32[a]", "max(max(x, y), z)", "max(x, max(y, z))"));
}

TEST(Rounding, IsCorrectAfterOneOperation) {
  EXPECT_TRUE(shows_exactness("x: f32[a], y: f32[b]", "relu(concat(x, y) {axis=0})",
                              "concat(relu(x), relu(y)) {axis=0}"));
  EXPECT_TRUE(shows_exactness("x: f32[a, b], y: f32[a, b]", "transpose(add(x, y)) {perm=[1, 0]}",
                              "add(transpose(y) {perm=[1, 0]}, transpose(x) {perm=[1, 0]})"));
}

TEST(Rounding, IsCorrectWhereTheOperationIsAnother) {
  EXPECT_TRUE(shows_exactness("x: f32[a]", "mul(x, 2.0)", "add(x, x)"));
  EXPECT_TRUE(shows_exactness("x: f32[a], y: f32[a]", "sub(x, neg(y))", "add(x, y)"));
}

TEST(Rounding, IsNotSeenBeyondThat) {
  const std::string three = "x: f32[a], y: f32[a], z: f32[a]";
  EXPECT_FALSE(shows_exactness(three, "add(add(x, y), z)", "add(x, add(y, z))"));
  EXPECT_FALSE(shows_exactness(three, "mul(x, add(y, z))", "add(mul(x, y), mul(x, z))"));
  EXPECT_FALSE(shows_exactness("x: f32[a]", "mul(x, 3.0)", "add(x, add(x, x))"));
  EXPECT_FALSE(shows_exactness("x: f32[a]", "mul(mul(x, 0.1), 10.0)", "mul(x, mul(0.1, 10.0))"));
  EXPECT_FALSE(shows_exactness("x: f32[a]", "exp(neg(x))", "reciprocal(exp(x))"));
  EXPECT_FALSE(shows_exactness("x: f32[a, b]",
                               "reduce_sum(transpose(x) {perm=[1, 0]}, [0]) {keepdims=0}",
                               "reduce_sum(x, [1]) {keepdims=0}"));
}

TEST(Rounding, AgreesWithTheOperationsThatAreTraced) {
  const auto rules = shipped();
  ASSERT_TRUE(rules);
  int shown = 0;
  for (const Rule& rule : *rules) {
    const std::vector<Rule> all = instances(rule);
    const Rule& instance = all.back();
    Rule over_reals = instance;
    over_reals.numerics = {Numerics::Kind::Reals};
    const prove::Verdict verdict = verdict_of(over_reals, Guards::Stated, {});
    const auto* proved = std::get_if<prove::Proved>(&verdict);
    if (proved == nullptr || !prove::rounds_correctly(proved->certificate.claim)) continue;
    ++shown;
    // Tracing may not know; it may not know better.
    const auto traced =
        prove::inexactness(instance.source, instance.target, instance.guard, {.tries = 3});
    EXPECT_FALSE(traced && std::holds_alternative<prove::Refuted>(*traced)) << rule.name;
  }
  EXPECT_GE(shown, 100);
}

}  // namespace
}  // namespace tessera::rules
