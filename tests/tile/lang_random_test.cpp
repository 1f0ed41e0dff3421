#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tessera/tile/lang_random.h"
#include "tests/tile/lang_run.h"

namespace tessera::tile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Philox4x32-10, written down again.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

TEST(LangRandom, PhiloxGivesTheKnownAnswers) {
  // Of Random123's file of known answers, for counter and key of zeros and of pi's digits.
  const auto words = [](std::uint64_t seed, std::array<std::uint32_t, 4> c) {
    return made<std::uint32_t>(4, [&] {
      const auto x = philox4x32(full({}, seed, DType::U64), {c[0], c[1], c[2], c[3]});
      return concat(
          {reshape(x[0], {1}), reshape(x[1], {1}), reshape(x[2], {1}), reshape(x[3], {1})}, 0);
    });
  };
  EXPECT_THAT(words(0, {}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(words(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(LangRandom, RandIsTritonsFunctionOfSeedAndOffset) {
  const std::int64_t seed = 0x123456789abcdef, first = (std::int64_t{5} << 32) + 7;
  const Floats found = made(16, [&] { return rand(seed, first + arange(0, 16)); });
  const auto bits =
      made<std::uint32_t>(16, [&] { return randint(seed, arange(0, 16, DType::I32)); });
  for (std::uint32_t i = 0; i < 16; ++i) {
    const std::array<std::uint32_t, 2> key = {0x89abcdef, 0x1234567};
    const auto x = static_cast<std::int32_t>(philox({7 + i, 5, 0, 0}, key)[0]);
    EXPECT_EQ(found[i], static_cast<float>(x < 0 ? -x - 1 : x) * 4.6566127342e-10F);
    EXPECT_EQ(bits[i], philox({i, 0, 0, 0}, key)[0]);
  }
}

TEST(LangRandom, RandnIsNormal) {
  const Floats found = made(4096, [] { return randn(42, arange(0, 4096)); });
  double mean = 0, square = 0;
  for (const float x : found) {
    mean += x / 4096;
    square += x * x / 4096;
  }
  EXPECT_NEAR(mean, 0, 0.06);
  EXPECT_NEAR(square, 1, 0.1);
}

// -------------------------------------------------------------------------------------- arguments

TEST(LangArguments, NumbersTakeTheTypeThatTheKernelAsksFor) {
  const auto traced = kernel("k", {number("n"), number("eps", DType::F32), number("b", DType::I8)},
                             [](const Val&, const Val&, const Val&) {});
  ASSERT_TRUE(traced) << why(traced);
  EXPECT_TRUE(check_arguments(*traced, arguments_of(*traced, 7, 1e-5, 3), {1, 1, 1}));
  EXPECT_FALSE(check_arguments(*traced, arguments_of(*traced, 7, 1e-5, 300), {1, 1, 1}));
  EXPECT_FALSE(check_arguments(*traced, arguments_of(*traced, 7.5, 1e-5, 3), {1, 1, 1}));
  EXPECT_FALSE(check_arguments(*traced, arguments(7, 1e-5, 3), {1, 1, 1}));
}

TEST(LangArguments, MemoryThatIsTooSmallForItsViewIsRefused) {
  const Floats x(11);
  const auto traced = kernel("k", {"x"}, [](const ViewOf<float, 2>&) {});
  ASSERT_TRUE(traced) << why(traced);
  EXPECT_TRUE(check_arguments(*traced, arguments(view_of(x, {2, 5})), {1, 1, 1}));
  EXPECT_FALSE(check_arguments(*traced, arguments(view_of(x, {3, 4})), {1, 1, 1}));
}

}  // namespace
}  // namespace tessera::tile
