#include "tessera/support/flat_map.h"

#include <gtest/gtest.h>

#include <map>

#include "tessera/support/rng.h"

namespace tessera {
namespace {

TEST(FlatMap, FindsWhatWasInserted) {
  FlatMap<int> map;
  EXPECT_TRUE(map.try_emplace(0).second);
  map.try_emplace(7).first = 5;
  const auto [value, fresh] = map.try_emplace(7);
  EXPECT_EQ(value, 5);
  EXPECT_FALSE(fresh);
  EXPECT_FALSE(map.try_emplace(0).second);
  EXPECT_EQ(map.size(), 2u);
}

TEST(FlatMap, AgreesWithAnOrderedMap) {
  // Keys that are close to each other, far apart, and equal in their lower or upper halves.
  Rng rng(1);
  FlatMap<std::uint64_t> map;
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t low = rng.below(50), key = rng.below(3) == 0 ? low
                                                   : rng.below(2) == 0
                                                       ? low << 32
                                                       : rng.next() % 5'000 << 20 | low;
    const auto [value, fresh] = map.try_emplace(key);
    EXPECT_EQ(fresh, !expected.contains(key)) << key;
    value += key + 1;
    expected[key] += key + 1;
    EXPECT_EQ(value, expected[key]) << key;
  }
  EXPECT_EQ(map.size(), expected.size());
}

}  // namespace
}  // namespace tessera
