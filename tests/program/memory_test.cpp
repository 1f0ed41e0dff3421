#include "tessera/program/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/support/cpu_time.h"
#include "tessera/support/rng.h"

namespace tessera::program {
namespace {

/// Tensors alive together do not overlap, except where one takes the place of the other.
void expect_sound(const std::vector<Lifetime>& tensors, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime &a = tensors[i], &b = tensors[j];
      if (a.first > b.last || b.first > a.last) continue;
      const bool in_place = (a.in_place_of == j || b.in_place_of == i) &&
                            plan.offsets[i] == plan.offsets[j] && a.bytes == b.bytes;
      const bool apart = plan.offsets[i] + a.bytes <= plan.offsets[j] ||
                         plan.offsets[j] + b.bytes <= plan.offsets[i];
      EXPECT_TRUE(in_place || apart) << j << " and " << i;
    }
  }
}

void expect_tight(const std::vector<Lifetime>& tensors) {
  const MemoryPlan plan = plan_memory(tensors);
  expect_sound(tensors, plan);
  EXPECT_LE(static_cast<double>(plan.bytes), 1.05 * static_cast<double>(plan.lower_bound));
}

/// A tensor per step, read by the next and perhaps by a later one.
struct Network {
  int steps = 100;
  double skips = 0.1;  // how many are read again later
  int reach = 20;      // how much later at most
  std::uint64_t seed = 1;
};

std::vector<Lifetime> network(const Network& of) {
  Rng rng(of.seed);
  std::vector<Lifetime> out;
  for (int s = 0; s < of.steps; ++s) {
    Lifetime t{.bytes = static_cast<std::int64_t>((1 + rng.below(64)) << (4 + rng.below(10))),
               .first = s,
               .last = s + 1};
    if (rng.uniform() < of.skips) t.last += static_cast<int>(rng.below(of.reach));
    out.push_back(t);
  }
  return out;
}

TEST(PlanMemory, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).bytes, 0);
  const std::vector<Lifetime> empty = {{.bytes = 0, .first = 0, .last = 3}};
  EXPECT_EQ(plan_memory(empty).bytes, 0);
}

TEST(PlanMemory, AChainNeedsItsLargestPair) {
  const std::vector<Lifetime> chain = {{100, 0, 1}, {640, 1, 2}, {1280, 2, 3}, {64, 3, 4}};
  const MemoryPlan plan = plan_memory(chain);
  expect_sound(chain, plan);
  EXPECT_EQ(plan.lower_bound, 1920);
  EXPECT_EQ(plan.bytes, 1920);
}

TEST(PlanMemory, AnElementwiseChainIsDoneInPlace) {
  const std::vector<Lifetime> chain = {{640, 0, 1}, {640, 1, 2, 0}, {640, 2, 3, 1}};
  const MemoryPlan plan = plan_memory(chain);
  EXPECT_EQ(plan.bytes, 640);
  EXPECT_EQ(plan.lower_bound, 640);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(PlanMemory, OnlyOneTakesAPlaceOver) {
  const std::vector<Lifetime> fork = {{640, 0, 1}, {640, 1, 3, 0}, {640, 1, 3, 0}};
  const MemoryPlan plan = plan_memory(fork);
  expect_sound(fork, plan);
  EXPECT_EQ(plan.bytes, 1280);
}

TEST(PlanMemory, WhatIsLargerDoesNotFitInPlace) {
  const std::vector<Lifetime> grows = {{64, 0, 1}, {640, 1, 2, 0}};
  const MemoryPlan plan = plan_memory(grows);
  expect_sound(grows, plan);
  EXPECT_EQ(plan.bytes, 704);
}

TEST(PlanMemory, WhatIsSmallerLeavesTheRestFree) {
  const std::vector<Lifetime> shrinks = {{1280, 0, 1}, {640, 1, 3, 0}, {640, 2, 3}};
  EXPECT_EQ(plan_memory(shrinks).bytes, 1280);
}

TEST(PlanMemory, ChainsAreTight) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    expect_tight(network({.steps = 200, .skips = 0, .seed = seed}));
  }
}

TEST(PlanMemory, ResidualNetworksAreTight) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    expect_tight(network({.steps = 150, .skips = 0.4, .reach = 4, .seed = seed}));
  }
}

TEST(PlanMemory, SkipsFromEachLevelDownToEachLevelUpAreTight) {
  std::vector<Lifetime> unet;
  constexpr int kLevels = 6;
  const auto add = [&](int level, int steps) {
    const int first = static_cast<int>(unet.size());
    unet.push_back(
        {.bytes = std::int64_t{1 << 22} >> level, .first = first, .last = first + steps});
  };
  for (int level = 0; level < kLevels; ++level) {
    add(level, 1);
    add(level, 4 * (kLevels - level) + 1);
    add(level + 2, 1);
  }
  for (int level = kLevels; level-- > 0;) {
    for (int i = 0; i < 4; ++i) add(level, 1);
  }
  expect_tight(unet);
}

TEST(PlanMemory, DenseBlocksAreTight) {
  std::vector<Lifetime> dense;  // each is read until the block ends
  for (int s = 0; s < 120; ++s) {
    dense.push_back({.bytes = (64 + 32 * (s % 24)) * 1024 >> (s / 24), .first = s, .last = s + 1});
    dense.push_back({.bytes = 32 * 1024 >> (s / 24), .first = s, .last = (s / 24 + 1) * 24});
  }
  expect_tight(dense);
}

TEST(PlanMemory, RandomNetworksAreTight) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    expect_tight(network({.steps = 100, .skips = 0.3, .reach = 30, .seed = seed}));
  }
}

TEST(PlanMemory, AnyLifetimesAreSound) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors;
    const int steps = 2 + static_cast<int>(rng.below(40));
    for (std::size_t i = 0, count = 1 + rng.below(60); i < count; ++i) {
      const int first = static_cast<int>(rng.below(steps));
      const int last = first + static_cast<int>(rng.below(steps - first));
      Lifetime t{.bytes = static_cast<std::int64_t>(rng.below(3000)), .first = first, .last = last};
      for (std::size_t j = 0; j < i && !t.in_place_of; ++j) {
        if (tensors[j].last == first && rng.below(2) == 0) {
          t.in_place_of = j;
          t.bytes = tensors[j].bytes;
        }
      }
      tensors.push_back(t);
    }
    const MemoryPlan plan = plan_memory(tensors);
    expect_sound(tensors, plan);
    EXPECT_GE(plan.bytes, plan.lower_bound);
    EXPECT_EQ(plan.offsets, plan_memory(tensors).offsets);
  }
}

TEST(PlanMemory, FiveThousandTensorsTakeAMoment) {
  const std::vector<Lifetime> large = network({.steps = 5000, .skips = 0.3, .reach = 60});
  const CpuStopwatch watch;
  const MemoryPlan plan = plan_memory(large);
  EXPECT_LT(watch.seconds(), 10);  // a hundred times what it takes; cubic time would be minutes
  EXPECT_LE(static_cast<double>(plan.bytes), 1.05 * static_cast<double>(plan.lower_bound));
}

}  // namespace
}  // namespace tessera::program
