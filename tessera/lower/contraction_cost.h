#pragma once

#include <utility>
#include <vector>

#include "tessera/lower/contraction.h"

namespace tessera::lower {

/// Whether an expression has a transcendental function, whose constants compete with accumulators
/// for registers.
bool calls_transcendental(const Scalar& value);

/// Analytic cost model of the tile sizes of a contraction on a CPU, in approximate cycles.
class ContractionCost {
 public:
  ContractionCost(const Contraction& contraction, const tile::cpu::Panels& panels,
                  const machine::Machine& machine);

  /// Cycles until the last core is done, where each takes the next program when it has done one.
  double operator()(const ContractionTiles& tiles) const;

  /// Whether operand a is read where it is, rather than copied to a dense tile.
  bool reads_in_place(const ContractionTiles& tiles) const;
  /// Whether the epilogue is applied while sums are in registers: all tiles are whole, and so is
  /// the reduction.
  bool fuses_epilogue(const ContractionTiles& tiles) const;
  std::int64_t register_rows() const { return register_rows_; }
  bool has_transcendental() const { return has_transcendental_; }

 private:
  /// Sizes of tiles, and how many there are of each.
  using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;
  static Sizes cut(const Sizes& sizes, std::int64_t extent, std::int64_t tile);

  struct ProgramTraits {
    bool in_place, fused;
  };
  double program(std::int64_t m, std::int64_t n, const ContractionTiles& tiles,
                 const ProgramTraits& traits) const;

  const Contraction& c_;
  tile::cpu::Panels panels_;
  const machine::Machine& machine_;
  double sum_ = 0;
  std::int64_t lanes_ = 4, register_rows_ = 4;
  double at_once_ = 1, size_ = 1;  // of elements, where 4 bytes are 1
  bool has_transcendental_ = false;
};

}  // namespace tessera::lower
