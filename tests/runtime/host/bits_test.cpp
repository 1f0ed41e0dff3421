#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

TEST(BitCast, KeepsEveryBit) {
  // A signalling NaN, a quiet one with a payload, negative zero, the smallest number.
  const std::vector<std::uint32_t> bits = {0x7f800001, 0xffc12345, 0x80000000, 1};
  const Tensor words = Tensor::of<std::uint32_t>(DType::U32, {2, 2}, bits);
  Tensor reals = words;
  reals.dtype = DType::F32;
  expect_result({"bit_cast", {reals}, {{"to", std::string("u32")}}}, words);
  const auto back = result_of({"bit_cast", {words}, {{"to", std::string("f32")}}});
  ASSERT_TRUE(back);
  EXPECT_EQ((*back)[0].tensor().dtype, DType::F32);
  EXPECT_EQ(std::memcmp((*back)[0].tensor().bytes.data(), bits.data(), 16), 0);
}

TEST(BitCast, RefusesAnotherWidth) {
  expect_refused({"bit_cast", {floats({1}, {1})}, {{"to", std::string("i64")}}},
                 "f32 does not have the width of i64");
}

}  // namespace
}  // namespace tessera::host
