#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

Operand of(DType dtype, std::string name, Shape shape) {
  return {std::move(name), dtype, std::move(shape)};
}

/// (a - za) * (w - zw) summed up, with what is made of it.
GroupCase product(std::string name, DType a, DType w, std::int64_t m, std::int64_t k,
                  std::int64_t n, std::string definition) {
  return {
      std::move(name),
      {of(a, "a", {m, k}), of(w, "w", {k, n}), of(a, "za", {}), of(w, "zw", {n}), f32("s", {n})},
      {fmt::format("define(a: {0}[#i, #k], w: {1}[#k, #j], za: {0}[], zw: {1}[#j], s: f32[#j]) "
                   "{{ out: {2} }}",
                   to_string(a), to_string(w), definition)},
      {"out"},
      {"w"}};
}

std::vector<GroupCase> byte_cases() {
  std::vector<GroupCase> all;
  const std::string plain = "i32[i, j] = sum(k) a[i, k] * w[k, j]";
  const std::string left = "i32[i, j] = sum(k) (a[i, k] - za[]) * w[k, j]";
  const std::string both = "i32[i, j] = sum(k) (a[i, k] - za[]) * (w[k, j] - zw[j])";
  const std::string quantized =
      "u8[i, j] = u8(min(max(round(f32(sum(k) { (a[i, k] - za[]) * w[k, j] }) * "
      "0.0078125) + 3, 0.0), 255.0))";
  for (const DType a : {DType::U8, DType::I8})
    for (const DType w : {DType::U8, DType::I8}) {
      const std::string types = fmt::format("{}{}", to_string(a), to_string(w));
      all.push_back(product("Plain_" + types, a, w, 33, 72, 50, plain));
      all.push_back(product("Shifted_" + types, a, w, 37, 129, 61, left));
      all.push_back(product("ShiftedBoth_" + types, a, w, 16, 64, 48, both));
      all.push_back(product("OneRow_" + types, a, w, 1, 300, 130, both));
      all.push_back(product("Quantized_" + types, a, w, 24, 40, 96, quantized));
      GroupCase activations = product("Activations_" + types, a, w, 20, 30, 40, both);
      activations.weights = {};
      all.push_back(activations);
    }
  all.push_back(product("LongSum", DType::U8, DType::I8, 70, 5000, 30, left));
  all.push_back(product("ManyColumns", DType::U8, DType::I8, 19, 96, 1000, both));
  for (const DType x : {DType::U8, DType::I8})
    all.push_back(
        {fmt::format("ConvolutionPaddedWithTheZeroPoint_{}", to_string(x)),
         {of(x, "x", {2, 9, 11, 12}), of(DType::I8, "w", {20, 12, 3, 3}), of(x, "z", {}),
          f32("s", {20})},
         {fmt::format("define(x: {0}[#n, #h, #v, #c], w: i8[#f, #c, #r, #s], z: {0}[], s: f32[#f]) "
                      "{{ out: f32[n, y: 5, q: 6, f] = f32(sum(c, r, s) {{ ((x[n, 2*y + r - "
                      "1, 2*q + s - 1, c] else z[]) - z[]) * w[f, c, r, s] }}) * s[f] }}",
                      to_string(x))},
         {"out"},
         {"w"}});
  return all;
}

class ByteCase : public ::testing::TestWithParam<GroupCase> {};

TEST_P(ByteCase, IsWhatItsDefinitionSays) {
  const auto code = expect_group(GetParam(), lower_contraction, 0);
  ASSERT_TRUE(code);
  EXPECT_NE(code->strategy.find("int8"), std::string::npos) << code->strategy;
}

INSTANTIATE_TEST_SUITE_P(Bytes, ByteCase, ::testing::ValuesIn(byte_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Bytes, SuitOtherProcessors) {
  for (const char* cpu : {"neoverse-v1", "neoverse-n1", "haswell", "sapphirerapids"})
    for (const GroupCase& c : byte_cases()) {
      if (!c.name.starts_with("ShiftedBoth") && !c.name.starts_with("Conv")) continue;
      SCOPED_TRACE(fmt::format("{} {}", cpu, c.name));
      const auto machine = machine::named(cpu);
      ASSERT_TRUE(machine);
      const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
      const auto code = lower_contraction(group, *machine, {});
      ASSERT_TRUE(code) << to_string(code.error());
      ASSERT_TRUE(*code);
      const Tensors inputs = random_inputs(c.inputs, 7);
      const auto found = by_group(**code, group.stages, inputs, By::Interpreter);
      ASSERT_TRUE(found) << to_string(found.error());
      testing::expect_near(found->at("out"), by_definition(group.stages, inputs).at("out"), 0);
      for (const Lowered& lowered : (*code)->kernels)
        EXPECT_TRUE(codegen::form_of(lowered.kernel, codegen::Form::Assembly, *machine));
    }
}

TEST(Bytes, OfWiderIntegersAreLeftToOthers) {
  const GroupCase c{"No",
                    {of(DType::I32, "a", {20, 30}), of(DType::I32, "w", {30, 20})},
                    {"define(a: i32[#i, #k], w: i32[#k, #j]) { out: i32[i, j] = sum(k) a[i, k] * "
                     "w[k, j] }"}};
  EXPECT_FALSE(expect_group(c, lower_contraction));
}

}  // namespace
}  // namespace tessera::lower
