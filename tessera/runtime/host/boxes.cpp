#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

struct Box {
  float top, left, bottom, right;

  float area() const { return (bottom - top) * (right - left); }
};

/// Single precision throughout, like ONNX runtimes: whether an overlap exceeds a threshold depends
/// on the rounding.
Box box_at(const Tensor& boxes, std::int64_t index, bool center_point) {
  const auto at = [&](std::int64_t i) {
    return static_cast<float>(number_at(boxes, index * 4 + i));
  };
  if (center_point) {
    const float x = at(0), y = at(1), half_width = at(2) / 2, half_height = at(3) / 2;
    return {y - half_height, x - half_width, y + half_height, x + half_width};
  }
  const auto [top, bottom] = std::minmax({at(0), at(2)});
  const auto [left, right] = std::minmax({at(1), at(3)});
  return {top, left, bottom, right};
}

float overlap(const Box& a, const Box& b) {
  const Box common{std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom),
                   std::min(a.right, b.right)};
  if (!(common.bottom > common.top) || !(common.right > common.left)) return 0;
  const float joint = a.area() + b.area() - common.area();
  return joint > 0 ? common.area() / joint : 0;
}

/// Boxes in buckets by their left sides, so that only those that may overlap a box are compared
/// with it: those whose left side lies before its right side, and after its left side less the
/// largest width. Boxes of several classes, which exporters move apart, lie in different buckets.
class BoxIndex {
 public:
  explicit BoxIndex(const std::vector<Box>& boxes) {
    constexpr std::size_t kBoxesPerBucket = 4, kMostBuckets = 4096;
    double end = -std::numeric_limits<double>::infinity();
    bool is_finite = true;
    for (const Box& box : boxes) {
      is_finite = is_finite && std::isfinite(box.left) && std::isfinite(box.right);
      start_ = std::min<double>(start_, box.left);
      end = std::max<double>(end, box.left);
      widest_ = std::max(widest_, static_cast<double>(box.right) - box.left);
    }
    const bool is_spread = is_finite && end > start_;  // otherwise there is one bucket
    buckets_.resize(
        is_spread ? std::clamp<std::size_t>(boxes.size() / kBoxesPerBucket, 1, kMostBuckets) : 1);
    if (is_spread) scale_ = static_cast<double>(buckets_.size()) / (end - start_);
  }

  void add(const Box& box) { buckets_[bucket(box.left)].push_back(box); }

  bool has_overlap(const Box& box, float threshold) const {
    // One more bucket than the widest box reaches: sums are rounded.
    const std::size_t low = bucket(box.left - widest_), last = bucket(box.right);
    for (std::size_t i = low - (low > 0 ? 1 : 0); i <= last; ++i)
      for (const Box& other : buckets_[i])
        if (overlap(box, other) > threshold) return true;
    return false;
  }

 private:
  std::size_t bucket(double left) const {
    if (buckets_.size() == 1) return 0;
    return static_cast<std::size_t>(
        std::clamp((left - start_) * scale_, 0.0, static_cast<double>(buckets_.size() - 1)));
  }

  std::vector<std::vector<Box>> buckets_;
  double start_ = std::numeric_limits<double>::infinity(), widest_ = 0, scale_ = 0;
};

Expected<double> number_or(const Arguments& in, std::size_t index, double otherwise) {
  if (!in.has(index)) return otherwise;
  return in.number(index);
}

}  // namespace

Results non_max_suppression(const Call& call) {
  const Arguments in(call, "non_max_suppression");
  TESSERA_TRY(const Tensor boxes, in.float_tensor(0));
  TESSERA_TRY(const Tensor scores, in.float_tensor(1));
  const bool fitting = boxes.shape.size() == 3 && scores.shape.size() == 3 && boxes.shape[2] == 4 &&
                       boxes.shape[0] == scores.shape[0] && boxes.shape[1] == scores.shape[2];
  if (!fitting)
    return in.fault(
        fmt::format("boxes {} and scores {}", shape_text(boxes.shape), shape_text(scores.shape)),
        "they must be [batch, box, 4] and [batch, class, box]");
  std::int64_t most = 0;
  if (in.has(2)) {
    TESSERA_TRY(most, in.integer(2));
  }
  TESSERA_TRY(const double overlap_threshold, number_or(in, 3, 0.0));
  TESSERA_TRY(const double score_threshold,
              number_or(in, 4, -std::numeric_limits<double>::infinity()));
  if (!(overlap_threshold >= 0 && overlap_threshold <= 1))
    return in.fault(fmt::format("iou_threshold={}", overlap_threshold), "it must lie in [0, 1]");
  const bool center_point = in.attrs().i("center_point_box") != 0;

  const Lanes lanes = lanes_along(scores.shape, 2);  // outer: batch and class
  std::vector<std::int64_t> selected;
  for (std::int64_t lane = 0; lane < lanes.outer; ++lane) {
    const std::int64_t batch = lane / scores.shape[1];
    std::vector<std::pair<double, std::int64_t>> candidates;  // -score, index: sorted as they go
    for (std::int64_t i = 0; i < lanes.extent; ++i)
      if (const double score = number_at(scores, lanes.at(lane, i)); score > score_threshold)
        candidates.emplace_back(-score, i);
    std::ranges::sort(candidates);
    std::vector<Box> by_score;
    by_score.reserve(candidates.size());
    for (const auto& [score, index] : candidates)
      by_score.push_back(box_at(boxes, batch * lanes.extent + index, center_point));
    BoxIndex chosen(by_score);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < candidates.size() && count < most; ++i) {
      if (chosen.has_overlap(by_score[i], static_cast<float>(overlap_threshold))) continue;
      chosen.add(by_score[i]);
      ++count;
      const std::int64_t index = candidates[i].second;
      selected.insert(selected.end(), {batch, lane % scores.shape[1], index});
    }
  }
  Tensor out = index_tensor(selected);
  out.shape = {static_cast<std::int64_t>(selected.size()) / 3, 3};
  return in.results({std::move(out)});
}

}  // namespace tessera::host
