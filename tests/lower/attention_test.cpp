#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/lower/group.h"
#include "tessera/lower/product_dtype.h"
#include "tests/lower/run_stages.h"

namespace tessera::lower {
namespace {

/// Attention with its axes called by letters: batch b, heads h, queries i, keys j, d of the first
/// product and e of the second.
struct AttentionCase {
  std::string name;
  std::map<char, std::int64_t> size;
  std::string q = "bhid", k = "bhjd", v = "bhje", out = "bhie";  // orders of axes
  std::string score = "S * 0.125";                               // of S, the product
  std::vector<Operand> more = {};                                // what the score reads as well
  std::string weight = "exp(s[b,h,i,j] - m[b,h,i]) / t[b,h,i]";
  std::string product = "Q * K";
  DType dtype = DType::F32;  // of all tensors but those of `more`
};

std::string listed(const std::string& letters, const std::string& prefix) {
  std::string text;
  for (const char c : letters) text += (text.empty() ? "" : ", ") + prefix + c;
  return text;
}

std::string replaced(std::string text, char letter, const std::string& by) {
  const auto at = text.find(letter);
  return at == std::string::npos ? text : text.replace(at, 1, by);
}

std::vector<Operand> inputs_of(const AttentionCase& c) {
  std::vector<Operand> inputs = c.more;
  for (const auto& [name, axes] : {std::pair("q", c.q), {"k", c.k}, {"v", c.v}}) {
    Shape shape;
    for (const char axis : axes) shape.push_back(c.size.at(axis));
    inputs.push_back({name, c.dtype, shape});
  }
  return inputs;
}

std::string read(const std::string& name, const std::string& axes) {
  return fmt::format("{}[{}]", name, listed(axes, ""));
}

Group attention_group(const AttentionCase& c) {
  std::string more;
  for (const Operand& operand : c.more) {
    std::string shape;
    for (const Dim& dim : operand.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(*dim.constant());
    more += fmt::format(", {}: {}[{}]", operand.name, to_string(operand.dtype), shape);
  }
  const std::string_view dtype = to_string(c.dtype);
  const auto operand_text = [&](const std::string& name, const std::string& axes) {
    return fmt::format("{}: {}[{}]", name, dtype, listed(axes, "#"));
  };
  const std::string product =
      replaced(replaced(c.product, 'Q', read("q", c.q)), 'K', read("k", c.k));
  const std::string s = operand_text("s", "bhij"), m = operand_text("m", "bhi"),
                    t = operand_text("t", "bhi");
  Group group{.results = {"out"}};
  group.stages = staged(
      inputs_of(c),
      {fmt::format("define({}, {}{}) {{ s: {}[b, h, i, j] = {} }}", operand_text("q", c.q),
                   operand_text("k", c.k), more, dtype,
                   replaced(c.score, 'S', fmt::format("(sum(d) {{ {} }})", product))),
       fmt::format("define({}) {{ m: {}[b, h, i] = max_of(j) s[b, h, i, j] }}", s, dtype),
       fmt::format("define({}, {}) {{ t: {}[b, h, i] = sum(j) exp(s[b, h, i, j] - m[b, h, i]) }}",
                   s, m, dtype),
       fmt::format("define({}, {}, {}, {}) {{ out: {}[{}] = sum(j) {{ ({}) * {} }} }}", s, m, t,
                   operand_text("v", c.v), dtype, listed(c.out, ""), c.weight, read("v", c.v))});
  auto stages = inlined(group.stages, group.results);
  EXPECT_TRUE(stages);
  if (stages) group.stages = *std::move(stages);
  return group;
}

Tensor run(const Group& group, const Tensors& tensors, const GroupOptions& options, By by) {
  const auto code = lower_attention(group, machine::host(), options);
  EXPECT_TRUE(code && *code) << "not taken for attention";
  if (!code || !*code) return {};
  EXPECT_EQ((*code)->kernels.size(), 1U);
  const auto found = by_kernels(group.stages, (*code)->kernels, tensors, by);
  EXPECT_TRUE(found) << to_string(found.error());
  return found ? found->at("out") : Tensor{};
}

void expect_right(const AttentionCase& c, const GroupOptions& options = {},
                  By by = By::MachineCode) {
  const Group group = attention_group(c);
  const Tensors tensors = random_inputs(inputs_of(c), 3);
  testing::expect_near(run(group, tensors, options, by),
                       by_definition(group.stages, tensors).at("out"),
                       options.contraction_dtype == DType::BF16 ? 5e-2
                       : c.dtype == DType::F16                  ? 5e-3
                                                                : 1e-5);
}

/// Options with a schedule of tiles of a few rows and so many keys.
GroupOptions with_keys(const AttentionCase& c, std::int64_t keys) {
  return {.schedule = AttentionSchedule{std::min<std::int64_t>(c.size.at('i'), 4), keys}};
}

const std::map<char, std::int64_t> kSmall = {{'b', 2},  {'h', 3}, {'i', 5},
                                             {'j', 11}, {'d', 7}, {'e', 6}};

class Attention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, IsWhatItsDefinitionSays) {
  expect_right(GetParam());
}
TEST_P(Attention, KeepsTheOrderOfAdditionsWhereAsked) {
  expect_right(GetParam(), {.exact = true});
}
TEST_P(Attention, TilesOfKeysMayGoByOneAtATime) {
  for (const std::int64_t keys : {1, 8}) expect_right(GetParam(), with_keys(GetParam(), keys));
  expect_right(GetParam(), with_keys(GetParam(), 16), By::Interpreter);
}

INSTANTIATE_TEST_SUITE_P(
    All, Attention,
    ::testing::ValuesIn(std::vector<AttentionCase>{
        {"HeadsBeforeTime", kSmall},
        {"TimeBeforeHeads", kSmall, "bihd", "bjhd", "bjhe", "bihe"},
        {"KeysTransposed", kSmall, "bhid", "bhdj", "bhje", "bhie"},
        {"EverythingTheOtherWayRound", kSmall, "dihb", "djhb", "ejhb", "eihb"},
        {"KeysFirst",
         kSmall,
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "S",
         {},
         "exp(s[b,h,i,j] - m[b,h,i]) / t[b,h,i]",
         "K * Q"},
        {"OneQuery", {{'b', 2}, {'h', 3}, {'i', 1}, {'j', 33}, {'d', 16}, {'e', 16}}},
        {"OneOfAll", {{'b', 1}, {'h', 1}, {'i', 1}, {'j', 2}, {'d', 1}, {'e', 2}}},
        {"AWindow", {{'b', 5}, {'h', 3}, {'i', 49}, {'j', 49}, {'d', 32}, {'e', 32}}},
        {"APrimeNumberOfRows", {{'b', 1}, {'h', 2}, {'i', 197}, {'j', 197}, {'d', 17}, {'e', 19}}},
        {"RowsInBlocks", {{'b', 1}, {'h', 1}, {'i', 301}, {'j', 1021}, {'d', 8}, {'e', 8}}},
        {"AMaskOfKeys",
         kSmall,
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "S * 0.5 + mask[b, 0, 0, j]",
         {{"mask", DType::F32, {2, 1, 1, 11}}}},
        {"ABiasOfPositions",
         kSmall,
         "bihd",
         "bjhd",
         "bjhe",
         "bihe",
         "S * 0.5 + bias[h, i, j]",
         {{"bias", DType::F32, {3, 5, 11}}}},
        {"AMaskOfTruths",
         kSmall,
         "bihd",
         "bjhd",
         "bjhe",
         "bihe",
         "select(mask[i, j], S * 0.5, -10000.0)",
         {{"mask", DType::Bool, {5, 11}}}},
        {"KeysUpToTheQuery",
         {{'b', 1}, {'h', 2}, {'i', 37}, {'j', 37}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "select(j <= i, S * 0.5, -inf)"},
        {"KeysUpToTheQueryWithABias",
         {{'b', 1}, {'h', 2}, {'i', 37}, {'j', 45}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "select(j <= i + 8, S * 0.5 + bias[h, i, j], -inf)",
         {{"bias", DType::F32, {2, 37, 45}}}},
        {"KeysUpToTheQueryOfNegativeScores",
         {{'b', 1}, {'h', 2}, {'i', 37}, {'j', 37}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "select(j <= i, S * -0.5, -inf)"},
        {"KeysAWindowBehindTheQuery",
         {{'b', 1}, {'h', 2}, {'i', 301}, {'j', 311}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "S * 0.5 + select(j <= i + 3 && i < j + 20, 0.0, -inf)"},
        {"KeysAfterTheQueryOfEachHead",
         {{'b', 2}, {'h', 3}, {'i', 37}, {'j', 41}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "select(j < i + h - 1, -inf, S)"},
        {"KeysUpToTheQueryOfEachHead",
         {{'b', 2}, {'h', 3}, {'i', 37}, {'j', 41}, {'d', 8}, {'e', 8}},
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "select(j + h <= i + 3, S, -inf)"},
        {"Scaled",
         kSmall,
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "S / 8.0",
         {},
         "exp(2.0 * (s[b,h,i,j] - m[b,h,i])) / t[b,h,i]"},
        {"SoftCap", kSmall, "bhid", "bhjd", "bhje", "bhie", "tanh(S / 3.0) * 3.0"},
        {"DividedLast",
         kSmall,
         "bhid",
         "bhjd",
         "bhje",
         "bhie",
         "S / 8.0",
         {},
         "(1.0 / t[b,h,i]) * exp(s[b,h,i,j] - m[b,h,i])"},
    }),
    [](const auto& param) { return param.param.name; });

TEST(AttentionGroups, HeadsMayShareKeysAndValues) {
  Group group{.results = {"out"}};
  const std::vector<Operand> inputs = {{"q", DType::F32, {2, 6, 5, 8}},
                                       {"k", DType::F32, {2, 2, 9, 8}},
                                       {"v", DType::F32, {2, 2, 9, 8}}};
  group.stages = staged(
      inputs,
      {"define(q: f32[#b, #h, #i, #d], k: f32[#b, 2, #j, #d]) { s: f32[b, h, i, j] = sum(d) q[b, "
       "h, i, d] * k[b, floor_div(h, 3), j, d] }",
       "define(s: f32[#b, #h, #i, #j]) { m: f32[b, h, i, z: 1] = max_of(j) s[b, h, i, j] }",
       "define(s: f32[#b, #h, #i, #j], m: f32[#b, #h, #i, 1]) { t: f32[b, h, i, z: 1] = sum(j) "
       "exp(s[b, h, i, j] - m[b, h, i, 0]) }",
       "define(s: f32[#b, #h, #i, #j], m: f32[#b, #h, #i, 1], t: f32[#b, #h, #i, 1], v: f32[#b, 2, "
       "#j, #e]) { out: f32[b, i, (h: 6, e: 8)] = sum(j) { exp(s[b, h, i, j] - m[b, h, i, 0]) / "
       "t[b, h, i, 0] * v[b, floor_div(h, 3), j, e] } }"});
  const Tensors tensors = random_inputs(inputs, 3);
  for (const By by : {By::MachineCode, By::Interpreter})
    testing::expect_near(run(group, tensors, {}, by),
                         by_definition(group.stages, tensors).at("out"), 1e-5);
}

TEST(AttentionGroups, ARowThatSeesNothingIsWhatTheDefinitionSays) {
  AttentionCase c{"", kSmall};
  c.score = "select(mask[j] < 0.0, -inf, S)";
  c.more = {{"mask", DType::F32, {11}}};
  const Group group = attention_group(c);
  Tensors tensors = random_inputs(inputs_of(c), 3);
  Buffer hidden(44);
  for (std::int64_t i = 0; i < 11; ++i) store_number(DType::F32, hidden.data(), i, -1.0);
  tensors.insert_or_assign("mask", Tensor{DType::F32, {11}, std::move(hidden).freeze()});
  for (const GroupOptions& options :
       {GroupOptions{}, GroupOptions{.exact = true}, with_keys(c, 4)}) {
    const Tensor out = run(group, tensors, options, By::MachineCode);
    for (std::int64_t i = 0; i < out.count(); ++i) EXPECT_TRUE(std::isnan(number_at(out, i)));
  }
}

TEST(AttentionGroups, ATileThatSeesNothingChangesNothing) {
  AttentionCase c{"", kSmall};
  c.score = "select(mask[j] < 0.0, -inf, S)";
  c.more = {{"mask", DType::F32, {11}}};
  const Group group = attention_group(c);
  Tensors tensors = random_inputs(inputs_of(c), 3);
  for (const int seen : {0, 5, 10}) {
    Buffer hidden(44);
    for (std::int64_t i = 0; i < 11; ++i)
      store_number(DType::F32, hidden.data(), i, i == seen ? 1.0 : -1.0);
    tensors.insert_or_assign("mask", Tensor{DType::F32, {11}, std::move(hidden).freeze()});
    testing::expect_near(run(group, tensors, with_keys(c, 2), By::MachineCode),
                         by_definition(group.stages, tensors).at("out"), 1e-5);
  }
}

TEST(AttentionGroups, WeightsThatFollowNoExponentialAreNotOnline) {
  AttentionCase c{"", kSmall};
  c.weight = "(s[b,h,i,j] - m[b,h,i]) / t[b,h,i]";
  const auto code = lower_attention(attention_group(c), machine::host(), with_keys(c, 4));
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().id, "schedule-illegal");
  for (const ScheduleCandidate& one : attention_space(attention_group(c), machine::host(), {}))
    EXPECT_EQ(std::get<AttentionSchedule>(one.schedule).keys, 0);
}

/// Loops of the kernel for tiles of 16 rows and so many keys.
int loops_of(const AttentionCase& c, std::int64_t keys, const machine::Machine& machine) {
  const auto code = lower_attention(attention_group(c), machine,
                                    {.schedule = AttentionSchedule{.rows = 16, .keys = keys}});
  EXPECT_TRUE(code && *code);
  if (!code || !*code) return 0;
  int loops = 0;
  const tile::Kernel& kernel = (*code)->kernels[0].kernel;
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    loops += kernel.ops[id].code == tile::Code::For ? 1 : 0;
  });
  return loops;
}

// On a GPU the copies of keys and values of one loop overlap with its matmuls; another loop begins
// anew.
TEST(AttentionGroups, AMaskNeedsNoLoopOfItsOwn) {
  AttentionCase c{"", {{'b', 1}, {'h', 2}, {'i', 37}, {'j', 37}, {'d', 8}, {'e', 8}}};
  for (const char* score :
       {"select(j <= i, S * 0.5, -inf)", "S / 8.0 + select(j <= i && i < j + 20, 0.0, -inf)"}) {
    c.score = score;
    EXPECT_EQ(loops_of(c, 16, machine::cuda()), 1) << score;
  }
  // A sum of -inf is another score here.
  for (const char* score : {"select(j <= i, S * -0.5, -inf)", "select(j <= i, tanh(S), -inf)"}) {
    c.score = score;
    EXPECT_EQ(loops_of(c, 16, machine::cuda()), 2) << score;
  }
}

TEST(AttentionGroups, OnACpuTilesThatAreSeenWholeComeFirst) {
  AttentionCase c{"", {{'b', 1}, {'h', 2}, {'i', 37}, {'j', 37}, {'d', 8}, {'e', 8}}};
  c.score = "select(j <= i, S * 0.5, -inf)";
  EXPECT_EQ(loops_of(c, 32, machine::host()), 3);  // the second one has 16 keys
  EXPECT_EQ(loops_of(c, 16, machine::host()), 2);
}

TEST(AttentionGroups, OnACpuRowsThatSeeSomeOfTheKeysSkipTheOthers) {
  const auto strategy = [](const AttentionCase& c, const GroupOptions& options) {
    const auto code = lower_attention(attention_group(c), machine::host(), options);
    return code && *code ? (*code)->strategy : "none";
  };
  for (const std::int64_t length : {64, 100, 131, 256}) {
    AttentionCase c{"", {{'b', 1}, {'h', 2}, {'i', length}, {'j', length}, {'d', 16}, {'e', 24}}};
    c.score = "S * 0.25 + select(j <= i, 0.0, -inf)";
    EXPECT_EQ(strategy(c, {}), "attention, online, 32 x 96") << length;
    expect_right(c);
    EXPECT_EQ(strategy(c, {.exact = true}).find("online"), std::string::npos);
    EXPECT_EQ(strategy(c, {.contraction_dtype = DType::BF16}).find("online"), std::string::npos);
    c.score = "select(j <= i && i < j + 40, S * 0.25, -inf)";  // a window
    EXPECT_EQ(strategy(c, {}), "attention, online, 32 x 96") << length;
    expect_right(c);
    c.score = "S * 0.25";
    EXPECT_EQ(strategy(c, {}).find("online"), std::string::npos);
  }
  // Keys of steps before: rows see more of them.
  AttentionCase cached{"", {{'b', 1}, {'h', 2}, {'i', 70}, {'j', 170}, {'d', 16}, {'e', 16}}};
  cached.score = "select(j <= i + 100, S * 0.25, -inf)";
  EXPECT_EQ(strategy(cached, {}), "attention, online, 32 x 96");
  expect_right(cached);
}

TEST(AttentionGroups, LongRowsAreTilesOfKeysOnX86) {
  const auto strategy = [](std::int64_t keys, std::int64_t width, std::string_view cpu) {
    const AttentionCase c{"",
                          {{'b', 1}, {'h', 1}, {'i', 260}, {'j', keys}, {'d', 8}, {'e', width}}};
    const auto code = lower_attention(attention_group(c), *machine::named(cpu), {});
    return code && *code ? (*code)->strategy : "none";
  };
  machine::Machine x86 = *machine::named("sapphirerapids");
  const std::int64_t keys = x86.l2 / 2 / 4 / 256;
  EXPECT_EQ(strategy(keys, 64, "sapphirerapids"), "attention, online, 32 x 96");
  EXPECT_EQ(strategy(keys / 2, 64, "sapphirerapids").find("online"), std::string::npos);
  EXPECT_EQ(strategy(keys, 128, "sapphirerapids").find("online"), std::string::npos);
  EXPECT_EQ(strategy(keys, 64, "neoverse-v1").find("online"), std::string::npos);
  expect_right({"", {{'b', 1}, {'h', 1}, {'i', 100}, {'j', 3100}, {'d', 8}, {'e', 8}}});
}

TEST(AttentionGroups, ProductsMayBeOfBf16) {
  expect_right({"", {{'b', 1}, {'h', 2}, {'i', 33}, {'j', 40}, {'d', 16}, {'e', 24}}},
               {.contraction_dtype = DType::BF16});
}

/// As graphs of f16 compute it: all results are rounded, the weights by a cast of their own.
AttentionCase attention_of_f16() {
  AttentionCase c{"", {{'b', 1}, {'h', 2}, {'i', 33}, {'j', 40}, {'d', 16}, {'e', 24}}};
  c.weight = "f16(exp(s[b,h,i,j] - m[b,h,i]) / t[b,h,i])";
  c.dtype = DType::F16;
  return c;
}

TEST(AttentionGroups, TensorsMayBeOfF16) {
  expect_right(attention_of_f16());
  expect_right(attention_of_f16(), with_keys(attention_of_f16(), 8));
}

TEST(AttentionGroups, FactorsThatAreF16AreMultipliedSo) {
  EXPECT_EQ(product_dtype(attention_group(attention_of_f16())), DType::F16);
  AttentionCase with_f32_weights = attention_of_f16();
  with_f32_weights.weight = "exp(s[b,h,i,j] - m[b,h,i]) / t[b,h,i]";
  EXPECT_EQ(product_dtype(attention_group(with_f32_weights)), std::nullopt);
  AttentionCase with_scaled_queries = attention_of_f16();
  with_scaled_queries.product = "(Q * 0.3) * K";
  EXPECT_EQ(product_dtype(attention_group(with_scaled_queries)), std::nullopt);
  EXPECT_EQ(product_dtype(attention_group({"", kSmall})), std::nullopt);
}

TEST(AttentionGroups, ManyBatchesAreAGridThatAGpuRuns) {
  const Group group =
      attention_group({"", {{'b', 8192}, {'h', 12}, {'i', 16}, {'j', 16}, {'d', 64}, {'e', 64}}});
  const auto code = lower_group(group, machine::cuda(), {});
  ASSERT_TRUE(code) << to_string(code.error());
  ASSERT_EQ(code->kernels.size(), 1u);
  EXPECT_EQ(code->kernels[0].grid, (tile::Grid{8192 * 12, 1, 1}));
}

TEST(AttentionGroups, WhatReadsOtherRowsIsNone) {
  AttentionCase c{"", {{'b', 2}, {'h', 3}, {'i', 5}, {'j', 5}, {'d', 7}, {'e', 6}}};
  c.weight = "exp(s[b,h,j,i] - m[b,h,i]) / t[b,h,i]";
  const auto code = lower_attention(attention_group(c), machine::host(), {});
  ASSERT_TRUE(code);
  EXPECT_FALSE(*code);
}

}  // namespace
}  // namespace tessera::lower
