#include "tessera/tile/gpu/programmatic_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tessera/tile/gpu/block_program_text.h"
#include "tessera/tile/gpu/schedule.h"
#include "tests/tile/passes/pass_check.h"

// Text in, text out: where the program of a block awaits the grids before its own.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLayer =
    R"(kernel product(a: view f16[?, ?], b: view f16[?, 256], c: view f16[?, 256]) {
  row = mul(pid(), 64)
  sum = for (k = 0 to dim(a) {axis = 1} step 32, acc: f32[64, 64] = 0.0) {
    x: f16[64, 32] = vload(a, row, k)
    y: f16[32, 64] = vload(b, k, 0)
    yield(dot(x, y, acc))
  }
  vstore(c, row, 0, cast(sum): f16[64, 64])
})";

std::string dependent_program(const char* text, const Options& options) {
  const auto made = schedule(parsed_kernel(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  if (!made) return {};
  std::string printed = to_text((*made)->program);
  const auto parsed = parse_block_program(printed);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  if (parsed) {
    EXPECT_EQ(to_text(*parsed), printed);
  }
  return printed;
}

/// Names of the instructions that these bodies begin with, without arithmetic.
std::vector<std::string> instructions(const std::string& text, const std::string& from,
                                      std::size_t count) {
  std::istringstream lines(text.substr(text.find(from)));
  std::vector<std::string> names;
  std::string line;
  std::getline(lines, line);
  while (names.size() < count && std::getline(lines, line)) {
    const std::size_t begin = line.find_first_not_of(" }");
    const std::string name =
        begin == std::string::npos ? "" : line.substr(begin, line.find('(') - begin);
    if (name != "compute" && !name.starts_with("layout")) names.push_back(name);
  }
  return names;
}

TEST(ProgrammaticLaunch, ConstantsAreCopiedBeforeOtherGridsAreAwaited) {
  const std::string text =
      dependent_program(kLayer, {.programmatic_launch = true, .constants = {false, true, false}});
  EXPECT_THAT(instructions(text, "block_program", 5),
              ElementsAre("launch_dependents", "prefetch_constants", "await_grids",
                          "prefetch_first", "for"));
  // Both name the load of b.
  const std::size_t started = text.find("loads = [#"), left = text.find("constants = [#");
  ASSERT_NE(started, std::string::npos) << text;
  ASSERT_NE(left, std::string::npos) << text;
  EXPECT_EQ(text.substr(started + 9, 3), text.substr(left + 13, 3));
}

TEST(ProgrammaticLaunch, WhatAGridMayWriteIsAwaited) {
  EXPECT_THAT(
      instructions(dependent_program(kLayer, {.programmatic_launch = true}), "block_program", 4),
      ElementsAre("launch_dependents", "await_grids", "prefetch_first", "for"));
  constexpr const char* kRow = R"(kernel row(x: view f16[?, 512], out: view f16[?, 512]) {
    t: f16[1, 512] = vload(x, pid(), 0)
    vstore(out, pid(), 0, add(t, t))
  })";
  EXPECT_THAT(
      instructions(dependent_program(kRow, {.programmatic_launch = true, .constants = {true}}),
                   "block_program", 3),
      ElementsAre("launch_dependents", "await_grids", "address_view"));
}

TEST(ProgrammaticLaunch, ProducersFillStagesWithConstantsFirst) {
  const Options options = {.persistent = true,
                           .maps = true,
                           .programmatic_launch = true,
                           .constants = {false, true, false}};
  const std::string text = dependent_program(kLayer, options);
  EXPECT_THAT(instructions(text, "start = {", 1), ElementsAre("launch_dependents"));
  EXPECT_THAT(instructions(text, "producer_start = {", 1), ElementsAre("fill_constants"));
  EXPECT_THAT(instructions(text, "producer = {", 2), ElementsAre("await_grids", "fill_stages"));
  EXPECT_THAT(instructions(text, "consumer = {", 1), ElementsAre("await_grids"));
  EXPECT_THAT(text, HasSubstr("fill_stages(constants = [#"));

  Options without = options;
  without.constants = {};
  const std::string awaited = dependent_program(kLayer, without);
  EXPECT_THAT(awaited, Not(HasSubstr("fill_constants")));
  EXPECT_THAT(instructions(awaited, "producer = {", 2), ElementsAre("await_grids", "fill_stages"));
}

TEST(ProgrammaticLaunch, OnlyWhereTheLauncherSupportsIt) {
  EXPECT_THAT(dependent_program(kLayer, {}), Not(HasSubstr("await_grids")));
}

}  // namespace
}  // namespace tessera::tile::gpu
