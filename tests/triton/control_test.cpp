#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

using Integers = std::vector<std::int32_t>;

TEST(TritonControl, ReturnsEarly) {
  const auto x = random_floats(80, 1);
  for (const std::size_t n : {3, 0, 5}) {
    std::vector<double> expected(80, 9);
    for (std::size_t i = 0; i < n * 16; ++i) expected[i] = i / 16 % 2 == 0 ? x[i] * 2 : x[i] + 1;
    Launch launch("early_return");
    launch.memory(x).memory(std::vector<float>(80, 9)).numbers(n);
    for (const Memory& after : launch.run({5, 1, 1}))
      expect_near(after.of<float>(1), expected, after.run);
  }
}

TEST(TritonControl, ReturnsEarlyThroughOneBlock) {
  const auto x = random_floats(80, 1);
  std::vector<double> expected(80, 9);
  for (std::size_t i = 32; i < 64; ++i) expected[i] = x[i] * 2;
  Launch launch("common_return");
  launch.memory(x).memory(std::vector<float>(80, 9)).numbers(4, 2);
  for (const Memory& after : launch.run({5, 1, 1}))
    expect_near(after.of<float>(1), expected, after.run);
}

TEST(TritonControl, LoopsWhileAConditionHolds) {
  const Integers x = {1, 2, 3, 7, 27, 0, -5, 97};
  Integers expected;
  for (int n : x) {
    int steps = 0;
    for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    expected.push_back(steps);
  }
  Launch launch("while_loop");
  launch.memory(x).memory(Integers(8));
  for (const Memory& after : launch.run({8, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(1), expected) << after.run;
}

TEST(TritonControl, BranchesInsideOfBranches) {
  const Integers x = {-20, -3, 0, 1, 4, 5, 6, 100};
  Integers expected;
  for (const int n : x) {
    expected.push_back(n > 5 ? 5 : n > 0 ? 2 * n : -n);
    expected.push_back(n > 5 ? 1 : n < -5 ? 7 : n);
  }
  Launch launch("nested_if");
  launch.memory(x).memory(Integers(16)).numbers(5);
  for (const Memory& after : launch.run({8, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(1), expected) << after.run;
}

TEST(TritonControl, CallsAFunctionOfSeveralResultsAndReturns) {
  const Integers x = {17, -17, 17, 5}, y = {5, 5, -5, 0};
  Launch launch("noinline_call");
  launch.memory(x).memory(y).memory(Integers(4)).memory(Integers(4));
  for (const Memory& after : launch.run({4, 1, 1})) {
    EXPECT_EQ(after.of<std::int32_t>(2), (Integers{3, -3, -3, 0})) << after.run;
    EXPECT_EQ(after.of<std::int32_t>(3), (Integers{2, -2, 2, 5})) << after.run;
  }
}

TEST(TritonControl, AnAssertionThatFailsIsADiagnosticWithItsMessage) {
  Integers x(16, 3);
  Launch fine("asserts");
  fine.memory(x).memory(Integers(16)).numbers(10);
  for (const Memory& after : fine.run({1, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(1), Integers(16, 4)) << after.run;
  x[11] = 10;
  Launch launch("asserts");
  launch.memory(x).memory(Integers(16)).numbers(10);
  for (const auto& path : fixtures_of("asserts")) {
    const tile::Kernel kernel = kernel_at(path);
    Memory memory{"", launch.buffers()};
    const auto arguments = launch.arguments(kernel, memory);
    const auto compiled = codegen::compile(kernel, {.checked = true});
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    for (const auto& ran : {tile::interpret(kernel, arguments, {1, 1, 1}),
                            (*compiled)->launch(arguments, {1, 1, 1})}) {
      ASSERT_FALSE(ran);
      EXPECT_EQ(ran.error().id, "tile-assertion");
      EXPECT_NE(to_string(ran.error()).find("x is below the limit"), std::string::npos)
          << to_string(ran.error());
    }
  }
}

TEST(TritonControl, PrintsByTheInterpreter) {
  Launch launch("prints");
  launch.memory(Integers{1, -2, 3, 4}).numbers(0.5);
  for (const auto& path : fixtures_of("prints")) {
    const tile::Kernel kernel = kernel_at(path);
    Memory memory{"", launch.buffers()};
    std::string printed;
    const auto ran = tile::interpret(
        kernel, launch.arguments(kernel, memory), {1, 1, 1},
        {.print = [&](std::string_view line) { printed += std::string(line) + "\n"; }});
    ASSERT_TRUE(ran) << to_string(ran.error());
    EXPECT_NE(printed.find("x: "), std::string::npos) << printed;
    EXPECT_NE(printed.find("-2"), std::string::npos) << printed;
    EXPECT_NE(printed.find("0.5"), std::string::npos) << printed;
  }
}

}  // namespace
}  // namespace tessera::triton
