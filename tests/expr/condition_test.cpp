#include "tessera/expr/condition.h"

#include <gtest/gtest.h>

#include "tests/expr/examples.h"

namespace tessera {
namespace {

Condition parsed(std::string_view text) {
  Lexer lexer(text);
  auto condition = parse_condition(lexer);
  EXPECT_TRUE(condition) << to_string(condition.error());
  return condition ? *condition : Condition{};
}

TEST(Condition, HoldsOfSizesOrNot) {
  EXPECT_TRUE(*holds(equal(kN, kM * 2 + 1), {{"n", 7}, {"m", 3}}));
  EXPECT_FALSE(*holds(equal(kN, kM * 2 + 1), {{"n", 8}, {"m", 3}}));
  EXPECT_TRUE(*holds(at_most(kN, kM), {{"n", 3}, {"m", 3}}));
  EXPECT_FALSE(*holds(at_most(kN, kM), {{"n", 4}, {"m", 3}}));
}

TEST(Condition, IsOpenWhereASizeHasNoValue) {
  const auto open = holds(equal(kN, kM), {{"n", 1}});
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().id, "guard-open");
}

TEST(Condition, ReadsWhatItPrints) {
  for (const Condition& condition : {equal(kN, kM * 2 + 1), at_most(kM, floor_div(kN, 2))})
    EXPECT_EQ(parsed(to_text(condition)), condition);
}

TEST(Condition, ReadsTheOtherComparisons) {
  EXPECT_EQ(parsed("n >= m"), at_most(kM, kN));
  EXPECT_EQ(parsed("n < m"), at_most(kN + 1, kM));
  EXPECT_EQ(parsed("n > m"), at_most(kM + 1, kN));
}

TEST(Guard, HoldsIfAllOfItDoes) {
  const Guard guard = {equal(kN, 2), at_most(kM, 3)};
  EXPECT_EQ(to_text(guard), "n == 2, m <= 3");
  EXPECT_TRUE(*holds(guard, {{"n", 2}, {"m", 1}}));
  EXPECT_FALSE(*holds(guard, {{"n", 2}, {"m", 4}}));
  EXPECT_TRUE(*holds(Guard{}, {}));
}

}  // namespace
}  // namespace tessera
