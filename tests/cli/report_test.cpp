/// Reports of the command line: pages, event logs, comparisons.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using Report = testing::TesseraCommand;

constexpr const char* kModel =
    "graph net(x: f32[8, 64], w: f32[64, 64]) {"
    "  a = matmul(x, w)  b = mul(a, 2.0)  c = mul(b, 3.0)  y = relu(c)  return y }";

std::vector<nlohmann::json> events_of(const std::string& lines) {
  std::vector<nlohmann::json> events;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

std::set<std::string> kinds_of(const std::string& lines) {
  std::set<std::string> kinds;
  for (const nlohmann::json& event : events_of(lines)) kinds.insert(event["event"]);
  return kinds;
}

TEST_F(Report, EveryCommandThatMakesSomethingWritesOne) {
  folder.write("m.tessera", kModel);
  const std::vector<std::pair<std::vector<std::string>, std::set<std::string>>> commands = {
      {{"compile", "m.tessera", "--cache", "none"}, {"step", "kernel", "value", "rewrite", "node"}},
      {{"profile", "m.tessera", "--runs", "3", "--cache", "none"}, {"step_time", "run", "span"}},
      {{"bench", "m.tessera", "--blocks", "2", "--block-ms", "5", "--cache", "none"},
       {"benchmark", "step_time"}},
      {{"optimize", "m.tessera", "out.tessera"}, {"pass", "rewrite", "node"}},
      {{"prove", "m.tessera", "m.tessera"}, {"proof"}},
  };
  for (auto [command, expected] : commands) {
    command.insert(command.end(), {"--report", "page.html", "--events", "events.jsonl"});
    const Outcome outcome = tessera(command);
    ASSERT_EQ(outcome.exit_code, kSuccess) << command[0] << outcome.err;
    EXPECT_THAT(folder.read("page.html"), HasSubstr("</html>")) << command[0];
    const std::set<std::string> kinds = kinds_of(folder.read("events.jsonl"));
    for (const std::string& kind : expected)
      EXPECT_TRUE(kinds.contains(kind)) << command[0] << ": " << kind;
  }
}

TEST_F(Report, IsMadeOfModelsProgramsLogsAndPages) {
  folder.write("m.tessera", kModel);
  ASSERT_EQ(tessera({"compile", "m.tessera", "-o", "m.tsr", "--cache", "none"}).exit_code,
            kSuccess);
  for (const char* from : {"m.tessera", "m.tsr", "events.jsonl", "page.html"}) {
    const Outcome outcome = tessera({"report", from, "-o", "page.html", "--events", "events.jsonl",
                                     "--runs", "3", "--cache", "none"});
    ASSERT_EQ(outcome.exit_code, kSuccess) << from << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("ms  a run")) << from;
    EXPECT_TRUE(kinds_of(folder.read("events.jsonl")).contains("step_time")) << from;
  }
}

TEST_F(Report, ComparesTwo) {
  folder.write("m.tessera", kModel);
  for (const auto& [file, flag] : {std::pair("a.jsonl", "f32"), std::pair("b.jsonl", "bf16")})
    ASSERT_EQ(tessera({"profile", "m.tessera", "--runs", "3", "--precision", flag, "--events", file,
                       "--cache", "none"})
                  .exit_code,
              kSuccess);
  const auto object = json({"report", "a.jsonl", "b.jsonl", "-o", "page.html", "--json"});
  ASSERT_FALSE(object["differences"].empty());
  EXPECT_GT(object["differences"][0]["a_ms"].get<double>(), 0);
  EXPECT_THAT(folder.read("page.html"), HasSubstr("id=\"other-events\""));
  EXPECT_THAT(tessera({"report", "a.jsonl", "b.jsonl"}).out, HasSubstr("all steps"));
}

TEST_F(Report, TellsTheFirstDifferenceOfARefutation) {
  folder.write("a.tessera", "graph(x: f32[4]) { a = relu(x)  y = exp(a)  return y }");
  folder.write("b.tessera", "graph(x: f32[4]) { a = abs(x)  y = exp(a)  return y }");
  const Outcome outcome = tessera({"prove", "a.tessera", "b.tessera", "--events", "events.jsonl"});
  EXPECT_EQ(outcome.exit_code, kNegativeResult);
  for (const nlohmann::json& event : events_of(folder.read("events.jsonl"))) {
    if (event["event"] != "proof") continue;
    EXPECT_EQ(event["verdict"], "refuted");
    EXPECT_THAT(event["source_graph"], HasSubstr("relu"));
    EXPECT_THAT(event["target_graph"], HasSubstr("abs"));
    EXPECT_NE(event["source_value"], event["target_value"]);
  }
}

TEST_F(Report, AsksForNothingThatIsNotThere) {
  EXPECT_EQ(tessera({"report"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"report", "missing.jsonl"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"report", "missing.tsr"}).exit_code, kBadInput);
  folder.write("m.tessera", kModel);
  EXPECT_EQ(tessera({"compile", "m.tessera", "--report", "no/such/folder/page.html"}).exit_code,
            kBadInput);
}

}  // namespace
}  // namespace tessera
