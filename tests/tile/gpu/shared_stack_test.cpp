#include "tessera/tile/gpu/shared_stack.h"

#include <gtest/gtest.h>

#include "tessera/tile/gpu/shared_tile.h"

namespace tessera::tile::gpu {
namespace {

TEST(SharedStack, ScratchLiesAboveWhatIsReserved) {
  SharedStack shared;
  EXPECT_EQ(shared.reserve(2048), 0);
  EXPECT_EQ(shared.scratch(100).offset, 2048);
  EXPECT_EQ(shared.bytes(), 2048 + 128);
  shared.release(2048);
  EXPECT_EQ(shared.scratch(4096).offset, 0);
  EXPECT_EQ(shared.bytes(), 4096);
}

TEST(SharedStack, ReusedScratchNeedsABarrier) {
  SharedStack shared;
  EXPECT_FALSE(shared.scratch(128).needs_barrier);
  shared.barrier();
  shared.use_scratch();  // threads read it
  EXPECT_TRUE(shared.scratch(128).needs_barrier);
  EXPECT_EQ(shared.barriers(), 2);
  shared.barrier();
  EXPECT_FALSE(shared.scratch(128).needs_barrier);
}

TEST(SharedStack, FreshScratchWasNotUsedBefore) {
  SharedStack shared;
  EXPECT_EQ(shared.fresh(100), 0);
  EXPECT_EQ(shared.fresh(100), 128);
  EXPECT_EQ(shared.scratch(512).offset, 0);
  EXPECT_EQ(shared.fresh(1), 512);
}

TEST(SharedTile, RowsArePaddedAgainstBankConflicts) {
  const SharedTile tile = SharedTile::of({16, 32}, DType::F32);
  EXPECT_EQ(tile.strides, (std::vector<std::int64_t>{32 * 4 + 16, 4}));
  EXPECT_EQ(tile.bytes(), 16 * (32 * 4 + 16));
  EXPECT_EQ(SharedTile::of({3}, DType::F16).bytes(), 6);
}

TEST(SharedTile, TilesInSequenceAreAligned) {
  std::vector<SharedTile> tiles = {SharedTile::of({3}, DType::F16),
                                   SharedTile::of({8}, DType::F32)};
  EXPECT_EQ(place_in_sequence(tiles, 64), 16 + 32);
  EXPECT_EQ(tiles[0].offset, 64);
  EXPECT_EQ(tiles[1].offset, 80);
}

}  // namespace
}  // namespace tessera::tile::gpu
