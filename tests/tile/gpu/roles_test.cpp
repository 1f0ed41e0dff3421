#include "tessera/tile/gpu/roles.h"

#include <gtest/gtest.h>

namespace tessera::tile::gpu {
namespace {

TEST(Roles, PayWhereTilesAreLargeOrRoundsAreFewOrMany) {
  EXPECT_FALSE(roles_pay({.rounds = 1, .sums = 128 * 128}));
  EXPECT_TRUE(roles_pay({.rounds = 2, .sums = 128 * 128}));
  EXPECT_TRUE(roles_pay({.rounds = 72, .sums = 128 * 256}));
  EXPECT_TRUE(roles_pay({.rounds = 4, .sums = 128 * 64}));
  EXPECT_FALSE(roles_pay({.rounds = 16, .sums = 128 * 64}));
  EXPECT_TRUE(roles_pay({.rounds = 36, .sums = 64 * 128}));
  EXPECT_FALSE(roles_pay({.rounds = 32, .sums = 64 * 64}));
  EXPECT_FALSE(roles_pay({.rounds = 4, .sums = 64 * 32}));
  EXPECT_TRUE(roles_pay({.rounds = 36, .sums = 64 * 32}));
}

}  // namespace
}  // namespace tessera::tile::gpu
