#include "tests/tile/random_kernel.h"

#include <gtest/gtest.h>

#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"

namespace tessera::testing {
namespace {

TEST(RandomKernel, IsTheSameForTheSameSeed) {
  EXPECT_EQ(to_text(random_kernel(5).kernel), to_text(random_kernel(5).kernel));
  EXPECT_EQ(random_kernel(5).memory, random_kernel(5).memory);
  EXPECT_NE(to_text(random_kernel(5).kernel), to_text(random_kernel(6).kernel));
}

TEST(RandomKernel, StaysInsideOfItsMemoryAndStoresSomething) {
  int changed = 0;
  for_each_random_kernel(1, 100, {.steps = 16, .most_elements = 256}, [&](const auto& random) {
    Memory memory = random.memory;
    const auto arguments = random.arguments(memory);
    const auto ran = tile::interpret(random.kernel, arguments, random.grid);
    ASSERT_TRUE(ran) << to_string(ran.error());
    changed += difference(random, random.memory, memory).empty() ? 0 : 1;
  });
  EXPECT_GT(changed, 90);
}

TEST(RandomKernel, TellsWhereMemoriesDiffer) {
  const RandomKernel random = random_kernel(5);
  Memory memory = random.memory;
  EXPECT_EQ(difference(random, random.memory, memory), "");
  for (auto& buffer : memory) {
    if (!buffer.empty()) buffer[0] ^= std::byte{0x11};
  }
  EXPECT_NE(difference(random, random.memory, memory), "");
}

}  // namespace
}  // namespace tessera::testing
