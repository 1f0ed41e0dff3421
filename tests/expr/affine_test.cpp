#include "tessera/expr/affine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tessera {
namespace {

using Form = Affine<std::string>;

TEST(Affine, KeepsItsTermsInTheOrderOfTheVariables) {
  const auto sum = Form::of("n").plus(Form::of("m"), 4);
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(*sum, (Form{.terms = {{"m", 4}, {"n", 1}}}));
  EXPECT_EQ(sum->factor("m"), 4);
  EXPECT_EQ(sum->factor("k"), 0);
}

TEST(Affine, DropsTermsThatCancel) {
  const Form n = Form::of("n");
  const auto shifted = n.plus(Form::constant(3));
  ASSERT_TRUE(shifted.has_value());
  EXPECT_EQ(shifted->plus(n, -1), Form::constant(3));
  EXPECT_EQ(shifted->times(0), Form{});
}

TEST(Affine, HasNoResultBeyond64Bits) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Form::constant(most).plus(Form::constant(1)), std::nullopt);
  EXPECT_EQ((Form{.terms = {{"n", most}}}).times(2), std::nullopt);
  EXPECT_EQ((Form{.terms = {{"n", most}}}).plus(Form::of("n"), -1)->factor("n"), most - 1);
}

TEST(Affine, LeavesOutTheTermsOfSomeVariables) {
  const Form form{.base = 1, .terms = {{"m", 2}, {"n", 3}}};
  const Form rest = form.without([](const std::string& name) { return name == "m"; });
  EXPECT_EQ(rest, (Form{.base = 1, .terms = {{"n", 3}}}));
}

}  // namespace
}  // namespace tessera
