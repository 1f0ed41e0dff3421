#include "tessera/tile/argument.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "tessera/tile/text.h"

namespace tessera::tile {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Launch : public ::testing::Test {
 protected:
  /// The diagnostic of a launch with these arguments; empty for a good one.
  static std::string mistake(const std::string& params, const std::vector<Argument>& arguments,
                             const Grid& grid = {1, 1, 1}) {
    const auto kernel = parse_kernel("kernel k(" + params + ") {}");
    EXPECT_TRUE(kernel) << to_string(kernel.error());
    const auto checked = check_arguments(*kernel, arguments, grid);
    return checked ? std::string{} : to_string(checked.error());
  }

  Argument view(Extents shape) { return Argument::view(DType::F32, memory_.data(), shape); }
  Argument view(Extents shape, Extents strides) {
    return Argument::view(DType::F32, memory_.data(), std::move(shape), std::move(strides));
  }

  std::vector<float> memory_ = std::vector<float>(64);
};

TEST_F(Launch, TakesWhatTheParametersAskFor) {
  EXPECT_EQ(mistake("x: view f32[?, 8], n: i32, p: *f32, c: bool",
                    {view({4, 8}), Argument::integer(DType::I32, -5),
                     Argument::pointer(DType::F32, memory_.data(), 256),
                     Argument::number(DType::Bool, 1)},
                    {std::int64_t{1} << 31, 2, 1}),
            "");
}

TEST_F(Launch, TakesEmptyTensorsAndGrids) {
  EXPECT_EQ(mistake("x: view f32[?, ?]", {Argument::view(DType::F32, nullptr, {0, 4})}), "");
  EXPECT_EQ(mistake("x: view f32[0]", {Argument::view(DType::F32, nullptr, {0})}), "");
  EXPECT_EQ(mistake("p: *f32", {Argument::pointer(DType::F32, nullptr, 0)}), "");
  EXPECT_EQ(mistake("", {}, {0, 5, 1}), "");
}

TEST_F(Launch, PassesOverTheStrideOfAnAxisOfOneElement) {
  EXPECT_EQ(mistake("x: view f32[?, 8]", {view({1, 8}, {3, 1})}), "");
  EXPECT_EQ(mistake("x: view f32[?, 8]", {view({2, 8}, {3, 1})}),
            "k: x: error[launch-argument]: stride 0 is 3\n  note: 8");
}

TEST_F(Launch, RefusesAnotherNumberOfArguments) {
  EXPECT_EQ(mistake("n: i32", {}), "k: error[launch-argument]: 0 arguments\n  note: 1");
}

TEST_F(Launch, RefusesAnotherKindDtypeOrRank) {
  EXPECT_EQ(mistake("n: i32", {Argument::integer(DType::I64, 1)}),
            "k: n: error[launch-argument]: i64\n  note: i32");
  EXPECT_EQ(mistake("p: *f32", {view({4})}),
            "k: p: error[launch-argument]: view f32[4]\n  note: *f32");
  EXPECT_EQ(mistake("x: view f32[?, ?]", {view({4})}),
            "k: x: error[launch-argument]: view f32[4]\n  note: a view of 2 axes");
}

TEST_F(Launch, RefusesExtentsOtherThanStated) {
  EXPECT_EQ(mistake("x: view f32[?, 8]", {view({2, 7})}),
            "k: x: error[launch-argument]: extent 1 is 7\n  note: 8");
  EXPECT_EQ(mistake("x: view f32[?]", {view({-1})}),
            "k: x: error[launch-argument]: extent 0 is -1\n  note: extents of at least 0");
  EXPECT_EQ(mistake("x: view f32[?] by [?]", {view({4}, {-2})}),
            "k: x: error[launch-argument]: stride 0 is -2\n  note: strides of at least 0");
}

TEST_F(Launch, RefusesNullAndMisalignedMemory) {
  EXPECT_EQ(mistake("x: view f32[?]", {Argument::view(DType::F32, nullptr, {4})}),
            "k: x: error[launch-argument]: a null pointer\n  note: 16 bytes of memory");
  auto* odd = reinterpret_cast<std::byte*>(memory_.data()) + 2;
  EXPECT_NE(mistake("p: *f32", {Argument::pointer(DType::F32, odd, 8)}).find("misaligned memory"),
            std::string::npos);
  EXPECT_EQ(mistake("p: *i16", {Argument::pointer(DType::I16, odd, 8)}), "");
  EXPECT_EQ(mistake("p: *f32", {Argument::pointer(DType::F32, memory_.data(), -1)}),
            "k: p: error[launch-argument]: -1 bytes\n  note: at least 0");
}

TEST_F(Launch, RefusesViewsBeyondTheirMemory) {
  Argument argument = view({4, 4});
  argument.bytes = 63;
  EXPECT_EQ(mistake("x: view f32[?, ?]", {argument}),
            "k: x: error[launch-argument]: 63 bytes\n  note: at least 64");
  EXPECT_EQ(mistake("x: view f32[?, ?]", {view({kMost, kMost})}),
            "k: x: error[launch-argument]: view f32[9223372036854775807, 9223372036854775807]\n"
            "  note: a view that fits into memory");
}

TEST_F(Launch, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(mistake("n: u8", {Argument::integer(DType::U8, 256)}),
            "k: n: error[launch-argument]: 256\n  note: a number that u8 can hold");
}

TEST_F(Launch, RefusesGridsOutOfRange) {
  const std::string note = "\n  note: counts of 0 to 2^31, and less than 2^63 programs in all";
  EXPECT_EQ(mistake("", {}, {1, -1, 1}), "k: error[launch-grid]: a grid of 1 x -1 x 1" + note);
  EXPECT_EQ(mistake("", {}, {1, 1, kMost}),
            "k: error[launch-grid]: a grid of 1 x 1 x 9223372036854775807" + note);
  const std::int64_t many = std::int64_t{1} << 31;
  EXPECT_NE(mistake("", {}, {many, many, many}), "");
}

TEST_F(Launch, LaysArgumentsOutAsWords) {
  const auto kernel =
      parse_kernel("kernel k(x: view f32[?, 8], a: f32, n: i8, h: f16, p: *f32) {}");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(word_positions(*kernel), (std::vector<int>{0, 5, 6, 7, 8, 9}));
  const std::vector<Argument> arguments = {
      view({4, 8}), Argument::number(DType::F32, 1.5), Argument::integer(DType::I8, -2),
      Argument::number(DType::F16, 1), Argument::pointer(DType::F32, memory_.data(), 256)};
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::vector<std::uint64_t> words = words_of(arguments);
  EXPECT_EQ(words,
            (std::vector<std::uint64_t>{address, 4, 8, 8, 1, std::bit_cast<std::uint32_t>(1.5F),
                                        static_cast<std::uint64_t>(-2), 0x3c00, address}));
}

}  // namespace
}  // namespace tessera::tile
