#include <gtest/gtest.h>

#include "tessera/codegen/compile.h"
#include "tessera/tile/interp.h"
#include "tests/tile/random_kernel.h"

namespace tessera::codegen {
namespace {

using testing::RandomKernel;

/// Machine code leaves the same memory behind as the interpreter.
void expect_as_interpreted(const RandomKernel& random, const Options& options, int threads) {
  testing::Memory expected = random.memory, found = random.memory;
  const auto interpreted = tile::interpret(random.kernel, random.arguments(expected), random.grid);
  ASSERT_TRUE(interpreted) << to_string(interpreted.error());
  const auto compiled = compile(random.kernel, options);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const auto launched = (*compiled)->launch(random.arguments(found), random.grid, threads);
  ASSERT_TRUE(launched) << to_string(launched.error());
  EXPECT_EQ(testing::difference(random, expected, found, 0), "");
}

TEST(RandomKernels, RunAsTheInterpreterRunsThem) {
  testing::for_each_random_kernel(
      1, 40, {}, [](const RandomKernel& random) { expect_as_interpreted(random, {}, 2); });
}

TEST(RandomKernels, RunInDebugModeToo) {
  testing::for_each_random_kernel(1000, 20, {}, [](const RandomKernel& random) {
    expect_as_interpreted(random, {.checked = true}, 1);
  });
}

TEST(SlowRandomKernels, RunAsTheInterpreterRunsThem) {
  testing::for_each_random_kernel(5000, 500, {.steps = 40}, [](const RandomKernel& random) {
    expect_as_interpreted(random, {}, 2);
  });
}

}  // namespace
}  // namespace tessera::codegen
