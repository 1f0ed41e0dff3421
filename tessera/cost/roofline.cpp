#include "tessera/cost/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera::cost {
namespace {

constexpr std::size_t kFeatures = 3;
constexpr std::size_t kEnough = 8;  // measurements of a kind
using Row = std::array<double, kFeatures>;

/// Defaults of a machine without measurements: clock, bytes of vectors issued per cycle, memory
/// bandwidth.
constexpr double kClock = 2.5e9, kBytesPerCycle = 64, kBytesPerSecond = 12e9;
constexpr double kLaunchOne = 0.3e-6, kLaunchMany = 3e-6;
/// The same of a GPU (NVIDIA's data sheet of H200: 989 TFLOP/s of dense f16 and 4.8 TB/s with 132
/// multiprocessors); between kernels of a CUDA graph, some two microseconds.
constexpr double kGpuFlops = 989e12 / 132, kGpuBytesPerSecond = 4.8e12, kGpuLaunch = 2e-6;

/// Typical fraction of peak by kind of work, in operations (a multiply-add counts as four: two
/// reads, a product, a sum).
struct TypicalCost {
  std::string_view kind;
  double of_peak;
};
constexpr std::array kUsual{TypicalCost{"dot", 1.5}, TypicalCost{"winograd", 3.0},
                            TypicalCost{"attention", 4.0}, TypicalCost{"rows", 1.5}};
constexpr double kOtherwise = 0.5;
constexpr double kHostSecondsPerByte = 20e-9;

/// Least-squares factors for the chosen features, such that all rows come close to 1; nothing if
/// they are not determined or one is negative.
std::optional<Row> least_squares(const std::vector<Row>& rows, unsigned chosen) {
  std::vector<std::size_t> features;
  for (std::size_t f = 0; f < kFeatures; ++f)
    if ((chosen >> f & 1) != 0) features.push_back(f);
  const std::size_t n = features.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0.0));
  for (const Row& row : rows)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += row[features[i]] * row[features[j]];
      a[i][n] += row[features[i]];
    }
  // Scales each column: factors differ by many orders of magnitude.
  std::vector<double> scale(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i][i] <= 0) return std::nullopt;
    scale[i] = 1 / std::sqrt(a[i][i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a[i][j] *= scale[i] * scale[j];
    a[i][n] *= scale[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t k = i + 1; k < n; ++k)
      if (std::abs(a[k][i]) > std::abs(a[pivot][i])) pivot = k;
    if (std::abs(a[pivot][i]) < 1e-9) return std::nullopt;
    std::swap(a[i], a[pivot]);
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = a[k][i] / a[i][i];
      for (std::size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  Row result{};
  for (std::size_t i = 0; i < n; ++i) {
    const double factor = a[i][n] / a[i][i] * scale[i];
    if (!(factor >= 0)) return std::nullopt;
    result[features[i]] = factor;
  }
  return result;
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Roofline::Roofline(const Target& target, std::span<const Measurement> measured) : target_(target) {
  const machine::Machine& machine = target.machine;
  const double threads = std::max(1, target.threads);
  if (machine.is_gpu() && target_.flops_per_second <= 0) {
    target_.flops_per_second = kGpuFlops * machine.gpu->multiprocessors;
    target_.bytes_per_second = kGpuBytesPerSecond;
    target_.seconds_per_launch = kGpuLaunch;
  }
  if (target_.flops_per_second <= 0)
    target_.flops_per_second =
        std::max<double>(kBytesPerCycle, 2.0 * machine.vector_bytes) / 4 * 2 * kClock * threads;
  if (target_.bytes_per_second <= 0)
    target_.bytes_per_second = kBytesPerSecond * std::min(threads, 4.0);
  if (target_.seconds_per_launch <= 0)
    target_.seconds_per_launch = threads > 1 ? kLaunchMany : kLaunchOne;
  std::map<std::string, std::vector<const Measurement*>> by_kind;
  for (const Measurement& one : measured) by_kind[kind_of(one.strategy)].push_back(&one);
  for (const auto& [kind, all] : by_kind)
    fitted_.emplace(kind, all.size() >= kEnough ? fit(all) : usual(kind));
  for (const auto& [kind, all] : by_kind) centre(fitted_.at(kind), all);
}

Roofline::Factors Roofline::fit(std::span<const Measurement* const> measured) {
  std::vector<Row> rows;
  for (const Measurement* one : measured)
    rows.push_back(
        {one->operations / one->seconds, one->bytes / one->seconds, one->launches / one->seconds});
  Row best{};
  double least = INFINITY;
  for (unsigned chosen = 1; chosen < 1u << kFeatures; ++chosen) {
    const auto factors = least_squares(rows, chosen);
    if (!factors) continue;
    double error = 0;
    for (const Row& row : rows) error += std::pow(dot(row, *factors) - 1, 2);
    if (error < least) {
      least = error;
      best = *factors;
    }
  }
  return {best[0], best[1], best[2]};
}

void Roofline::centre(Factors& factors, std::span<const Measurement* const> measured) {
  std::vector<double> ratios;
  for (const Measurement* one : measured)
    ratios.push_back(
        factors.of(
            {.operations = one->operations, .bytes = one->bytes, .launches = one->launches}) /
        one->seconds);
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
  const double middle = ratios[ratios.size() / 2];
  if (!(middle > 0)) return;
  factors.per_operation /= middle;
  factors.per_byte /= middle;
  factors.per_launch /= middle;
}

Roofline::Factors Roofline::usual(const std::string& kind) const {
  if (kind == "host") return {.per_operation = kHostSecondsPerByte};
  const auto* const found = std::ranges::find(kUsual, kind, &TypicalCost::kind);
  const double of_peak = found != kUsual.end() ? found->of_peak : kOtherwise;
  return {.per_operation = 1 / (target_.flops_per_second * of_peak),
          .per_byte = 1 / target_.bytes_per_second,
          .per_launch = target_.seconds_per_launch};
}

double Roofline::seconds(const Work& work) const {
  const auto it = fitted_.find(work.kind);
  return (it != fitted_.end() ? it->second : usual(work.kind)).of(work);
}

namespace {

std::vector<double> ranks_of(std::span<const double> numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  std::vector<double> ranks(numbers.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && numbers[order[end]] == numbers[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return 1;
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xx * yy > 0 ? xy / std::sqrt(xx * yy) : 1;
}

}  // namespace tessera::cost
