#include "tessera/tune/explorer.h"

#include <algorithm>
#include <cmath>

namespace tessera::tune {
namespace {

/// Share of a batch that is drawn at random.
constexpr double kEpsilon = 0.1;
/// Annealing: number of chains and steps, and the first and last temperature, in units of the
/// logarithm of time.
constexpr int kChains = 8, kSteps = 60;
constexpr double kHot = 0.3, kCold = 0.02;
/// Distance, in octaves of parameters, over which a measurement says something of its neighbours.
constexpr double kReach = 1.0;

}  // namespace

Explorer::Explorer(const Task& task, std::vector<double> predicted, std::uint64_t seed)
    : predicted_(std::move(predicted)), rng_(seed) {
  for (const Candidate& one : task.space) points_.push_back(one.point);
  for (std::size_t i = 0; i < points_.size(); ++i)
    for (std::size_t axis = 1; axis < points_[i].size(); ++axis) {
      Point line = points_[i];
      line[axis] = -1;
      lines_[line].push_back(i);
    }
}

void Explorer::record(std::size_t candidate, std::optional<double> ratio) {
  measured_[candidate] = ratio ? std::optional(std::log(*ratio)) : std::nullopt;
}

double Explorer::distance(std::size_t a, std::size_t b) const {
  const Point &x = points_[a], &y = points_[b];
  if (x.size() != y.size() || x[0] != y[0]) return 1e3;
  double sum = 0;
  for (std::size_t i = 1; i < x.size(); ++i) sum += std::abs(x[i] - y[i]);
  return sum;
}

double Explorer::predicted(std::size_t candidate) const {
  double weight = 0.3, correction = 0;  // a prior of no correction
  for (const auto& [other, ratio] : measured_) {
    if (!ratio) continue;
    const double near = std::exp(-distance(candidate, other) / kReach);
    weight += near;
    correction += near * (*ratio - predicted_[other]);
  }
  return predicted_[candidate] + correction / weight;
}

/// A candidate that differs in one parameter, or any one.
std::size_t Explorer::neighbour(std::size_t of) {
  const Point& point = points_[of];
  for (int tries = 0; tries < 4 && point.size() > 1; ++tries) {
    Point line = point;
    line[1 + rng_.below(point.size() - 1)] = -1;
    const std::vector<std::size_t>& on_line = lines_.at(line);
    if (on_line.size() > 1) return on_line[rng_.below(on_line.size())];
  }
  return rng_.below(points_.size());
}

std::vector<std::size_t> Explorer::next_batch(std::size_t count) {
  const std::size_t all = points_.size();
  std::map<std::size_t, double> scores;  // of candidates that were visited
  const auto score = [&](std::size_t i) {
    const auto [it, is_new] = scores.try_emplace(i, 0.0);
    if (is_new) it->second = predicted(i);
    return it->second;
  };
  std::vector<std::size_t> starts = fastest(kChains / 2);
  const auto order = [&](std::size_t i, std::size_t j) { return predicted_[i] < predicted_[j]; };
  if (starts.empty()) {  // the best predictions of the whole space
    std::vector<std::size_t> ranked(all);
    for (std::size_t i = 0; i < all; ++i) ranked[i] = i;
    const std::size_t most = std::min<std::size_t>(all, 2 * count);
    std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(most), order);
    ranked.resize(most);
    for (const std::size_t i : ranked) score(i);
    starts.assign(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(
                                                       std::min<std::size_t>(most, kChains / 2)));
  }
  while (starts.size() < kChains) starts.push_back(rng_.below(all));
  for (std::size_t at : starts)
    for (int step = 0; step < kSteps; ++step) {
      const double temperature = kHot * std::pow(kCold / kHot, static_cast<double>(step) / kSteps);
      const std::size_t next = neighbour(at);
      const double worse = score(next) - score(at);
      if (worse <= 0 || rng_.uniform() < std::exp(-worse / temperature)) at = next;
    }
  std::vector<std::pair<double, std::size_t>> ranked;
  for (const auto& [i, predicted] : scores)
    if (!measured_.contains(i)) ranked.emplace_back(predicted, i);
  std::ranges::sort(ranked);
  std::vector<std::size_t> batch;
  const auto random = static_cast<std::size_t>(std::ceil(kEpsilon * static_cast<double>(count)));
  for (const auto& [predicted, i] : ranked) {
    if (batch.size() + random >= count) break;
    batch.push_back(i);
  }
  for (std::size_t tries = 0; batch.size() < count && tries < 20 * count; ++tries) {
    const std::size_t i = rng_.below(all);
    if (!measured_.contains(i) && std::ranges::find(batch, i) == batch.end()) batch.push_back(i);
  }
  for (std::size_t i = 0; i < all && batch.size() < count; ++i)  // the last of a small space
    if (!measured_.contains(i) && std::ranges::find(batch, i) == batch.end()) batch.push_back(i);
  return batch;
}

std::vector<std::size_t> Explorer::fastest(std::size_t count) const {
  std::vector<std::pair<double, std::size_t>> order;
  for (const auto& [candidate, ratio] : measured_)
    if (ratio) order.emplace_back(*ratio, candidate);
  std::ranges::sort(order);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < order.size() && i < count; ++i) result.push_back(order[i].second);
  return result;
}

std::optional<std::pair<std::size_t, double>> Explorer::best() const {
  const std::vector<std::size_t> first = fastest(1);
  if (first.empty()) return std::nullopt;
  return std::pair{first[0], std::exp(*measured_.at(first[0]))};
}

}  // namespace tessera::tune
