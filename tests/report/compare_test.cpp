#include "tessera/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::report {
namespace {

using ::testing::ElementsAre;

struct Entry {
  std::vector<std::string> names;
  double ms = 0;
};

/// Log whose original nodes are matmuls.
EventLog log_of(const std::vector<Entry>& steps) {
  EventLog log("profile");
  std::int64_t id = 0;
  for (const Entry& entry : steps) {
    for (const std::string& name : entry.names)
      log.add(Node{.graph = "original", .name = name, .op = "matmul"});
    log.add(Step{.id = id, .what = "matmul", .names = entry.names});
    log.add(StepTime{.step = id, .ms = entry.ms});
    ++id;
  }
  return log;
}

TEST(Compare, SortsByTheTimeThatWasWonOrLost) {
  const auto differences = compare(log_of({{{"a"}, 1}, {{"b"}, 5}, {{"c"}, 2}}),
                                   log_of({{{"a"}, 1}, {{"b"}, 1}, {{"c"}, 4}}));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_THAT(differences[0].names, ElementsAre("b"));
  EXPECT_THAT(differences[1].names, ElementsAre("c"));
  EXPECT_EQ(differences[1].a_ms, 2);
  EXPECT_EQ(differences[1].b_ms, 4);
  EXPECT_THAT(differences[2].names, ElementsAre("a"));
}

TEST(Compare, ComparesMergedNodesWithTheirParts) {
  const auto differences =
      compare(log_of({{{"q"}, 1}, {{"k"}, 2}, {{"v"}, 3}}), log_of({{{"q", "k", "v"}, 4}}));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].a_ms, 6);
  EXPECT_EQ(differences[0].b_ms, 4);
}

TEST(Compare, KeepsWhatOnlyOneOfThemHas) {
  const auto differences = compare(log_of({{{"a"}, 1}}), log_of({{{"z"}, 2}}));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].a_ms, 0);
  EXPECT_EQ(differences[1].b_ms, 0);
}

TEST(Compare, FindsTheNodesOfASavedProgramByTheValuesThatItComputes) {
  EventLog compiled("compile"), saved("report");
  compiled.add(Node{
      .graph = "original", .id = 0, .name = "Conv_0", .op = "conv", .results = {{"c", "f32"}}});
  compiled.add(Node{
      .graph = "original", .id = 1, .name = "Relu_1", .op = "relu", .results = {{"r", "f32"}}});
  compiled.add(Step{.id = 0, .what = "conv+relu", .names = {"Conv_0", "Relu_1"}});
  compiled.add(StepTime{.step = 0, .ms = 2});
  saved.add(Step{.id = 0, .what = "conv+relu", .names = {"r"}});
  saved.add(StepTime{.step = 0, .ms = 3});
  for (const bool swapped : {false, true}) {
    const auto differences = swapped ? compare(saved, compiled) : compare(compiled, saved);
    ASSERT_EQ(differences.size(), 1u);
    EXPECT_EQ(differences[0].a_ms, swapped ? 3 : 2);
    EXPECT_EQ(differences[0].b_ms, swapped ? 2 : 3);
    EXPECT_THAT(differences[0].names, ElementsAre("Conv_0"));
  }
}

TEST(Compare, LosesNoTime) {
  const EventLog a = log_of({{{"a", "b"}, 1}, {{"c"}, 2}, {{}, 4}});
  const EventLog b = log_of({{{"b", "c"}, 8}, {{"d"}, 16}});
  double first = 0, second = 0;
  for (const Difference& entry : compare(a, b)) first += entry.a_ms, second += entry.b_ms;
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, 24);
}

}  // namespace
}  // namespace tessera::report
