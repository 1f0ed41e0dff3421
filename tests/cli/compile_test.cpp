/// compile, run, bench and profile as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tessera/passes/pipeline.h"
#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Outcome;

class CompileCommand : public testing::TesseraCommand {
 protected:
  CompileCommand() {
    folder.write("m.tessera",
                 "graph(x: f32[n, 8]) { w = const f32[8, 4] "
                 "[0.5, -1, 2, 1, 0, 1, -2, 3, 0.25, 1, 1, -1, 2, 2, -3, 1,"
                 " 1, 0, 0, 1, -1, 1, 0.5, 2, 3, 1, 1, 0, 0.125, -1, -1, 1]"
                 "  a = matmul(x, w)  y = relu(a)  return y }");
  }
};

TEST_F(CompileCommand, HelpShowsAnExample) {
  for (const char* command : {"compile", "run", "bench", "profile"}) {
    const Outcome help = tessera({command, "--help"});
    EXPECT_EQ(help.exit_code, kSuccess) << command;
    EXPECT_THAT(help.out, HasSubstr("Example:\n  tessera " + std::string(command)));
  }
}

TEST_F(CompileCommand, ASavedProgramAnswersAsTheModel) {
  const Outcome made = tessera({"compile", "m.tessera", "-o", "m.tsr", "--set", "n=3"});
  ASSERT_EQ(made.exit_code, kSuccess) << made.err;
  ASSERT_EQ(tessera({"run", "m.tsr", "--fill", "sin", "--save", "a"}).exit_code, kSuccess);
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--set", "n=3", "--engine", "reference",
                     "--save", "b"})
                .exit_code,
            kSuccess);
  EXPECT_EQ(folder.read("a/y.npy").size(), folder.read("b/y.npy").size());
  EXPECT_EQ(tessera({"verify", "m.tsr"}).exit_code, kSuccess);
}

TEST_F(CompileCommand, FlagsThatASavedProgramCannotFollowAreSaid) {
  ASSERT_EQ(tessera({"compile", "m.tessera", "-o", "m.tsr", "--set", "n=3"}).exit_code, kSuccess);
  for (const auto& [flag, value] : {std::pair{"--precision", "bf16"}, {"--target", "cuda"}}) {
    const Outcome outcome = tessera({"run", "m.tsr", "--fill", "sin", flag, value});
    EXPECT_EQ(outcome.exit_code, kUsage) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("error[cli-saved-program]")) << flag;
  }
  const Outcome sized = tessera({"run", "m.tsr", "--fill", "sin", "--set", "n=3"});
  EXPECT_EQ(sized.exit_code, kBadInput);
  EXPECT_THAT(sized.err, HasSubstr("error[run-unknown-dimension]"));
}

TEST_F(CompileCommand, CompileSaysWhatItMade) {
  const nlohmann::json object = json({"compile", "m.tessera", "--set", "n=3", "--json"});
  EXPECT_EQ(object["operators"]["matmul"]["original"], 1);
  EXPECT_GE(object["kernels"], 1);
  EXPECT_GT(object["seconds"], 0);
  EXPECT_TRUE(object["interpreted"].empty());
  EXPECT_THAT(folder.files(), ElementsAre("m.tessera"));
}

TEST_F(CompileCommand, TheCacheMakesTheSecondTimeFaster) {
  const std::vector<std::string> command = {"compile", "m.tessera", "--set", "n=3",
                                            "--cache", "cache",     "--json"};
  EXPECT_EQ(json(command)["kernels_from_cache"], 0);
  const nlohmann::json again = json(command);
  EXPECT_EQ(again["kernels_from_cache"], again["kernels"]);
}

TEST_F(CompileCommand, ADimensionWithoutASizeIsAsked) {
  const Outcome asked = tessera({"compile", "m.tessera"});
  EXPECT_EQ(asked.exit_code, kBadInput);
  EXPECT_THAT(asked.err, HasSubstr("--set n=N"));
}

TEST_F(CompileCommand, ExplainNamesPassesAndSteps) {
  const Outcome explained = tessera({"compile", "m.tessera", "--set", "n=3", "--explain"});
  EXPECT_THAT(explained.out, HasSubstr("dce"));
  EXPECT_THAT(explained.out, HasSubstr("step 0"));
  EXPECT_EQ(tessera({"compile", "m.tessera", "--disable-pass", "nonsense"}).exit_code, kUsage);
}

TEST_F(CompileCommand, ExactSkipsThePassesOfTheReals) {
  const auto names = [&](const char* numerics) {
    std::set<std::string> all;
    const nlohmann::json object = json(
        {"compile", "m.tessera", "--set", "n=3", "--numerics", numerics, "--validate", "--json"});
    for (const nlohmann::json& pass : object["passes"]) {
      all.insert(pass["pass"]);
      EXPECT_THAT(std::string(pass["validation"]), ContainsRegex("^(unchanged|proved|unknown: )"));
    }
    return all;
  };
  const std::set<std::string> reals = names("reals"), exact = names("exact");
  for (const passes::PassInfo& pass : passes::pass_list()) {
    const std::string name(pass.name);
    if (pass.target == passes::TargetClass::Gpu) continue;
    EXPECT_TRUE(reals.contains(name)) << name;
    EXPECT_EQ(exact.contains(name), pass.numerics != passes::NumericsClass::Reals) << name;
  }
}

TEST_F(CompileCommand, SizesThatFollowFromComputedConstantsAreKnown) {
  std::string bytes = "3";
  for (int i = 1; i < 100; ++i) bytes += ", 1";
  folder.write("sizes.tessera",
               "graph(x: f32[2, 6]) { w = const u8[100] [" + bytes +
                   "]  s = reduce_max(cast(w) {to=\"f32\"}) {keepdims=0}  "
                   "return relu(expand(x, concat(reshape(cast(s) {to=\"i64\"}, [1]), "
                   "i64[2] [2, 6]) {axis=0})) }");
  for (const char* numerics : {"reals", "exact"}) {
    const Outcome ran = tessera({"run", "sizes.tessera", "--fill", "sin", "--numerics", numerics});
    EXPECT_EQ(ran.exit_code, kSuccess) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("f32[3, 2, 6]"));
  }
  const Outcome costs =
      tessera({"costs", "sizes.tessera", "--validate", "--store", "store.sqlite"});
  EXPECT_EQ(costs.exit_code, kSuccess) << costs.err;
}

TEST_F(CompileCommand, BatchNormalizationOfAVector) {
  folder.write("norm.tessera",
               "graph(x: f32[3]) { return batch_normalization(x, f32[1] [1.0], f32[1] [2.0], "
               "f32[1] [0.5], f32[1] [1.0]) }");
  const Outcome ran = tessera({"run", "norm.tessera", "--fill", "sin"});
  EXPECT_EQ(ran.exit_code, kSuccess) << ran.err;
}

TEST_F(CompileCommand, BenchGivesPercentiles) {
  for (const char* arguments : {"session", "heap", "tensors"}) {
    const nlohmann::json object =
        json({"bench", "m.tessera", "--set", "n=3", "--threads", "1", "--blocks", "2", "--block-ms",
              "1", "--arguments", arguments, "--json"});
    EXPECT_GT(object["p50_ms"], 0);
    EXPECT_GE(object["p90_ms"], object["p50_ms"]);
    EXPECT_GE(object["p99_ms"], object["p90_ms"]);
    EXPECT_FALSE(object.contains("against"));
  }
}

TEST_F(CompileCommand, ProfileWritesATraceForPerfetto) {
  const nlohmann::json object = json({"profile", "m.tessera", "--set", "n=3", "--threads", "1",
                                      "--runs", "3", "-o", "trace.json", "--json"});
  ASSERT_FALSE(object["steps"].empty());
  EXPECT_GT(object["peak_gflops"], 0);
  const nlohmann::json trace = nlohmann::json::parse(folder.read("trace.json"));
  ASSERT_FALSE(trace["traceEvents"].empty());
  EXPECT_EQ(trace["traceEvents"][0]["ph"], "X");
  EXPECT_TRUE(trace["traceEvents"][0].contains("dur"));
}

TEST_F(CompileCommand, ProfileCountsEveryIterationOfALoop) {
  folder.write("lstm.tessera",
               "graph(x: f32[17, 2, 3], w: f32[1, 16, 3], r: f32[1, 16, 4]) {"
               "  y, h, c = lstm(x, w, r) {hidden_size=4}  return y }");
  const nlohmann::json object =
      json({"profile", "lstm.tessera", "--runs", "3", "--threads", "1", "--json"});
  std::set<std::size_t> calls;
  for (const nlohmann::json& step : object["steps"]) calls.insert(step["calls"].get<std::size_t>());
  EXPECT_EQ(calls, (std::set<std::size_t>{1, 17})) << object;
}

}  // namespace
}  // namespace tessera
