/// `tessera prove` as a user meets it: the three answers, their exit codes and what comes with
/// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;

class Prove : public testing::TesseraCommand {
 protected:
  static constexpr int kProved = kSuccess, kRefuted = kNegativeResult;

  Prove() {
    folder.write("sum.tessera", "graph(x: f32[2, 3]) { return relu(add(x, x)) }");
    folder.write("twice.tessera", "graph(x: f32[2, 3]) { return relu(mul(2.0, x)) }");
    folder.write("thrice.tessera", "graph(x: f32[2, 3]) { return relu(mul(3.0, x)) }");
    // Equal by a formula for half an angle.
    folder.write("angle.tessera", "graph(x: f32[2, 3]) { return atan(x) }");
    folder.write("half.tessera",
                 "graph(x: f32[2, 3]) { one = const f32[] [1]  two = const f32[] [2]"
                 "  r = sqrt(add(one, mul(x, x)))"
                 "  return mul(two, atan(div(x, add(one, r)))) }");
  }
};

TEST_F(Prove, HelpShowsAnExampleAndTheExitCodes) {
  const Outcome help = tessera({"prove", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Example:\n  tessera prove"));
  EXPECT_THAT(help.out, HasSubstr("0 proved, 1 refuted, 5 unknown"));
}

TEST_F(Prove, SaysWhatIsProved) {
  const Outcome outcome = tessera({"prove", "sum.tessera", "twice.tessera", "--json"});
  EXPECT_EQ(outcome.exit_code, kProved) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["verdict"], "proved");
  ASSERT_EQ(json["assumptions"].size(), 2u);
  EXPECT_EQ(json["assumptions"][0]["kind"], "rounding");
  EXPECT_EQ(json["assumptions"][1]["kind"], "non-finite");
}

TEST_F(Prove, SavesTheInputThatShowsADifference) {
  const Outcome outcome =
      tessera({"prove", "sum.tessera", "thrice.tessera", "--json", "--save-input", "why"});
  EXPECT_EQ(outcome.exit_code, kRefuted) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["verdict"], "refuted");
  EXPECT_EQ(json["counterexample"]["position"].size(), 2u);
  ASSERT_EQ(json["counterexample"]["files"].size(), 1u);
  const std::string file = json["counterexample"]["files"][0];
  EXPECT_EQ(tessera({"run", "sum.tessera", "--input", "x=" + file}).exit_code, 0);
}

TEST_F(Prove, NamesTheFirstValueThatDiffers) {
  folder.write("a.tessera",
               "graph(x: f32[2, 3]) { p = softmax(x) {axis=-1} q = relu(p) return q }");
  folder.write("b.tessera", "graph(x: f32[2, 3]) { p = softmax(x) {axis=0} q = relu(p) return q }");
  const Outcome text = tessera({"prove", "a.tessera", "b.tessera"});
  EXPECT_EQ(text.exit_code, kRefuted) << text.err;
  EXPECT_THAT(text.out, HasSubstr("differs first at p (softmax): axis -1 against 0\n"));
  const auto json =
      nlohmann::json::parse(tessera({"prove", "a.tessera", "b.tessera", "--json"}).out);
  EXPECT_EQ(json["divergence"]["source"]["operator"], "softmax");
  EXPECT_EQ(json["divergence"]["changes"][0], "axis -1 against 0");
  EXPECT_THAT(json["divergence"]["target"]["subgraph"], HasSubstr("axis=0"));
}

TEST_F(Prove, NamesAChangedWeight) {
  folder.write(
      "a.tessera",
      "graph(x: f32[2, 2]) { w = const f32[2, 2] [1, 2, 3, 4] y = matmul(x, w) return y }");
  folder.write(
      "b.tessera",
      "graph(x: f32[2, 2]) { w = const f32[2, 2] [1, 2, 5, 4] y = matmul(x, w) return y }");
  const auto json =
      nlohmann::json::parse(tessera({"prove", "a.tessera", "b.tessera", "--json"}).out);
  EXPECT_EQ(json["divergence"]["weight"]["source"], "w");
  EXPECT_EQ(json["divergence"]["weight"]["position"], (std::vector<int>{1, 0}));
  EXPECT_EQ(json["divergence"]["weight"]["target_element"], 5.0);
}

TEST_F(Prove, WithoutAnAnswerInTimeTheAnswerIsNotKnown) {
  const Outcome outcome =
      tessera({"prove", "angle.tessera", "half.tessera", "--json", "--time-limit", "1ms"});
  EXPECT_EQ(outcome.exit_code, kUnknown) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_NE(json["why"], "");
}

TEST_F(Prove, ShowsThePairThatItCannotRelate) {
  const Outcome outcome =
      tessera({"prove", "angle.tessera", "half.tessera", "--json", "--picture", "pair.dot"});
  EXPECT_EQ(outcome.exit_code, kUnknown) << outcome.out << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_THAT(json["unrelated"]["source"], HasSubstr("atan"));
  EXPECT_THAT(folder.read("pair.dot"), HasSubstr("digraph"));
}

TEST_F(Prove, AnswersWithinTheTimeLimit) {
  const Outcome outcome = tessera({"prove", "sum.tessera", "twice.tessera", "--time-limit", "20s"});
  EXPECT_EQ(outcome.exit_code, kProved);
  EXPECT_THAT(outcome.out, HasSubstr("proved over the reals in"));
}

}  // namespace
}  // namespace tessera
