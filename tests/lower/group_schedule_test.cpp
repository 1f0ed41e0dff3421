#include "tessera/lower/group_schedule.h"

#include <gtest/gtest.h>

#include "tessera/support/rng.h"
#include "tessera/tile/fingerprint.h"
#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

/// One group for every strategy that has schedules.
const std::vector<GroupCase>& cases() {
  static const std::vector<GroupCase> all = {
      {.name = "matmul with packed weights",
       .inputs = {f32("a", {37, 50}), f32("w", {50, 70})},
       .definitions = {"define(a: f32[37, 50], w: f32[50, 70]) { out: f32[i: 37, j: 70] = "
                       "max((sum(k: 50) { a[i, k] * w[k, j] }), 0.0) }"},
       .weights = {"w"}},
      {.name = "matmul of two activations",
       .inputs = {f32("a", {3, 9, 16}), f32("b", {3, 16, 21})},
       .definitions = {"define(a: f32[3, 9, 16], b: f32[3, 16, 21]) { out: f32[n: 3, i: 9, j: 21] "
                       "= sum(k: 16) { a[n, i, k] * b[n, k, j] } }"}},
      {.name = "convolution 3x3",
       .inputs = {f32("a", {1, 13, 12, 16}), f32("w", {24, 16, 3, 3})},
       .definitions = {"define(a: f32[1, 13, 12, 16], w: f32[24, 16, 3, 3]) { out: f32[n: 1, y: "
                       "13, x: 12, f: 24] = sum(c: 16, r: 3, s: 3) { (a[n, y + r - 1, x + s - 1, "
                       "c] else 0.0) * w[f, c, r, s] } }"},
       .weights = {"w"}},
      {.name = "depthwise convolution",
       .inputs = {f32("a", {1, 9, 11, 40}), f32("w", {40, 3, 3})},
       .definitions = {"define(a: f32[1, 9, 11, 40], w: f32[40, 3, 3]) { out: f32[n: 1, y: 9, x: "
                       "11, c: 40] = sum(r: 3, s: 3) { (a[n, y + r - 1, x + s - 1, c] else 0.0) * "
                       "w[c, r, s] } }"},
       .weights = {"w"}},
      {.name = "softmax",
       .inputs = {f32("x", {30, 70})},
       .definitions = {"define(x: f32[30, 70]) { m: f32[i: 30] = max_of(j: 70) x[i, j] }",
                       "define(x: f32[30, 70], m: f32[30]) { s: f32[i: 30] = sum(j: 70) exp(x[i, "
                       "j] - m[i]) }",
                       "define(x: f32[30, 70], m: f32[30], s: f32[30]) { out: f32[i: 30, j: 70] = "
                       "exp(x[i, j] - m[i]) / s[i] }"}},
      {.name = "elementwise",
       .inputs = {f32("x", {33, 77}), f32("y", {77})},
       .definitions = {"define(x: f32[33, 77], y: f32[77]) { out: f32[i: 33, j: 77] = x[i, j] * "
                       "y[j] }"}},
  };
  return all;
}

Group case_group(const GroupCase& c) {
  return {staged(c.inputs, c.definitions), c.results, c.weights};
}

/// Name of the strategy of a schedule: the first word of its text.
std::string strategy_name(const GroupSchedule& schedule) {
  const std::string text = to_text(schedule);
  return text.substr(0, text.find(' '));
}

Expected<Attempt> lower_any(const Group& group, const machine::Machine& machine,
                            const GroupOptions& options) {
  TESSERA_TRY(GroupCode code, lower_group(group, machine, options));
  return Attempt(std::move(code));
}

TEST(GroupSchedules, EveryCandidateIsPrintedAndParsedBack) {
  std::set<std::string> strategies;
  for (const GroupCase& c : cases())
    for (const ScheduleCandidate& one : schedule_space(case_group(c), machine::host(), {})) {
      const std::string text = to_text(one.schedule);
      const auto parsed = parse_group_schedule(text);
      ASSERT_TRUE(parsed) << text << "\n" << to_string(parsed.error());
      EXPECT_EQ(*parsed, one.schedule) << text;
      strategies.insert(strategy_name(one.schedule));
    }
  EXPECT_EQ(strategies, (std::set<std::string>{"contraction", "loops", "rows", "winograd"}));
}

TEST(GroupSchedules, CandidatesDiffer) {
  for (const GroupCase& c : cases()) {
    std::set<std::string> texts;
    for (const ScheduleCandidate& one : schedule_space(case_group(c), machine::host(), {}))
      EXPECT_TRUE(texts.insert(to_text(one.schedule)).second) << to_text(one.schedule);
  }
}

TEST(GroupSchedules, TheDefaultIsAPointOfTheSpace) {
  for (const GroupCase& c : cases()) {
    const auto code = lower_group(case_group(c), machine::host());
    ASSERT_TRUE(code && code->schedule) << c.name;
    const auto space = schedule_space(case_group(c), machine::host(), {});
    EXPECT_TRUE(std::ranges::count(space, *code->schedule, &ScheduleCandidate::schedule) == 1)
        << c.name << ": " << to_text(*code->schedule);
  }
}

TEST(GroupSchedules, GivenDefaultsLowerToTheSameKernels) {
  for (const GroupCase& c : cases()) {
    const auto code = lower_group(case_group(c), machine::host());
    ASSERT_TRUE(code) << c.name;
    const auto again = lower_group(case_group(c), machine::host(), {.schedule = code->schedule});
    ASSERT_TRUE(again) << c.name << to_string(again.error());
    EXPECT_EQ(again->schedule, code->schedule);
    ASSERT_EQ(again->kernels.size(), code->kernels.size());
    for (std::size_t i = 0; i < code->kernels.size(); ++i) {
      EXPECT_EQ(tile::fingerprint(again->kernels[i].kernel),
                tile::fingerprint(code->kernels[i].kernel));
      EXPECT_EQ(again->kernels[i].grid, code->kernels[i].grid);
    }
  }
}

/// A sample of every space computes what the definition says.
TEST(GroupSchedules, CandidatesComputeTheDefinition) {
  Rng rng(5);
  for (const GroupCase& c : cases()) {
    const auto space = schedule_space(case_group(c), machine::host(), {});
    ASSERT_GT(space.size(), 1u) << c.name;
    for (int i = 0; i < 5; ++i) {
      const ScheduleCandidate& one = space[rng.below(space.size())];
      SCOPED_TRACE(to_text(one.schedule));
      EXPECT_TRUE(expect_group(c, lower_any, 1e-4, {.schedule = one.schedule}));
    }
  }
}

TEST(GroupSchedules, IllegalPointsAreDiagnosed) {
  const std::vector<std::pair<std::size_t, std::string>> illegal = {
      {0, "contraction rows=0 columns=32 sums=50 panel=32 columns_outer=0"},
      {0, "contraction rows=8 columns=33 sums=50 panel=16 columns_outer=0"},
      {0, "contraction rows=8 columns=64 sums=7 panel=32 columns_outer=0"},
      {0, "contraction rows=8 columns=70 sums=50 panel=3 columns_outer=0"},
      {0, "contraction rows=8,1 columns=70 sums=50 panel=32 columns_outer=0"},
      {0, "winograd m=4 block=1,1,1,1 filters=32 panel=16 programs=1"},
      {2, "winograd m=3 block=1,1,1,1 filters=32 panel=16 programs=1"},
      {2, "winograd m=4 block=1,1,99,1 filters=32 panel=16 programs=1"},
      {2, "winograd m=4 block=1,1,1,1 filters=32 panel=16 programs=9"},
      {4, "rows blocks=5,7"},
      {4, "rows blocks=5"},
      {4, "loops"},
      {5, "loops vectorize(nothing)"},
      {5, "attention_tile rows=4 keys=0"},
  };
  for (const auto& [index, text] : illegal) {
    const auto schedule = parse_group_schedule(text);
    ASSERT_TRUE(schedule) << text << to_string(schedule.error());
    const auto code =
        lower_group(case_group(cases()[index]), machine::host(), {.schedule = *schedule});
    ASSERT_FALSE(code) << text;
    EXPECT_EQ(code.error().id, "schedule-illegal") << text;
  }
}

TEST(GroupSchedules, BadTextIsDiagnosed) {
  for (const std::string text :
       {"", "contraction", "contraction rows=1 columns=2 sums=3 panel=4", "nothing rows=1",
        "attention_tile rows=1 keys=2 more", "attention rows= keys=1", "attention rows=-1 keys=1",
        "attention_tile keys=1 rows=1", "rows blocks=99999999999999999", "loops split(",
        "loops split"}) {
    const auto schedule = parse_group_schedule(text);
    EXPECT_FALSE(schedule) << text;
  }
}

TEST(GroupSchedules, ExactSpacesKeepTheOrderOfAdditions) {
  for (const GroupCase& c : cases()) {
    const auto code = lower_group(case_group(c), machine::host(), {.exact = true});
    ASSERT_TRUE(code) << c.name;
    for (const ScheduleCandidate& one :
         schedule_space(case_group(c), machine::host(), {.exact = true})) {
      EXPECT_NE(strategy_name(one.schedule), "winograd");
      const auto* now = std::get_if<ContractionSchedule>(&one.schedule);
      const auto* usual = std::get_if<ContractionSchedule>(&*code->schedule);
      if (now != nullptr && usual != nullptr) {
        EXPECT_EQ(now->sums, usual->sums);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::lower
