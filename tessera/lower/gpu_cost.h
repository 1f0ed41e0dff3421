#pragma once

#include "tessera/lower/contraction.h"

namespace tessera::lower {

/// Analytic cost model of a contraction on a GPU, in approximate cycles of a multiprocessor (SM).
/// It knows tiles and split-K; requests of blocks (tile::BlockRequest) are estimated alike.
class GpuContractionCost {
 public:
  GpuContractionCost(const Contraction& contraction, const GroupOptions& options,
                     const machine::Machine& machine);

  /// Cycles of the grid, where each program sums up one of so many parts of the reduction. The
  /// k-step is `usual_step` unless a schedule asks for another: times are proportional to it.
  double operator()(const ContractionTiles& tiles, std::int64_t usual_step,
                    std::int64_t parts = 1) const;
  /// Cycles of the kernel that adds up the partial sums of split-K.
  double of_parts(std::int64_t parts) const;

  bool uses_tensor_cores() const { return is_matrix_; }
  /// Whether tiles of 64 rows and more are multiplied by warpgroups.
  bool uses_wgmma() const { return is_hopper_; }

 private:
  const Contraction& c_;
  bool is_matrix_ = false, is_hopper_ = false, is_box_ = false;
  std::int64_t multiprocessors_ = 1;
};

}  // namespace tessera::lower
