#include "tessera/tile/gpu/tile_pipelines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/tile/gpu/block_program_text.h"
#include "tessera/tile/gpu/schedule.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;
using ::testing::HasSubstr;

/// Attention without a maximum, whose second matmul is one tile of keys late.
constexpr const char* kOverlapped =
    R"(kernel attention(q: view f16[512, 64], k: view f16[512, 64], v: view f16[512, 64], out: view f16[512, 64]) block(warps = 8, producers = tma) {{
  row = mul(pid(), 128)
  x: f16[128, 64] = vload(q, row, 0)
  k0: f16[128, 64] = vload(k, 0, 0)
  s0 = dot(x, permute(k0) {{order = [1, 0]}}: f16[64, 128], 0.0: f32[128, 128])
  (o, p) = for (i = 128 to {0} step 128, sum: f32[128, 64] = 0.0, w: f16[128, 128] = cast(exp(s0)): f16[128, 128]) {{
    keys: f16[128, 64] = vload(k, i, 0)
    s = dot(x, permute(keys) {{order = [1, 0]}}: f16[64, 128], 0.0: f32[128, 128])
    values: f16[128, 64] = vload(v, sub(i, 128), 0)
    more = dot(w, values, sum)
    next: f16[128, 128] = cast(exp(s))
    {1}
    yield(mul(more, more), next)
  }}
  last: f16[128, 64] = vload(v, 384, 0)
  vstore(out, row, 0, cast(dot(p, last, o)): f16[128, 64])
}})";

std::string overlapped(const char* end = "512", const char* more = "") {
  return fmt::format(kOverlapped, end, more);
}
const Options kPipelineOptions = {.persistent = true, .maps = true};

std::string scheduled_or_reason(const std::string& text) {
  const auto made = schedule(parsed_kernel(text), kPipelineOptions);
  if (!made) return to_string(made.error());
  const std::string printed = to_text((*made)->program);
  const auto parsed = parse_block_program(printed);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  if (parsed) {
    EXPECT_EQ(to_text(*parsed), printed);
  }
  return printed;
}

/// Names of these instructions, in order.
std::vector<std::string> pipeline_names_of(const std::string& text) {
  const std::vector<std::string> wanted = {
      "fill_tile", "await_tile",  "release_tile", "await_matmul_turn", "signal_matmul_turn",
      "matmul",    "wait_matmul", "for",          "store_view"};
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string name = line.substr(begin, line.find('(') - begin);
    if (std::ranges::count(wanted, name) != 0) names.push_back(name);
    at = end + 1;
  }
  return names;
}

TEST(TilePipelines, ProducersCopyTheTilesOfAllMatmulsInTheOrderOfTheProgram) {
  const std::string text = scheduled_or_reason(overlapped());
  EXPECT_EQ(pipeline_names_of(text),
            (std::vector<std::string>{
                // producers: queries, the first keys; in the loop keys and values; the last values
                "fill_tile", "fill_tile", "for", "fill_tile", "fill_tile", "fill_tile",
                // consumers
                "await_tile", "await_tile", "await_matmul_turn", "matmul", "signal_matmul_turn",
                "wait_matmul", "release_tile", "for", "await_tile", "await_matmul_turn", "matmul",
                "await_tile", "matmul", "signal_matmul_turn",
                // keys are released while the other matmul is in flight
                "wait_matmul", "release_tile", "wait_matmul", "release_tile",
                // queries, after the last loop that reads them
                "release_tile", "await_tile", "await_matmul_turn", "matmul", "signal_matmul_turn",
                "wait_matmul", "release_tile", "store_view"}))
      << text;
  EXPECT_THAT(text, HasSubstr("is_early = true"));
  EXPECT_THAT(text, HasSubstr("pending = 1"));
}

TEST(TilePipelines, AreOneForEachViewWithAsManyStagesAsFit) {
  const auto made = schedule(parsed_kernel(overlapped()), kPipelineOptions);
  ASSERT_TRUE(made) << to_string(made.error());
  const TilePipelines& found = *(*made)->tile_pipelines;
  ASSERT_EQ(found.pipelines.size(), 3U);
  EXPECT_EQ(found.maps.size(), 3U);
  EXPECT_EQ(found.pipelines[0].count, 1);  // queries are loaded once
  EXPECT_EQ(found.pipelines[1].count, 4);
  EXPECT_EQ(found.pipelines[2].count, 4);

  TilePipelines fewer = found;
  const std::int64_t stage = found.pipelines[0].stage_bytes();
  choose_stages(fewer, 4, 6 * stage);
  EXPECT_EQ(fewer.pipelines[1].count, 2);
  EXPECT_EQ(fewer.pipelines[2].count, 3);  // released last
}

TEST(TilePipelines, NotWhere) {
  EXPECT_THAT(scheduled_or_reason(overlapped("512", "vstore(out, i, 0, values)")),
              HasSubstr("other uses than matmuls"));
  EXPECT_THAT(scheduled_or_reason(overlapped("512", "vstore(out, i, 0, cast(more): f16[128, 64])")),
              HasSubstr("a store comes before a load"));
  // Bounds that are read from memory.
  std::string read = overlapped("n");
  read.replace(read.find("out: view"), 9, "lengths: view i64[1], out: view");
  read.replace(read.find("  row = "), 8,
               "  n = reduce(vload(lengths, 0): i64[1]) {fn = add, axis = 0}\n  row = ");
  EXPECT_THAT(scheduled_or_reason(read), HasSubstr("addresses depend on more"));
}

}  // namespace
}  // namespace tessera::tile::gpu
