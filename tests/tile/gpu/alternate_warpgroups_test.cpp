#include "tessera/tile/gpu/alternate_warpgroups.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tessera/tile/gpu/block_program_text.h"
#include "tessera/tile/gpu/schedule.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;
using ::testing::HasSubstr;
using ::testing::Not;

/// Rows of queries against tiles of 128 keys; `weights` between the two products.
constexpr const char* kAttention =
    R"(kernel attention(q: view f16[?, 64], k: view f16[?, 64], v: view f16[?, 64], out: view f16[?, 64]) {{
  row = mul(pid(), {0})
  x: f16[{0}, 64] = vload(q, row, 0)
  (l, o) = for (i = 0 to dim(k) {{axis = 0}} step 128, before: f32[{0}] = 0.0, sum: f32[{0}, 64] = 0.0) {{
    keys: f16[128, 64] = vload(k, i, 0)
    s = dot({1}, permute(keys) {{order = [1, 0]}}: f16[64, 128], 0.0: f32[{0}, 128])
    {2}
    more = reduce(w) {{fn = add, axis = 1}}
    values: f16[128, 64] = vload(v, i, 0)
    yield(add(before, more), dot(cast(w): f16[{0}, 128], values, sum))
  }}
  vstore(out, row, 0, cast(div(o, broadcast(reshape(l): f32[{0}, 1]): f32[{0}, 64])): f16[{0}, 64])
}})";

std::string attention(int rows = 128, const char* queries = "x",
                      const char* weights = "w = exp(s)") {
  return fmt::format(kAttention, rows, queries, weights);
}

std::string scheduled_text(const std::string& text, const Options& options = {}) {
  const auto made = schedule(parsed_kernel(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  if (!made) return {};
  const std::string printed = to_text((*made)->program);
  const auto parsed = parse_block_program(printed);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  if (parsed) {
    EXPECT_EQ(to_text(*parsed), printed);
  }
  return printed;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The lines of a text that contain one of these, without their arguments.
std::vector<std::string> names_of(const std::string& text, const std::set<std::string>& wanted) {
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string name = line.substr(begin, line.find('(') - begin);
    if (wanted.contains(name)) names.push_back(name);
    at = end + 1;
  }
  return names;
}

TEST(AlternateWarpgroups, OneMultipliesWhileTheOtherComputes) {
  const std::string text = scheduled_text(attention());
  // Copies start before the queries are loaded, which lie in shared memory from then on.
  EXPECT_EQ(names_of(text, {"prefetch_first", "load_view", "hold_operand", "wait_copies", "barrier",
                            "of_warpgroup", "enter_stage", "prefetch_next", "matmul", "wait_matmul",
                            "yield", "for"}),
            (std::vector<std::string>{
                "prefetch_first", "load_view", "hold_operand", "wait_copies", "barrier",
                // the second one begins half an iteration later
                "of_warpgroup", "prefetch_next", "barrier", "for", "enter_stage", "of_warpgroup",
                "prefetch_next", "matmul", "wait_matmul", "of_warpgroup", "wait_copies", "barrier",
                "of_warpgroup", "prefetch_next", "of_warpgroup", "wait_copies", "barrier", "matmul",
                "yield",
                // the first one waits for the second
                "of_warpgroup", "barrier", "wait_matmul", "barrier"}));
  EXPECT_THAT(text, HasSubstr("is_alternating = true"));
  EXPECT_THAT(text, HasSubstr("prefetch_next(loop = #"));
  EXPECT_THAT(text, HasSubstr("further = 1)"));
}

TEST(AlternateWarpgroups, NotWhere) {
  const auto is_left = [](const std::string& text) {
    return text.find("of_warpgroup") == std::string::npos;
  };
  EXPECT_FALSE(is_left(scheduled_text(attention())));
  // One warpgroup.
  EXPECT_TRUE(is_left(scheduled_text(attention(64))));
  // Two stages.
  EXPECT_TRUE(is_left(scheduled_text(attention(), {.stages = 2})));
  // The queries of an iteration.
  EXPECT_TRUE(
      is_left(scheduled_text(attention(128, "mul(x, broadcast(cast(i): f16): f16[128, 64])"))));
  // Queries that are carried from one iteration to the next.
  std::string carried = replaced(attention(128, "y"), "(l, o) =", "(l, o, z) =");
  carried = replaced(carried, "64] = 0.0) {", "64] = 0.0, y: f16[128, 64] = x) {");
  carried = replaced(carried, "values, sum))", "values, sum), add(y, y))");
  EXPECT_TRUE(is_left(scheduled_text(carried)));
  // Accumulators that are carried twice: only one of the copies would be waited for.
  std::string twice = replaced(attention(), "(l, o) =", "(l, o, p) =");
  twice = replaced(twice, "sum: f32[128, 64] = 0.0) {",
                   "sum: f32[128, 64] = 0.0, other: f32[128, 64] = 0.0) {");
  twice = replaced(twice, "yield(add(before, more), dot(cast(w): f16[128, 128], values, sum))",
                   "all = dot(cast(w): f16[128, 128], values, add(sum, other))\n"
                   "    yield(add(before, more), all, all)");
  EXPECT_TRUE(is_left(scheduled_text(twice)));
  // A scan goes through shared memory.
  EXPECT_TRUE(is_left(scheduled_text(attention(128, "x", "w = scan(s) {fn = add, axis = 0}"))));
}

// As tiles of keys that are visible in part have it.
TEST(AlternateWarpgroups, OneMayTakeABranch) {
  const auto text = [](const char* branch) {
    const std::string weights = fmt::format(
        "m = if (lt(i, row)) {{ yield(s) }} else {{ yield({}) }}\n    w = exp(m)", branch);
    return scheduled_text(attention(128, "x", weights.c_str()));
  };
  EXPECT_THAT(text("mul(s, s)"), HasSubstr("of_warpgroup"));
  EXPECT_THAT(text("scan(s) {fn = add, axis = 0}"), Not(HasSubstr("of_warpgroup")));
}

TEST(AlternateWarpgroups, CopiesStartOnceTheNumberOfKeysIsRead) {
  std::string text = replaced(attention(), "out: view", "lengths: view i64[?], out: view");
  text = replaced(text, "row = mul",
                  "n = reduce(vload(lengths, pid()): i64[1]) {fn = add, axis = 0}\n  row = mul");
  text = replaced(text, "to dim(k) {axis = 0}", "to n");
  const std::vector<std::string> names =
      names_of(scheduled_text(text), {"load_view", "reduce_result", "prefetch_first", "for"});
  // The last one is that of the loop.
  EXPECT_EQ(names, (std::vector<std::string>{"load_view", "reduce_result", "load_view",
                                             "prefetch_first", "for", "reduce_result"}));
}

}  // namespace
}  // namespace tessera::tile::gpu
