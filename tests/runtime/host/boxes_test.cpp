#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

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

/// The boxes [y, x, y, x], best first, that overlap none before them by more than half.
std::vector<std::int64_t> chosen_by_comparing_all(const std::vector<float>& boxes) {
  std::vector<std::int64_t> chosen, result;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(boxes.size()) / 4; ++i) {
    const float* const a = &boxes[static_cast<std::size_t>(i * 4)];
    const bool is_free = std::ranges::none_of(chosen, [&](std::int64_t other) {
      const float* const b = &boxes[static_cast<std::size_t>(other * 4)];
      const float height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
      const float width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
      const float both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
      return height > 0 && width > 0 &&
             3 * height * width > both;  // over the union: more than half
    });
    if (!is_free) continue;
    chosen.push_back(i);
    result.insert(result.end(), {0, 0, i});
  }
  return result;
}

TEST(NonMaxSuppression, OfManyBoxesComparesThoseThatMayOverlap) {
  constexpr std::int64_t kBoxes = 500;
  std::mt19937 random(3);
  const auto number = [&](double most) {
    return static_cast<float>(std::uniform_real_distribution<>(0, most)(random));
  };
  for (const float spread : {0.F, 30.F, 3000.F}) {
    std::vector<float> boxes, scores;
    for (std::int64_t i = 0; i < kBoxes; ++i) {
      const float y = number(10), x = number(10) + spread * std::floor(number(8));
      boxes.insert(boxes.end(), {y, x, y + 1 + number(6), x + 1 + number(i % 50 == 0 ? 40 : 6)});
      scores.push_back(1 - static_cast<float>(i) / kBoxes);
    }
    const std::vector<std::int64_t> expected = chosen_by_comparing_all(boxes);
    expect_result(
        {"non_max_suppression",
         inputs(floats({1, kBoxes, 4}, boxes), floats({1, 1, kBoxes}, scores), kBoxes, 0.5f, -1),
         kCorners},
        integers({static_cast<std::int64_t>(expected.size()) / 3, 3}, expected));
  }
}

TEST(NonMaxSuppression, TakesCoordinatesThatAreNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  expect_result({"non_max_suppression",
                 inputs(floats({1, 3, 4}, {0, 0, 1, inf, 0, 0, 1, 1, 0, 0, 1, 1.5f}),
                        floats({1, 1, 3}, {0.9f, 0.8f, 0.7f}), 3, 0.5f, 0),
                 kCorners},
                integers({2, 3}, {0, 0, 0, 0, 0, 1}));
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
