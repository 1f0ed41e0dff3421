#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/lower/contraction.h"
#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

const std::string kMatmulByWeights =
    "define(a: f32[#i, #k], w: f32[#k, #j]) { out: f32[i, j] = sum(k) a[i, k] * w[k, j] }";

std::vector<GroupCase> contraction_cases() {
  return {
      {"Matmul", {f32("a", {64, 96}), f32("w", {96, 72})}, {kMatmulByWeights}, {"out"}, {"w"}},
      {"MatmulOfOddSizes",
       {f32("a", {37, 129}), f32("w", {129, 61})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfManyColumns",
       {f32("a", {33, 40}), f32("w", {40, 1000})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfALongSum",
       {f32("a", {70, 1100}), f32("w", {1100, 30})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfManyUnalignedRows",
       {f32("a", {1030, 517}), f32("w", {517, 270})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfAVeryLongSum",
       {f32("a", {40, 1000}), f32("w", {1000, 96})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfFewColumns",
       {f32("a", {70, 300}), f32("w", {300, 12})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfOnePanel",
       {f32("a", {70, 1100}), f32("w", {1100, 32})},
       {kMatmulByWeights},
       {"out"},
       {"w"}},
      {"MatmulOfActivations", {f32("a", {37, 129}), f32("w", {129, 61})}, {kMatmulByWeights}},
      {"OneRow", {f32("a", {1, 300}), f32("w", {300, 130})}, {kMatmulByWeights}, {"out"}, {"w"}},
      {"OneRowOfActivations", {f32("a", {1, 300}), f32("w", {300, 130})}, {kMatmulByWeights}},
      {"MatrixTimesVector",
       {f32("w", {50, 300}), f32("x", {300})},
       {"define(w: f32[#i, #k], x: f32[#k]) { out: f32[i] = sum(k) w[i, k] * x[k] }"},
       {"out"},
       {"w"}},
      {"TransposedOperandsWithEpilogue",
       {f32("a", {45, 37}), f32("w", {61, 45}), f32("bias", {61}), f32("r", {37, 61})},
       {"define(a: f32[#k, #i], w: f32[#j, #k], bias: f32[#j], r: f32[#i, #j]) { out: f32[i, j] = "
        "max((sum(k) { a[k, i] * w[j, k] }) * 0.5 + bias[j] + r[i, j], 0.0) }"},
       {"out"},
       {"w", "bias"}},
      {"WeightOnTheLeft",
       {f32("w", {20, 33}), f32("a", {33, 50})},
       {"define(w: f32[#i, #k], a: f32[#k, #j]) { out: f32[i, j] = sum(k) w[i, k] * a[k, j] }"},
       {"out"},
       {"w"}},
      {"BatchesOfHeads",
       {f32("q", {2, 17, 3, 16}), f32("k", {2, 21, 3, 16})},
       {"define(q: f32[#n, #i, #h, #d], k: f32[#n, #j, #h, #d]) { out: f32[n, h, i, j] = (sum(d) { "
        "q[n, i, h, d] * k[n, j, h, d] }) * 0.25 }"}},
      {"BatchedWeights",
       {f32("a", {3, 20, 24}), f32("w", {3, 24, 30})},
       {"define(a: f32[#n, #i, #k], w: f32[#n, #k, #j]) { out: f32[n, i, j] = sum(k) a[n, i, k] * "
        "w[n, k, j] }"},
       {"out"},
       {"w"}},
      {"RowsOfTwoAxes",
       {f32("a", {3, 20, 24}), f32("w", {24, 30})},
       {"define(a: f32[#n, #i, #k], w: f32[#k, #j]) { out: f32[n, i, j] = sum(k) a[n, i, k] * "
        "w[k, j] }"},
       {"out"},
       {"w"}},
      {"Pointwise",
       {f32("x", {2, 9, 11, 24}), f32("w", {40, 24, 1, 1}), f32("b", {40}),
        f32("r", {2, 9, 11, 40})},
       {"define(x: f32[#n, #y, #z, #c], w: f32[#f, #c, #u, #v], b: f32[#f], r: f32[#n, #y, #z, "
        "#f]) "
        "{ out: f32[n, y, z, f] = max(sum(c, u, v) { x[n, y + u, z + v, c] * w[f, c, u, v] } + "
        "b[f] + r[n, y, z, f], 0.0) }"},
       {"out"},
       {"w", "b"}},
      {"PointwiseOfFewChannels",
       {f32("x", {1, 6, 12, 16}), f32("w", {96, 16}), f32("b", {96})},
       {"define(x: f32[#n, #y, #z, #c], w: f32[#f, #c], b: f32[#f]) { out: f32[n, y, z, f] = "
        "min(max(sum(c) { x[n, y, z, c] * w[f, c] } + b[f], 0.0), 6.0) }"},
       {"out"},
       {"w", "b"}},
      {"NoRows",
       {f32("a", {4, 50}), f32("w", {4, 12, 40})},
       {"define(a: f32[#k, #m], w: f32[#k, #l, #j]) { out: f32[j] = sum(k, l) a[k, 2*l] * w[k, l, "
        "j] }"},
       {"out"},
       {"w"}},
      {"BiasAfterAFactor",
       {f32("a", {24, 40}), f32("w", {40, 48}), f32("b", {48}), f32("s", {24})},
       {"define(a: f32[#i, #k], w: f32[#k, #j], b: f32[#j], s: f32[#i]) { out: f32[i, j] = (sum(k) "
        "{ a[i, k] * w[k, j] }) * s[i] + b[j] }"},
       {"out"},
       {"w", "b"}},
      {"BiasOfRows",
       {f32("a", {24, 40}), f32("w", {40, 30}), f32("s", {24})},
       {"define(a: f32[#i, #k], w: f32[#k, #j], s: f32[#i]) { out: f32[i, j] = max(s[i] + sum(k) { "
        "a[i, k] * w[k, j] }, 0.0) }"},
       {"out"},
       {"w"}},
      {"OneRowWithBias",
       {f32("a", {1, 300}), f32("w", {300, 130}), f32("b", {130})},
       {"define(a: f32[#i, #k], w: f32[#k, #j], b: f32[#j]) { out: f32[i, j] = b[j] + sum(k) a[i, "
        "k] * w[k, j] }"},
       {"out"},
       {"w", "b"}},
      {"Convolution",
       {f32("x", {1, 14, 14, 32}), f32("w", {40, 32, 3, 3}), f32("b", {40})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s], b: f32[#f]) { out: f32[n, y: 14, "
        "z: "
        "14, f] = max(sum(c, r, s) { (x[n, y + r - 1, z + s - 1, c] else 0.0) * w[f, c, r, s] } + "
        "b[f], 0.0) }"},
       {"out"},
       {"w", "b"}},
      {"ConvolutionWithStridesAndDilations",
       {f32("x", {2, 15, 17, 8}), f32("w", {28, 8, 3, 2})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 7, z: 9, f] = "
        "sum(c, r, s) { (x[n, 2*y + 2*r - 1, 2*z + 3*s - 2, c] else 0.0) * w[f, c, r, s] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionWithoutPads",
       {f32("x", {1, 12, 12, 16}), f32("w", {24, 16, 3, 3})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 10, z: 10, f] = "
        "sum(c, r, s) { x[n, y + r, z + s, c] * w[f, c, r, s] } }"},
       {"out"},
       {"w"}},
      {"FirstConvolutionOfAnImage",
       {f32("x", {1, 3, 30, 30}), f32("w", {20, 3, 7, 7})},
       {"define(x: f32[#n, #c, #h, #v], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 15, z: 15, f] = "
        "max(sum(c, r, s) { (x[n, c, 2*y + r - 3, 2*z + s - 3] else 0.0) * w[f, c, r, s] }, 0.0) "
        "}"},
       {"out"},
       {"w"}},
      {"ConvolutionAlongOneAxis",
       {f32("x", {1, 17, 17, 20}), f32("w", {24, 20, 1, 7})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 17, z: 17, f] = "
        "sum(c, r, s) { (x[n, y + r, z + s - 3, c] else 0.0) * w[f, c, r, s] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionOfOneDimension",
       {f32("x", {2, 50, 12}), f32("w", {16, 12, 5})},
       {"define(x: f32[#n, #h, #c], w: f32[#f, #c, #r]) { out: f32[n, y: 50, f] = sum(c, r) { "
        "(x[n, "
        "y + r - 2, c] else 0.0) * w[f, c, r] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionOfThreeDimensions",
       {f32("x", {1, 6, 7, 8, 12}), f32("w", {16, 12, 3, 3, 3})},
       {"define(x: f32[#n, #h, #v, #u, #c], w: f32[#f, #c, #r, #s, #t]) { out: f32[n, y: 6, z: 7, "
        "o: "
        "8, f] = sum(c, r, s, t) { (x[n, y + r - 1, z + s - 1, o + t - 1, c] else 0.0) * w[f, c, "
        "r, "
        "s, t] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionInGroups",
       {f32("x", {1, 9, 9, 24}), f32("w", {20, 6, 3, 3}), f32("b", {20})},
       {"define(x: f32[#n, #h, #v, 4*#c], w: f32[4*#f, #c, #r, #s], b: f32[4*#f]) { out: f32[n, y: "
        "9, z: 9, (g: 4, f)] = max(sum(c, r, s) { (x[n, y + r - 1, z + s - 1, g*#c + c] else 0.0) "
        "* "
        "w[g*#f + f, c, r, s] } + b[g*#f + f], 0.0) }"},
       {"out"},
       {"w", "b"}},
      {"ConvolutionOfOddChannelsWithDilations",
       {f32("x", {2, 9, 9, 40}), f32("w", {20, 40, 3, 3})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 9, z: 9, f] = "
        "sum(c, r, s) { (x[n, y + 2*r - 2, z + 2*s - 2, c] else 0.0) * w[f, c, r, s] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionOfOddChannelsWithStrides",
       {f32("x", {2, 10, 10, 72}), f32("w", {24, 72, 3, 3})},
       {"define(x: f32[#n, #h, #v, #c], w: f32[#f, #c, #r, #s]) { out: f32[n, y: 5, z: 5, f] = "
        "sum(c, r, s) { (x[n, 2*y + r - 1, 2*z + s - 1, c] else 0.0) * w[f, c, r, s] } }"},
       {"out"},
       {"w"}},
      {"ConvolutionOfOddChannelsInGroups",
       {f32("x", {1, 9, 9, 60}), f32("w", {48, 20, 3, 3})},
       {"define(x: f32[#n, #h, #v, 3*#c], w: f32[3*#f, #c, #r, #s]) { out: f32[n, y: 9, z: 9, (g: "
        "3, f)] = sum(c, r, s) { (x[n, y + r - 1, z + s - 1, g*#c + c] else 0.0) * w[g*#f + f, c, "
        "r, s] } }"},
       {"out"},
       {"w"}},
      {"ChannelsFirst",
       {f32("x", {1, 8, 11, 13}), f32("w", {12, 8, 3, 3}), f32("b", {12})},
       {"define(x: f32[#n, #c, #h, #v], w: f32[#f, #c, #r, #s], b: f32[#f]) { out: f32[n, f, y: 6, "
        "z: 7] = sum(c, r, s) { (x[n, c, 2*y + r - 1, 2*z + s - 1] else 0.0) * w[f, c, r, s] } + "
        "b[f] }"},
       {"out"},
       {"w", "b"}},
      {"PrologueAndWeightsThatAreScaled",
       {f32("x", {1, 7, 7, 16}), f32("s", {16}), f32("w", {24, 16})},
       {"define(x: f32[#n, #y, #z, #c], s: f32[#c], w: f32[#f, #c]) { out: f32[n, y, z, f] = "
        "sum(c) "
        "{ max(x[n, y, z, c] * s[c], 0.0) * (w[f, c] * 2.0) } }"},
       {"out"},
       {"w"}},
      {"RowsThatAreGathered",
       {f32("x", {40, 32}), Operand{"at", DType::I32, {15}}, f32("w", {32, 24})},
       {"define(x: f32[#m, #k], at: i32[#i], w: f32[#k, #j]) { out: f32[i, j] = sum(k) x[at[i], k] "
        "* w[k, j] }"},
       {"out"},
       {"w"}},
      {"ScaledChannels",
       {f32("a", {2, 9, 328}), f32("s", {2, 328}), f32("w", {328, 40})},
       {"define(a: f32[#n, #i, #k], s: f32[#n, #k], w: f32[#k, #j]) { out: f32[n, i, j] = sum(k) "
        "max(a[n, i, k] * s[n, k], 0.0) * w[k, j] }"},
       {"out"},
       {"w"}},
      {"Halves",
       {Operand{"a", DType::F16, {20, 32}}, Operand{"w", DType::F16, {32, 40}}},
       {"define(a: f16[#i, #k], w: f16[#k, #j]) { out: f16[i, j] = f16(sum(k) a[i, k] * w[k, j]) "
        "}"},
       {"out"},
       {"w"}},
  };
}

class ContractionCase : public ::testing::TestWithParam<GroupCase> {};

TEST_P(ContractionCase, ComputesWhatTheDefinitionSays) {
  const GroupCase& c = GetParam();
  EXPECT_TRUE(expect_group(c, lower_contraction, c.name == "Halves" ? 2e-3 : 1e-4));
}

TEST_P(ContractionCase, RoundsFactorsWhereItMay) {
  // Factors are below 2 and have 8 bits left: each product is within 2^-7 of what it should be.
  const GroupCase& c = GetParam();
  const auto code = expect_group(c, lower_contraction, 0.25, {.contraction_dtype = DType::BF16});
  EXPECT_TRUE(code);
}

INSTANTIATE_TEST_SUITE_P(Contraction, ContractionCase, ::testing::ValuesIn(contraction_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Contraction, SuitsOtherProcessors) {
  for (const char* cpu : {"neoverse-v1", "haswell", "sapphirerapids"})
    for (const DType products : {DType::F32, DType::BF16})
      for (const GroupCase& c : contraction_cases()) {
        if (c.name != "MatmulOfOddSizes" && c.name != "ConvolutionInGroups" && c.name != "OneRow")
          continue;
        SCOPED_TRACE(fmt::format("{} {} {}", cpu, to_string(products), c.name));
        const auto machine = machine::named(cpu);
        ASSERT_TRUE(machine);
        const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
        const auto code = lower_contraction(group, *machine, {.contraction_dtype = products});
        ASSERT_TRUE(code && *code);
        const Tensors inputs = random_inputs(c.inputs, 7);
        const auto found = by_group(**code, group.stages, inputs, By::Interpreter);
        ASSERT_TRUE(found) << to_string(found.error());
        testing::expect_near(found->at("out"), by_definition(group.stages, inputs).at("out"),
                             products == DType::F32 ? 1e-4 : 0.25);
        for (const Lowered& lowered : (*code)->kernels) {
          const auto text = codegen::form_of(lowered.kernel, codegen::Form::Assembly, *machine);
          EXPECT_TRUE(text) << to_string(text.error());
        }
      }
}

TEST_P(ContractionCase, SuitsThreadBlocks) {
  const GroupCase& c = GetParam();
  for (const DType products : {DType::F32, DType::F16, DType::BF16}) {
    SCOPED_TRACE(to_string(products));
    const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
    const auto code = lower_contraction(group, machine::cuda(), {.contraction_dtype = products});
    ASSERT_TRUE(code);
    if (!*code) continue;  // one of those that a reduction computes
    const Tensors inputs = random_inputs(c.inputs, 7);
    const auto found = by_group(**code, group.stages, inputs, By::Interpreter);
    ASSERT_TRUE(found) << to_string(found.error());
    testing::expect_near(found->at("out"), by_definition(group.stages, inputs).at("out"),
                         products == DType::BF16  ? 0.25
                         : products == DType::F16 ? 0.04
                         : c.name == "Halves"     ? 2e-3
                                                  : 1e-4);
  }
}

TEST(Contraction, OperandsThatAreComputedAreStoredForAsynchronousCopies) {
  for (const GroupCase& c : contraction_cases()) {
    if (c.name != "ScaledChannels") continue;
    const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
    const auto strategy = [&](DType products) {
      const auto code = lower_contraction(group, machine::cuda(), {.contraction_dtype = products});
      return code && *code ? (*code)->strategy : "";
    };
    EXPECT_THAT(strategy(DType::F16), ::testing::HasSubstr("operand computed before"));
    EXPECT_THAT(strategy(DType::F32), ::testing::Not(::testing::HasSubstr("before")));
  }
}

TEST(Contraction, FinishesSumsInRegisters) {
  for (const GroupCase& c : contraction_cases()) {
    if (c.name != "PointwiseOfFewChannels") continue;
    const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
    for (const char* cpu : {"neoverse-v1", "haswell", "sapphirerapids"}) {
      const auto machine = machine::named(cpu);
      ASSERT_TRUE(machine);
      const auto code = lower_contraction(group, *machine, {});
      ASSERT_TRUE(code && *code);
      const auto text =
          codegen::form_of((*code)->kernels.back().kernel, codegen::Form::S, *machine);
      ASSERT_TRUE(text);
      const std::size_t dot = text->find("dot ");
      ASSERT_NE(dot, std::string::npos) << *text;
      EXPECT_NE(text->find(" on\n", dot), std::string::npos) << *text;
    }
  }
}

TEST(Contraction, PaddedImagesOfGroupsHaveTheChannelsOfAGroupSideBySide) {
  // 3 groups of 8 channels; then with pixels two apart, and channels that are no whole groups.
  const auto convolution = [](int stride, int channels) {
    return GroupCase{
        "Groups",
        {f32("a", {2, 9, 10, 3 * channels}), f32("w", {3, 16, 3, 3, channels})},
        {fmt::format("define(a: f32[2, 9, 10, {0}], w: f32[3, 16, 3, 3, {1}]) {{ out: f32[n: 2, y: "
                     "{2}, x: {3}, g: 3, f: 16] = sum(r: 3, s: 3, c: {1}) {{ (a[n, y * {4} + r - "
                     "1, x * {4} + s - 1, g * {1} + c] else 0.0) * w[g, f, r, s, c] }} }}",
                     3 * channels, channels, stride == 1 ? 9 : 5, stride == 1 ? 10 : 5, stride)},
        {"out"},
        {"w"}};
  };
  for (const int stride : {1, 2})
    for (const int channels : {8, 5}) {
      const GroupCase c = convolution(stride, channels);
      const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
      const auto contraction = contraction_of(group, std::nullopt);
      ASSERT_TRUE(contraction);
      // Taps of a row and their channels are one axis of the sum.
      EXPECT_EQ(merged_sums(*contraction).size(), 2U);
      EXPECT_TRUE(expect_group(c, lower_contraction, 1e-4));
    }
}

TEST(Contraction, PackedWeightsAreReadInPlace) {
  for (const char* cpu : {"neoverse-v1", "haswell", "sapphirerapids"})
    for (const std::int64_t columns : {4, 12, 15, 96, 200}) {  // a part of a panel, or several
      SCOPED_TRACE(fmt::format("{}, {} columns", cpu, columns));
      const auto machine = machine::named(cpu);
      ASSERT_TRUE(machine);
      const Group group{staged({f32("a", {70, 300}), f32("w", {300, columns})}, {kMatmulByWeights}),
                        {"out"},
                        {"w"}};
      const auto code = lower_contraction(group, *machine, {});
      ASSERT_TRUE(code && *code);
      const auto text =
          codegen::form_of((*code)->kernels.back().kernel, codegen::Form::S, *machine);
      ASSERT_TRUE(text);
      EXPECT_THAT(*text, ::testing::HasSubstr(" in panels of "));
    }
}

TEST(Contraction, AWeightThatIsPackedAtRunTimeIsPackedForManyRows) {
  const char* const window =
      "define(x: f32[#h, #v, #c], w: f32[#f, #r, #s, #c]) { out: f32[y: 24, z: 12, f] = "
      "sum(r, s, c) { x[y + r, z + s, c] * w[f, r, s, c] } }";
  for (const char* cpu : {"neoverse-v1", "haswell", "sapphirerapids"}) {
    auto machine = machine::named(cpu);
    ASSERT_TRUE(machine);
    machine->cores = 1;
    const Group group{
        staged({f32("x", {26, 14, 64}), f32("w", {96, 3, 3, 64})}, {window}), {"out"}, {}};
    const auto code = lower_group(group, *machine, {});
    ASSERT_TRUE(code) << to_string(code.error());
    const auto& schedule = std::get<ContractionSchedule>(code->schedule.value());
    EXPECT_GE(schedule.rows[0] * schedule.rows[1], 96) << code->strategy;
  }
}

TEST(Contraction, LeavesWhatIsNoProductOfMatricesToOthers) {
  for (const char* definition : {
           "define(x: f32[#i, #k], w: f32[#i, #k]) { out: f32[i] = sum(k) x[i, k] * w[i, k] }",
           "define(x: f32[#i, #k], w: f32[#i, #k]) { out: f32[i, k] = x[i, k] * w[i, k] }",
           "define(x: f32[#i, #k], w: f32[#i, #k]) { out: f32[i] = sum(k) x[i, k] + w[i, k] }",
       }) {
    const GroupCase c{"No", {f32("x", {20, 30}), f32("w", {20, 30})}, {definition}, {"out"}, {"w"}};
    EXPECT_FALSE(expect_group(c, lower_contraction));
  }
}

}  // namespace
}  // namespace tessera::lower
