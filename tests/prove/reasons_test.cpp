#include "tessera/prove/reasons.h"

#include <gtest/gtest.h>

namespace tessera::prove {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m"), r = Dim::symbol("r");
const Dim i = Dim::symbol("%i0"), k = Dim::symbol("%1");

bool has_reason(const Dim& e, const std::vector<Dim>& premises) {
  Arithmetic arithmetic;
  return arithmetic.reason_for(e, {.list = premises}).has_value();
}

TEST(Reasons, AreFoundWhereTheyExist) {
  EXPECT_TRUE(has_reason(n - i, {n - 1 - i}));
  EXPECT_TRUE(has_reason(n * m - n * i - k - 1, {m - 1 - i, n - 1 - k}));
  EXPECT_TRUE(has_reason(-1, {n - 1 - i, i - n}));
  EXPECT_TRUE(has_reason(n - floor_div(n, 2), {n - floor_div(n, 2) * 2}));
  // Numbers too large for exact values at the points.
  const Dim huge = 4'000'000'000'000'000'000;
  EXPECT_TRUE(has_reason(huge + n - i, {huge - i}));
}

TEST(Reasons, AreNotFoundWhereSomePointViolatesThem) {
  EXPECT_FALSE(has_reason(n - 2 - i, {n - 1 - i}));
  EXPECT_FALSE(has_reason(-1, {n - 1 - i, n - 1}));
  EXPECT_FALSE(has_reason(r - i, {r * 2 - i, k + i - r}));
  EXPECT_FALSE(has_reason(n - m, {n - 1, m - 1}));
}

TEST(Reasons, DoNotUseThePremiseThatIsLeftOut) {
  Arithmetic arithmetic;
  const std::vector<Dim> premises{n - 1 - i, n - 1 - i};
  EXPECT_TRUE(arithmetic.reason_for(n - 1 - i, {.list = premises, .without = 0}));
  const std::vector<Dim> alone{n - 1 - i};
  EXPECT_FALSE(arithmetic.reason_for(n - 1 - i, {.list = alone, .without = 0}));
}

}  // namespace
}  // namespace tessera::prove
