#include "tessera/prove/exactness.h"

#include <gtest/gtest.h>

#include "tessera/prove/refute.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

struct Pair {
  const char *source, *target;
};

std::optional<Verdict> verdict_on(const Pair& pair) {
  return inexactness(testing::parsed(pair.source), testing::parsed(pair.target), {}, {.tries = 8});
}

TEST(Exactness, TheSameOperationsInTheSameOrder) {
  const Pair pairs[] = {
      {"graph(x: f32[n], y: f32[n]) { return add(x, y) }",
       "graph(x: f32[n], y: f32[n]) { return add(y, x) }"},
      {"graph(x: f32[n], y: f32[n]) { return sub(x, y) }",
       "graph(x: f32[n], y: f32[n]) { return neg(sub(y, x)) }"},
      {"graph(x: f32[n], y: f32[n]) { return mul(neg(x), y) }",
       "graph(x: f32[n], y: f32[n]) { return neg(mul(x, y)) }"},
      {"graph(x: f32[n]) { return add(x, x) }", "graph(x: f32[n]) { return mul(x, 2.0) }"},
      {"graph(x: f32[n], y: f32[n], z: f32[n]) { return max(max(x, y), z) }",
       "graph(x: f32[n], y: f32[n], z: f32[n]) { return max(y, max(z, x)) }"},
      {"graph(x: f32[m, k], y: f32[l, k], z: f32[k, n])"
       " { return matmul(concat(x, y) {axis=0}, z) }",
       "graph(x: f32[m, k], y: f32[l, k], z: f32[k, n])"
       " { return concat(matmul(x, z), matmul(y, z)) {axis=0} }"},
      {"graph(x: i64[n]) { return mul(x, 3) }", "graph(x: i64[n]) { return mul(3, x) }"},
  };
  for (const Pair& pair : pairs) EXPECT_FALSE(verdict_on(pair)) << pair.source << pair.target;
}

// Equal over the reals, and for most inputs bit by bit.
TEST(Exactness, CastsAndStorageInOtherTypesRound) {
  const Pair pairs[] = {
      {"graph(x: f32[n], y: f32[n]) { return cast(add(cast(x) {to=\"f64\"}, cast(y) {to=\"f64\"}))"
       " {to=\"f32\"} }",
       "graph(x: f32[n], y: f32[n]) { return add(x, y) }"},
      {"graph(x: f64[n], y: f64[n]) { return add(cast(x) {to=\"f32\"}, cast(y) {to=\"f32\"}) }",
       "graph(x: f64[n], y: f64[n]) { return cast(add(x, y)) {to=\"f32\"} }"},
      {"graph(x: i64[n]) { return cast(x) {to=\"f32\"} }",
       "graph(x: i64[n]) { return cast(cast(x) {to=\"f64\"}) {to=\"f32\"} }"},
      {"graph(x: f32[n]) { return mul(cast(x) {to=\"f64\"}, cast(x) {to=\"f64\"}) }",
       "graph(x: f32[n]) { return cast(mul(x, x)) {to=\"f64\"} }"},
      {"graph(x: f16[n]) { return mul(cast(x) {to=\"f32\"}, cast(x) {to=\"f32\"}) }",
       "graph(x: f16[n]) { return cast(mul(x, x)) {to=\"f32\"} }"},
  };
  for (const Pair& pair : pairs) EXPECT_TRUE(verdict_on(pair)) << pair.source << pair.target;
  const Pair same[] = {
      {"graph(x: f16[n]) { return cast(cast(x) {to=\"f32\"}) {to=\"f16\"} }",
       "graph(x: f16[n]) { return x }"},
      {"graph(x: f32[n]) { return cast(cast(x) {to=\"f64\"}) {to=\"f32\"} }",
       "graph(x: f32[n]) { return x }"},
      {"graph(x: i8[n]) { return cast(cast(x) {to=\"i32\"}) {to=\"f32\"} }",
       "graph(x: i8[n]) { return cast(x) {to=\"f32\"} }"},
      {"graph(x: f64[m, n]) { return transpose(cast(x) {to=\"f32\"}) }",
       "graph(x: f64[m, n]) { return cast(transpose(x)) {to=\"f32\"} }"},
  };
  for (const Pair& pair : same) EXPECT_FALSE(verdict_on(pair)) << pair.source << pair.target;
}

// All of these are equal over the reals.
TEST(Exactness, WhatIsRoundedOtherwiseIsShownByAnInputThatReplays) {
  const Pair pairs[] = {
      {"graph(x: f32[n], y: f32[n], z: f32[n]) { return add(add(x, y), z) }",
       "graph(x: f32[n], y: f32[n], z: f32[n]) { return add(x, add(y, z)) }"},
      {"graph(x: f32[n], y: f32[n], z: f32[n]) { return mul(add(x, y), z) }",
       "graph(x: f32[n], y: f32[n], z: f32[n]) { return add(mul(x, z), mul(y, z)) }"},
      {"graph(x: f32[n], y: f32[n]) { return div(x, y) }",
       "graph(x: f32[n], y: f32[n]) { return mul(x, div(1.0, y)) }"},
      {"graph(x: f32[n], y: f32[n]) { return mul(mul(x, 3.0), y) }",
       "graph(x: f32[n], y: f32[n]) { return mul(x, mul(y, 3.0)) }"},
      {"graph(x: f32[m, k], y: f32[k, l], z: f32[l, n]) { return matmul(matmul(x, y), z) }",
       "graph(x: f32[m, k], y: f32[k, l], z: f32[l, n]) { return matmul(x, matmul(y, z)) }"},
  };
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.target);
    const auto verdict = verdict_on(pair);
    ASSERT_TRUE(verdict);
    const auto* refuted = std::get_if<Refuted>(&*verdict);
    ASSERT_NE(refuted, nullptr);
    EXPECT_TRUE(refuted->bits);
    EXPECT_NE(refuted->source, refuted->target);
    const auto again = replay(testing::parsed(pair.source), testing::parsed(pair.target), *refuted);
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(*again);
  }
}

}  // namespace
}  // namespace tessera::prove
