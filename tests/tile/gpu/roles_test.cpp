#include "tessera/tile/gpu/roles.h"

#include <gtest/gtest.h>

namespace tessera::tile::gpu {
namespace {

TEST(Roles, PayWhereTilesAreSmallOrLoopsOfLargeOnesLong) {
  EXPECT_TRUE(roles_pay({.rounds = 2, .sums = 64 * 32, .threads = 128}));
  EXPECT_FALSE(roles_pay({.rounds = 72, .sums = 128 * 128, .threads = 128}));
  EXPECT_TRUE(roles_pay({.rounds = 12, .sums = 128 * 256, .threads = 256}));
  EXPECT_FALSE(roles_pay({.rounds = 11, .sums = 128 * 256, .threads = 256}));
}

}  // namespace
}  // namespace tessera::tile::gpu
