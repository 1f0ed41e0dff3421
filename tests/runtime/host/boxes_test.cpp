#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

const Attrs kCorners = {{"center_point_box", std::int64_t{0}}};
const Attrs kCenters = {{"center_point_box", std::int64_t{1}}};

const std::vector<float> kSixBoxes = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                      0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
const std::vector<float> kScores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};

std::vector<Datum> inputs(Tensor boxes, Tensor scores, std::int64_t most, float overlap,
                          float score) {
  return {std::move(boxes), std::move(scores), integers({1}, {most}), floats({1}, {overlap}),
          floats({1}, {score})};
}

TEST(NonMaxSuppression, DropsBoxesThatOverlapABetterOne) {
  expect_result(
      {"non_max_suppression",
       inputs(floats({1, 6, 4}, kSixBoxes), floats({1, 1, 6}, kScores), 3, 0.5f, 0), kCorners},
      integers({3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(NonMaxSuppression, TakesCornersInAnyOrder) {
  const Tensor boxes = floats({1, 6, 4}, {1, 1,  0, 0,  0, 0.1f,  1, 1.1f,  0, 0.9f, 1, -0.1f,
                                          0, 10, 1, 11, 1, 10.1f, 0, 11.1f, 1, 101,  0, 100});
  expect_result(
      {"non_max_suppression", inputs(boxes, floats({1, 1, 6}, kScores), 3, 0.5f, 0), kCorners},
      integers({3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(NonMaxSuppression, TakesCentersAndExtents) {
  const Tensor boxes =
      floats({1, 6, 4}, {0.5f, 0.5f,  1, 1, 0.5f, 0.6f,  1, 1, 0.5f, 0.4f,   1, 1,
                         0.5f, 10.5f, 1, 1, 0.5f, 10.6f, 1, 1, 0.5f, 100.5f, 1, 1});
  expect_result(
      {"non_max_suppression", inputs(boxes, floats({1, 1, 6}, kScores), 3, 0.5f, 0), kCenters},
      integers({3, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5}));
}

TEST(NonMaxSuppression, DropsLowScores) {
  expect_result(
      {"non_max_suppression",
       inputs(floats({1, 6, 4}, kSixBoxes), floats({1, 1, 6}, kScores), 3, 0.5f, 0.4f), kCorners},
      integers({2, 3}, {0, 0, 3, 0, 0, 0}));
}

TEST(NonMaxSuppression, KeepsTheFirstOfIdenticalBoxes) {
  const Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  expect_result({"non_max_suppression",
                 inputs(boxes, floats({1, 1, 3}, {0.9f, 0.9f, 0.9f}), 3, 0.5f, 0), kCorners},
                integers({1, 3}, {0, 0, 0}));
}

TEST(NonMaxSuppression, TreatsBatchesAndClassesApart) {
  std::vector<float> boxes = kSixBoxes, scores = kScores;
  boxes.insert(boxes.end(), kSixBoxes.begin(), kSixBoxes.end());
  scores.insert(scores.end(), kScores.begin(), kScores.end());
  expect_result({"non_max_suppression",
                 inputs(floats({2, 6, 4}, boxes), floats({2, 1, 6}, scores), 2, 0.5f, 0), kCorners},
                integers({4, 3}, {0, 0, 3, 0, 0, 0, 1, 0, 3, 1, 0, 0}));
  expect_result(
      {"non_max_suppression",
       inputs(floats({1, 6, 4}, kSixBoxes), floats({1, 2, 6}, scores), 2, 0.5f, 0), kCorners},
      integers({4, 3}, {0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0}));
}

TEST(NonMaxSuppression, WithoutALimitSelectsNothing) {
  expect_result(
      {"non_max_suppression", {floats({1, 6, 4}, kSixBoxes), floats({1, 1, 6}, kScores)}, kCorners},
      integers({0, 3}, {}));
}

TEST(NonMaxSuppression, RefusesBadInput) {
  expect_refused(
      {"non_max_suppression", {floats({1, 1, 3}, {0, 0, 1}), floats({1, 1, 1}, {1})}, kCorners},
      "boxes [1, 1, 3] and scores [1, 1, 1]");
  expect_refused(
      {"non_max_suppression",
       inputs(floats({1, 1, 4}, {0, 0, 1, 1}), floats({1, 1, 2}, {1, 1}), 1, 0, 0), kCorners},
      "boxes [1, 1, 4] and scores [1, 1, 2]");
  expect_refused(
      {"non_max_suppression",
       inputs(floats({1, 1, 4}, {0, 0, 1, 1}), floats({1, 1, 1}, {1}), 1, 2, 0), kCorners},
      "iou_threshold=2");
}

}  // namespace
}  // namespace tessera::host
