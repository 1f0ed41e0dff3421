#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/tile/builder.h"

namespace tessera::lower {

/// Convolution with a 3 x 3 window and stride 1, channels last:
///
///   out[n, y, x, f] = g(sum(c, r, s) image[n, y + r - top, x + s - left, c] * weight[f, c, r, s])
///
/// with any order of the weight's axes and any elementwise epilogue g. A 3D convolution has one
/// more axis, whose taps are reduced like channels: image[n, step * z + t - front, …].
struct Convolution3x3 {
  std::string image, weight;
  std::int64_t images = 0, height = 0, width = 0, channels = 0;  // of the image
  std::int64_t rows = 0, columns = 0, filters = 0;               // of the result
  std::int64_t top = 0, left = 0;                                // pixels of padding
  std::int64_t depth = 1, slices = 1;                            // of a volume, of its result
  std::int64_t taps = 1, step = 1, front = 0;                    // along that axis
  std::array<std::string, 5> axes = {};  // of the result: n, z, y, x, f; empty where there is none
  std::shared_ptr<const Fold> fold = {};
  tessera::Operand weights = {};      // its shape as numbers
  std::array<int, 5> weight_at = {};  // which of its axes are f, c, r, s, t; -1: none, extent 1
};

/// The convolution that a stage computes, if it is one, with a constant weight.
std::optional<Convolution3x3> convolution3x3(const tile::Stage& stage,
                                             const std::set<std::string>& weights);

/// Winograd's minimal filtering algorithm F(m x m, 3 x 3): tiles of m x m outputs are
///
///   out^T · ((filter · w · filter^T) * (in^T · d · in)) · out      * element by element
///
/// from tiles d of (m + 2)^2 pixels. S. Winograd, "Arithmetic complexity of computations", 1980;
/// A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks", 2016.
struct Winograd {
  using Matrix = std::vector<std::vector<double>>;
  int m = 0;
  Matrix in = {};      // [m + 2, m + 2]
  Matrix filter = {};  // [m + 2, 3]
  Matrix out = {};     // [m, m + 2]

  int points() const { return m + 2; }
  /// For m = 2 and m = 4.
  static Winograd of(int m);
};

/// Emits matrix · x for tiles x of one type, with common subexpressions (up to sign) of rows and
/// columns shared.
std::vector<tile::ValueId> product(tile::Builder& builder, const Winograd::Matrix& matrix,
                                   const std::vector<tile::ValueId>& x);

/// Schedule with the lowest estimated cost; none where the direct convolution is about as fast.
std::optional<WinogradSchedule> plan_winograd(const Convolution3x3& convolution,
                                              const machine::Machine& machine);
/// Candidate schedules with their estimated costs, the lowest first.
std::vector<std::pair<WinogradSchedule, double>> winograd_candidates(
    const Convolution3x3& convolution, const machine::Machine& machine);
double winograd_cost(const WinogradSchedule& schedule, const Convolution3x3& convolution,
                     const machine::Machine& machine);
/// Checks that a schedule fits a convolution and a machine.
Expected<Done> check(const WinogradSchedule& schedule, const Convolution3x3& convolution,
                     const machine::Machine& machine);
Expected<GroupCode> lower_winograd(const tile::Stage& stage, const Convolution3x3& convolution,
                                   const WinogradSchedule& plan);

}  // namespace tessera::lower
