#include "tessera/tile/passes/merge.h"

#include "tessera/tile/passes/for_grid.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

/// Random kernels one after the other, and merged: the same memory, bit for bit.
TEST(Merge, DoesWhatTheKernelsDoOneAfterTheOther) {
  for (std::uint64_t seed = 100; seed < 130; seed += 3) {
    SCOPED_TRACE(seed);
    std::vector<RandomKernel> random;
    std::vector<Kernel> kernels;
    std::vector<std::int64_t> programs;
    std::vector<testing::Memory> expected, found;
    for (std::uint64_t i = 0; i < 3; ++i) {
      random.push_back(random_kernel(seed + i));
      programs.push_back(random[i].grid[0] * random[i].grid[1] * random[i].grid[2]);
      kernels.push_back(along_one_axis(random[i].kernel, random[i].grid));
      expected.push_back(random[i].memory);
      found.push_back(random[i].memory);
    }
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(interpret(random[i].kernel, random[i].arguments(expected[i]), random[i].grid));
      for (const Argument& argument : random[i].arguments(found[i])) arguments.push_back(argument);
    }
    const Grid grid = {programs[0] + programs[1] + programs[2], 1, 1};
    const Kernel merged = simplify(for_grid(merge(kernels, programs), grid));
    expect_valid(merged);
    const auto done = interpret(merged, arguments, grid);
    ASSERT_TRUE(done) << to_string(done.error()) << to_text(merged);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(random[i], expected[i], found[i]), "") << "kernel " << i;
  }
}

}  // namespace
}  // namespace tessera::tile
