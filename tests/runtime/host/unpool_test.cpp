#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

const Attrs kTwoByTwo = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
const Tensor kPlaces = integers({1, 1, 2, 2}, {5, 7, 13, 15});

TEST(MaxUnpool, PutsTheMaximaBack) {
  expect_result({"max_unpool", {floats({1, 1, 2, 2}, {1, 2, 3, 4}), kPlaces}, kTwoByTwo},
                floats({1, 1, 4, 4}, {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}));
}

TEST(MaxUnpool, KeepsThePlacesInALargerImage) {
  expect_result({"max_unpool",
                 {floats({1, 1, 2, 2}, {5, 6, 7, 8}), kPlaces, integers({4}, {1, 1, 5, 5})},
                 kTwoByTwo},
                floats({1, 1, 5, 5}, {0, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0,
                                      0, 0, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0}));
}

TEST(MaxUnpool, CountsIndicesOverBatchesAndChannels) {
  expect_result({"max_unpool",
                 {floats({2, 2, 1}, {1, 2, 3, 4}), integers({2, 2, 1}, {0, 3, 5, 6})},
                 {{"kernel_shape", Ints{2}}}},
                floats({2, 2, 2}, {1, 0, 0, 2, 0, 3, 4, 0}));
}

TEST(MaxUnpool, CutsThePadsOff) {
  expect_result({"max_unpool",
                 {floats({1, 1, 2}, {1, 2}), integers({1, 1, 2}, {0, 2})},
                 {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}}},
                floats({1, 1, 3}, {1, 0, 2}));
}

TEST(MaxUnpool, RefusesBadInput) {
  const Tensor x = floats({1, 1, 2}, {1, 2});
  const Attrs attrs = {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  const auto at = [](std::int64_t a, std::int64_t b) { return integers({1, 1, 2}, {a, b}); };
  expect_refused({"max_unpool", {x, at(0, 4)}, attrs}, "index 4 is outside of [1, 1, 4]");
  expect_refused({"max_unpool", {x, at(-1, 0)}, attrs}, "index -1 is outside of [1, 1, 4]");
  expect_refused({"max_unpool", {x, at(0, 3), integers({3}, {1, 1, 3})}, attrs},
                 "index 3 of [1, 1, 4] is outside of [1, 1, 3]");
  expect_refused({"max_unpool", {x, at(0, 3), integers({1}, {4})}, attrs},
                 "output_shape has 1 entries for 3 axes");
  expect_refused({"max_unpool", {x, at(0, 3), integers({3}, {1, 1, -4})}, attrs},
                 "a tensor of shape [1, 1, -4] is impossible");
  const std::int64_t many = std::int64_t{1} << 40;
  expect_refused({"max_unpool", {x, at(0, 3), integers({3}, {0, many, many})}, attrs},
                 "2 values for shape [0, 1099511627776, 1099511627776]");
  expect_refused({"max_unpool", {x, scalar(0)}, attrs}, "values [1, 1, 2] and indices []");
  expect_refused({"max_unpool", {x, at(0, 0)}, {{"kernel_shape", Ints{2, 2}}}},
                 "1 spatial axes with 2 kernel extents, 1 strides and 2 pads");
  EXPECT_FALSE(result_of({"max_unpool",
                          {x, at(0, 0)},
                          {{"kernel_shape", Ints{2}}, {"strides", Ints{std::int64_t{1} << 62}}}})
                   .has_value());
}

}  // namespace
}  // namespace tessera::host
