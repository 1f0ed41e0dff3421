// Reduction loops of matmuls over k: the first iteration has no addend, the last one stores to the
// view.

#include <gtest/gtest.h>

#include "examples/matmul.h"
#include "tests/codegen/both_ways.h"

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;

struct Sizes {
  std::int64_t m, n, k;
};

/// With dimensions of c that may differ from those of the factors.
void expect_sums(const examples::MatmulTiles& tiles, const Sizes& s, const tile::Extents& c,
                 const tile::Extents& c_strides, DType in = DType::F32, DType out = DType::F32) {
  SCOPED_TRACE(fmt::format("{}x{}x{} in tiles of {}x{}x{}, c {}x{}", s.m, s.n, s.k, tiles.m,
                           tiles.n, tiles.k, c[0], c[1]));
  const auto kernel = examples::matmul(in, out, tiles);
  ASSERT_TRUE(kernel.has_value());
  TestArguments arguments(1);
  arguments.view(in, {s.m, s.k}).view(in, {s.k, s.n}).view(out, c, c_strides);
  expect_both_ways(*kernel, arguments, {examples::matmul_programs(c[0], c[1], tiles), 1, 1}, 1e-4);
}
void expect_sums(const examples::MatmulTiles& tiles, const Sizes& s, DType in = DType::F32,
                 DType out = DType::F32) {
  expect_sums(tiles, s, {s.m, s.n}, {s.n, 1}, in, out);
}

TEST(ReductionLoop, OfAnyTripCountComputesTheMatmul) {
  const examples::MatmulTiles tiles{24, 40, 16};
  for (const std::int64_t k : {1, 15, 16, 17, 32, 47, 48})
    for (const auto& [m, n] : {std::pair{24, 40}, {25, 81}, {7, 3}, {48, 80}, {1, 40}})
      expect_sums(tiles, {m, n, k});
}

TEST(ReductionLoop, OfALargeTileComputesTheMatmul) {
  const examples::MatmulTiles tiles{130, 130, 16};
  for (const std::int64_t k : {0, 16, 33})
    for (const auto& [m, n] : {std::pair{130, 130}, {131, 97}}) expect_sums(tiles, {m, n, k});
}

TEST(ReductionLoop, WithoutIterationsStoresZeros) {
  expect_sums({24, 40, 16}, {24, 40, 0}, {24, 40}, {40, 1});
  expect_sums({24, 40, 16}, {30, 50, 0}, {30, 50}, {64, 1});
}

TEST(ReductionLoop, StoresZerosWhereTheResultIsLargerThanItsFactors) {
  for (const std::int64_t k : {16, 33}) {
    expect_sums({24, 40, 16}, {20, 40, k}, {24, 40}, {40, 1});
    expect_sums({24, 40, 16}, {24, 30, k}, {24, 40}, {40, 1});
    expect_sums({24, 40, 16}, {20, 30, k}, {60, 90}, {90, 1});
  }
}

TEST(ReductionLoop, StoresNoMoreThanTheResultHolds) {
  for (const std::int64_t k : {16, 33}) {
    expect_sums({24, 40, 16}, {24, 40, k}, {20, 40}, {40, 1});
    expect_sums({24, 40, 16}, {24, 40, k}, {24, 33}, {33, 1});
    expect_sums({24, 40, 16}, {50, 90, k}, {40, 70}, {70, 1});
  }
}

TEST(ReductionLoop, StoresAcrossGaps) {
  for (const std::int64_t k : {16, 33}) {
    expect_sums({24, 40, 16}, {30, 50, k}, {30, 50}, {77, 1});
  }
}

TEST(ReductionLoop, AccumulatesNarrowTypes) {
  for (const std::int64_t k : {16, 40, 64}) {
    expect_sums({24, 40, 32}, {24, 40, k}, DType::BF16, DType::F32);
    expect_sums({24, 40, 32}, {29, 47, k}, DType::BF16, DType::F32);
    expect_sums({24, 40, 32}, {24, 40, k}, DType::I8, DType::I32);
    expect_sums({24, 40, 32}, {29, 47, k}, DType::I8, DType::I32);
  }
}

}  // namespace
}  // namespace tessera::codegen
