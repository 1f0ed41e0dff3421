#include "tessera/runtime/cuda/pinned_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tessera/runtime/cuda/host_transfers.h"

namespace tessera::runtime::cuda {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

/// Which pages are locked.
struct Locked {
  std::mutex mutex = {};
  std::map<std::byte*, std::size_t> blocks = {};
  int locks = 0;
  bool refuses = false;

  PinnedPool::Pages pages() {
    return {.lock =
                [this](std::byte* memory, std::size_t bytes) {
                  const std::lock_guard lock(mutex);
                  ++locks;
                  return !refuses && blocks.emplace(memory, bytes).second;
                },
            .unlock =
                [this](std::byte* memory) {
                  const std::lock_guard lock(mutex);
                  EXPECT_EQ(blocks.erase(memory), 1u);
                }};
  }
};

constexpr PinnedPool::Limits kLimits = {.locked_bytes = 8 << 20, .idle_bytes = 4 << 20};

TEST(PinnedPool, GivesABlockAgainThatWasGivenBack) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  auto first = pool.allocate(kBlock);
  const std::byte* const memory = first.get();
  EXPECT_NE(pool.allocate(kBlock).get(), memory);
  first.reset();
  EXPECT_EQ(pool.allocate(kBlock - 100).get(), memory);
  EXPECT_EQ(locked.locks, 2);
}

TEST(PinnedPool, KnowsWhatLiesInABlock) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  auto block = pool.allocate(kBlock);
  EXPECT_TRUE(pool.contains(block.get(), kBlock));
  EXPECT_TRUE(pool.contains(block.get() + 5, kBlock - 5));
  EXPECT_FALSE(pool.contains(block.get() + 5, kBlock));
  EXPECT_FALSE(pool.contains(block.get() - 1, 1));
  const std::byte* const memory = block.get();
  block.reset();
  EXPECT_FALSE(pool.contains(memory, 1));
}

TEST(PinnedPool, LocksNeitherSmallBlocksNorMoreThanItsLimit) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  EXPECT_FALSE(pool.contains(pool.allocate(PinnedPool::kLeastBytes - 1).get(), 1));
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 12; ++i) {
    blocks.push_back(pool.allocate(kBlock));
    blocks.back().get()[kBlock - 1] = std::byte{1};
    EXPECT_EQ(pool.contains(blocks.back().get(), kBlock), i < 8) << i;
  }
  EXPECT_EQ(pool.locked_bytes(), 8 << 20);
  blocks.clear();
  EXPECT_EQ(pool.locked_bytes(), 4 << 20);  // the others are freed at once
  EXPECT_TRUE(pool.contains(pool.allocate(kBlock).get(), kBlock));
}

TEST(PinnedPool, FreesWhatNoOneTakesForLong) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  pool.allocate(3 * kBlock);
  for (int i = 0; i < 300; ++i) pool.allocate(kBlock);
  EXPECT_EQ(pool.locked_bytes(), static_cast<std::int64_t>(kBlock));
  EXPECT_EQ(locked.locks, 2);
}

TEST(PinnedPool, AsksNotAgainForWhatWasRefused) {
  Locked locked;
  locked.refuses = true;
  PinnedPool pool(locked.pages(), kLimits);
  for (int i = 0; i < 3; ++i) {
    const auto block = pool.allocate(kBlock);
    std::fill_n(block.get(), kBlock, std::byte{1});
    EXPECT_FALSE(pool.contains(block.get(), 1));
  }
  EXPECT_EQ(locked.locks, 1);
  EXPECT_EQ(pool.locked_bytes(), 0);
}

TEST(PinnedPool, BlocksOutliveItUnlocked) {
  Locked locked;
  std::shared_ptr<std::byte> block;
  {
    PinnedPool pool(locked.pages(), kLimits);
    block = pool.allocate(kBlock);
    pool.allocate(kBlock);
    block.get()[7] = std::byte{42};
    EXPECT_EQ(locked.blocks.size(), 2u);
  }
  EXPECT_TRUE(locked.blocks.empty());
  EXPECT_EQ(block.get()[7], std::byte{42});
}

TEST(PinnedPool, AChildOfForkMayDropBlocks) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  auto block = pool.allocate(kBlock);
  block.get()[0] = std::byte{42};
  const pid_t child = ::fork();
  if (child == 0) {
    const bool same = block.get()[0] == std::byte{42};
    block.reset();
    const auto other = pool.allocate(kBlock);
    ::_exit(same && other && locked.locks == 1 && locked.blocks.size() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(PinnedPool, ThreadsShareIt) {
  Locked locked;
  PinnedPool pool(locked.pages(), kLimits);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        const auto block = pool.allocate(kBlock / 4 * static_cast<std::size_t>(1 + (i + t) % 5));
        const auto mark = static_cast<std::byte>(16 * t + i % 16);
        block.get()[i] = mark;
        std::this_thread::yield();
        EXPECT_EQ(block.get()[i], mark);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.locked_bytes(), kLimits.idle_bytes);
}

TEST(PinnedPool, BlocksAreAtMostAQuarterLargerThanNeeded) {
  for (std::size_t bytes = PinnedPool::kLeastBytes; bytes < (std::size_t{1} << 32);
       bytes += bytes / 7 + 1) {
    EXPECT_GE(PinnedPool::block_bytes(bytes), bytes);
    if (bytes >= 4 * PinnedPool::kLeastBytes) {
      EXPECT_LE(PinnedPool::block_bytes(bytes), bytes + bytes / 4);
    }
    EXPECT_EQ(PinnedPool::block_bytes(bytes) % PinnedPool::kLeastBytes, 0u);
  }
}

/// Every byte of the transfers once, in order; no chunk outside of its half, no two in one place.
void expect_cover(std::span<const std::size_t> sizes, std::size_t chunk, std::size_t half) {
  std::vector<Transfer> transfers;
  for (const std::size_t size : sizes) transfers.push_back({.bytes = size});
  std::size_t transfer = 0, offset = 0;
  const auto skip_empty = [&] {
    while (transfer < sizes.size() && offset == sizes[transfer]) {
      ++transfer;
      offset = 0;
    }
  };
  const std::vector<Wave> waves = waves_of(transfers, chunk, half);
  for (std::size_t w = 0; w < waves.size(); ++w) {
    std::size_t used = w % 2 * half;
    EXPECT_FALSE(waves[w].empty());
    for (const Chunk& piece : waves[w]) {
      skip_empty();
      EXPECT_EQ(piece.transfer, transfer);
      EXPECT_EQ(piece.offset, offset);
      EXPECT_GT(piece.bytes, 0u);
      EXPECT_LE(piece.bytes, chunk);
      EXPECT_GE(piece.at, used);
      used = piece.at + piece.bytes;
      EXPECT_LE(used, (w % 2 + 1) * half);
      offset += piece.bytes;
    }
  }
  skip_empty();
  EXPECT_EQ(transfer, sizes.size());
}

TEST(HostTransfers, ChunksCoverAllBytesOnce) {
  expect_cover({}, 1024, 4096);
  expect_cover(std::vector<std::size_t>{0, 0}, 1024, 4096);
  expect_cover(std::vector<std::size_t>{1}, 1024, 4096);
  expect_cover(std::vector<std::size_t>{4096, 4096, 1}, 1024, 4096);
  expect_cover(std::vector<std::size_t>{100000, 1, 0, 777, 5000, 4095}, 1024, 4096);
  expect_cover(std::vector<std::size_t>{70001, 64001}, 1000, 4096);
  expect_cover(std::vector<std::size_t>{70001, 64001}, 100000, 4096);
}

}  // namespace
}  // namespace tessera::runtime::cuda
