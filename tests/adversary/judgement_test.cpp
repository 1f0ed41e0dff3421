#include "tests/adversary/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/rules/text.h"
#include "tests/adversary/evaluation.h"

namespace tessera::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Entry entry_of(std::string truth, const std::string& sides) {
  auto rules = rules::parse_rules("rule r { numerics reals " + sides + " }");
  EXPECT_TRUE(rules) << to_string(rules.error());
  return {"r", std::move(truth), rules->front()};
}

Entry any_entry(std::string truth) {
  return entry_of(std::move(truth),
                  "source (x: f32[n]) { return neg(x) } target { return abs(x) }");
}

View view(std::string way, std::string verdict) {
  return {.way = std::move(way), .verdict = std::move(verdict), .replayed = true};
}

TEST(Judgement, ARightEntryPasses) {
  const Entry right =
      entry_of("true", "source (x: f32[n]) { return add(x, x) } target { return mul(x, 2.0) }");
  const Judgement proved = judged(right);
  EXPECT_EQ(proved.views.size(), 3u);
  EXPECT_THAT(faults(right, proved), IsEmpty());
  EXPECT_TRUE(is_decided(right, proved));
  const Entry wrong = any_entry("reals");
  const Judgement refuted = judged(wrong);
  EXPECT_THAT(faults(wrong, refuted), IsEmpty());
  EXPECT_TRUE(is_decided(wrong, refuted));
}

TEST(Judgement, AnEntryInTheWrongFolderFails) {
  const Entry wrong = any_entry("true");
  EXPECT_THAT(faults(wrong, judged(wrong)), Contains(HasSubstr("refuted though true")));
  EXPECT_THAT(faults(wrong, judged(wrong)), Contains(HasSubstr("computes different outputs")));
  const Entry right =
      entry_of("reals", "source (x: f32[n]) { return add(x, x) } target { return mul(x, 2.0) }");
  EXPECT_THAT(faults(right, judged(right)), Contains("rule: proved though false"));
  EXPECT_THAT(faults(right, judged(right)), Contains(HasSubstr("nothing shows that it is false")));
}

TEST(Judgement, AnAssumptionHasToBeNamed) {
  View proved = view("rule", "proved");
  EXPECT_THAT(faults(any_entry("rounding"), {.views = {proved}}),
              ElementsAre(HasSubstr("proved without the assumption rounding")));
  proved.assumptions = {"domain"};
  EXPECT_FALSE(is_decided(any_entry("rounding"), {.views = {proved}}));
  proved.assumptions = {"rounding", "domain"};
  EXPECT_TRUE(is_decided(any_entry("rounding"), {.views = {proved}}));
}

TEST(Judgement, TheOrderOfModelsMustNotCount) {
  EXPECT_THAT(faults(any_entry("reals"),
                     {.views = {view("models", "refuted"), view("models reversed", "unknown")}}),
              ElementsAre("refuted, in the other order unknown"));
}

TEST(Judgement, ACounterexampleHasToReplay) {
  View refuted = view("rule", "refuted");
  refuted.replayed = false;
  EXPECT_THAT(faults(any_entry("reals"), {.views = {refuted}, .difference = "found"}),
              ElementsAre(HasSubstr("shows nothing")));
}

TEST(Judgement, AnEntryHasToBeQuick) {
  View refuted = view("rule", "refuted");
  refuted.seconds = kMostSeconds + 1;
  EXPECT_THAT(faults(any_entry("reals"), {.views = {refuted}}), ElementsAre("rule: 31.0 s"));
}

TEST(Judgement, AnUnknownVerdictIsNoFaultButDoesNotDecide) {
  const Judgement unknown{.views = {view("rule", "unknown")}};
  EXPECT_THAT(faults(any_entry("reals"), unknown), IsEmpty());
  EXPECT_FALSE(is_decided(any_entry("reals"), unknown));
  EXPECT_FALSE(is_decided(any_entry("true"), unknown));
  EXPECT_TRUE(is_decided(any_entry("wrap-around"), unknown));
}

TEST(Evaluation, FindsADifferenceOfNegativeIntegers) {
  const Entry entry = entry_of(
      "reals", "source (x: i64[n]) { return mod(x, 5) } target { return mod(x, 5) {fmod=1} }");
  const auto& rule = std::get<rules::Rule>(entry.pair);
  EXPECT_TRUE(find_difference(rule.source, rule.target, {}));
  EXPECT_FALSE(find_difference(rule.source, rule.source, {}));
}

TEST(Evaluation, ProofsClaimNothingAboutWhatIsNotFinite) {
  // x^0.5 of a negative number is NaN, from which a finite output is computed.
  const Entry entry = entry_of("non-finite",
                               "source (x: f32[n]) { return is_nan(pow(x, 0.5)) }"
                               " target { return is_nan(x) }");
  const auto& rule = std::get<rules::Rule>(entry.pair);
  EXPECT_TRUE(find_difference(rule.source, rule.target, {}));
  EXPECT_FALSE(find_difference(rule.source, rule.target, {.closeness = Closeness::FiniteReals}));
  const Entry other = any_entry("reals");
  const auto& wrong = std::get<rules::Rule>(other.pair);
  EXPECT_TRUE(find_difference(wrong.source, wrong.target, {.closeness = Closeness::FiniteReals}));
}

}  // namespace
}  // namespace tessera::testing
