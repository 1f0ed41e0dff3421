#include "tessera/tile/gpu/warp_specialization.h"

#include <gtest/gtest.h>

namespace tessera::tile::gpu {
namespace {

TEST(WarpSpecialization, PaysWhereTilesAreLargeOrIterationsAreFewOrMany) {
  EXPECT_FALSE(warp_specialization_pays({.k_steps = 1, .accumulators = 128 * 128}));
  EXPECT_TRUE(warp_specialization_pays({.k_steps = 2, .accumulators = 128 * 128}));
  EXPECT_TRUE(warp_specialization_pays({.k_steps = 72, .accumulators = 128 * 256}));
  EXPECT_TRUE(warp_specialization_pays({.k_steps = 4, .accumulators = 128 * 64}));
  EXPECT_FALSE(warp_specialization_pays({.k_steps = 16, .accumulators = 128 * 64}));
  EXPECT_TRUE(warp_specialization_pays({.k_steps = 36, .accumulators = 64 * 128}));
  EXPECT_FALSE(warp_specialization_pays({.k_steps = 32, .accumulators = 64 * 64}));
  EXPECT_FALSE(warp_specialization_pays({.k_steps = 4, .accumulators = 64 * 32}));
  EXPECT_TRUE(warp_specialization_pays({.k_steps = 36, .accumulators = 64 * 32}));
}

}  // namespace
}  // namespace tessera::tile::gpu
