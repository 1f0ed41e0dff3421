#include "tessera/lower/program_order.h"

#include <gtest/gtest.h>

namespace tessera::lower {
namespace {

/// Blocks of 128 rows against tiles of 128 keys, of which each sees those before it.
ProgramOrder causal(std::int64_t blocks, std::int64_t heads, std::int64_t bytes_of_head) {
  ProgramOrder order{.heads = heads, .processors = 132, .bytes_of_head = bytes_of_head};
  for (std::int64_t block = blocks; block > 0; --block)
    order.lengths.push_back(static_cast<double>(block));
  return order;
}

TEST(ProgramOrder, ManyShortHeadsRunOneAfterAnother) {
  EXPECT_EQ(heads_at_a_time(causal(4, 1024, 128 << 10)), 1);
}

TEST(ProgramOrder, FewLongHeadsRunTogetherEvenIfTheyLeaveTheCache) {
  // One head at a time would give some processors a long block more than others.
  EXPECT_EQ(heads_at_a_time(causal(128, 8, 16 << 20)), 8);
  EXPECT_EQ(heads_at_a_time(causal(128, 21, 6 << 20)), 21);
}

TEST(ProgramOrder, IsADivisorOfAllHeads) {
  for (const std::int64_t heads : {1, 7, 12, 30})
    for (const std::int64_t blocks : {1, 3, 8, 16}) {
      const std::int64_t found = heads_at_a_time(causal(blocks, heads, 1 << 20));
      EXPECT_GE(found, 1);
      EXPECT_EQ(heads % found, 0);
    }
}

}  // namespace
}  // namespace tessera::lower
