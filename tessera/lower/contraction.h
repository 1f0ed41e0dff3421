#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/affine.h"
#include "tessera/lower/bytes.h"
#include "tessera/lower/group.h"
#include "tessera/lower/range.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::lower {

/// Index variable with its extent.
struct IndexAxis {
  std::string name;
  std::int64_t extent = 1;
  bool operator==(const IndexAxis&) const = default;
};
using IndexAxes = std::vector<IndexAxis>;
std::int64_t count(const IndexAxes& axes);

/// Access to a tensor by boxes in its own axes; elements out of bounds are zero (as a TMA box).
/// Tiles are contiguous in memory: an axis with a strided index is split into quotient and
/// remainder.
struct BoxedRead {
  /// Additional index variables: quotient and remainder of a non-negative number.
  struct Divided {
    std::string quotient, remainder;
    Scalar number;
    std::int64_t by = 1;
  };
  tile::Extents shape = {}, strides = {};
  std::vector<Scalar> at = {};
  std::vector<Divided> divided = {};
};

/// Access to a tensor as a strided view with an axis for every index variable.
struct StridedRead {
  std::string view;     // name of the view in the expression
  std::string operand;  // the tensor
  DType dtype = DType::F32;
  AffineIndex at;  // in elements
  std::optional<BoxedRead> box = {};
};

/// Operand of a contraction: an expression over `reads`, each named without indices.
struct Factor {
  Scalar value = 0.0;
  std::vector<StridedRead> reads = {};

  /// Whether it is a tensor of f32 in memory, without computation.
  bool is_plain() const;
  /// Whether two index variables form one strided axis in memory, the second one faster.
  bool merges(const IndexAxis& outer, const IndexAxis& inner) const;
};

/// Contraction (matmul, convolution): a sum of products of two operands that vary with different
/// axes of the output:
///
///   out[batch, rows, columns] = f(sum(sums) a[batch, rows, sums] * b[batch, sums, columns])
///
/// with an elementwise epilogue f. An operand that is read out of bounds (unless by boxes), or at
/// positions that are not affine, is computed by a stage of its own before (`before`). For
/// quantized operands a and b are the bytes; the sums that zero points are multiplied with are
/// computed before too, or with the weights.
struct Contraction {
  const tile::Stage* stage = nullptr;
  std::shared_ptr<const Fold> fold = nullptr;
  IndexAxes batch = {}, rows = {}, sums = {};
  IndexAxis column = {};
  std::set<std::string> widened = {};  // reduction axes padded beyond the fold, with zeros
  Factor a = {}, b = {};
  tile::Stages before = {};
  bool is_a_ahead = false;  // a is computed by a stage before, so that it can be copied
  /// The operand b where it is a weight: over the index variables themselves.
  std::optional<Scalar> known_b = {};
  std::string weight = {};  // the tensor that it reads

  /// Quantized operands.
  struct Bytes {
    DType a = DType::I8, b = DType::I8;
    Scalar a_shift = 0, b_shift = 0;
    std::string a_sums = {}, b_sums = {};  // [batch, rows] and [batch, column], if needed
  };
  std::optional<Bytes> bytes = {};

  /// Whether a reduction axis is one of the fold, and not padding.
  bool sums_over(const IndexAxis& axis) const {
    return std::ranges::count(fold->bounds, axis.name, &Bound::axis) > 0;
  }
  /// Whether an index variable shares an axis of the result with others.
  bool is_merged(const IndexAxis& axis) const;
  /// Whether b is packed at run time, and its columns do not lie side by side: a weight [N, K] that
  /// is an input.
  bool packs_b_across() const;
  /// Whether two index variables can be fused into one axis, the second one faster, in both
  /// operands.
  bool merges(const IndexAxis& outer, const IndexAxis& inner) const {
    return a.merges(outer, inner) && b.merges(outer, inner);
  }
};

/// Multiply-adds of the fold; padding is none of it.
double multiply_adds(const Contraction& contraction);

/// Fused index variables, which are tiled as one axis.
struct AxisGroup {
  IndexAxes axes = {};
  std::int64_t tile = 1;

  std::int64_t extent() const { return count(axes); }
  const std::string& name() const { return axes.back().name; }
};
using AxisGroups = std::vector<AxisGroup>;

/// Rounding of operands on a GPU.
struct Rounding {
  DType to = DType::F32;
  bool exact = false;            // zero times infinity is NaN
  bool changes_nothing = false;  // operands are numbers of that type anyway
};

/// Contraction of a group, if it is one. With a rounding, an operand that is read out of bounds is
/// accessed in place by boxes, or else copied, in the rounded dtype.
std::optional<Contraction> contraction_of(const Group& group, std::optional<Rounding> rounding);

/// Channel padding of operand a, if it is an image: its channels are padded to whole k-steps; few
/// channels to 16 bytes, as a copy, and the window to a power of two. The padding of the copy or of
/// the weights is zero, so it is not done where zero times infinity has to be NaN.
Scalar pad_channels(const Scalar& value, const Rounding& rounding, Contraction& contraction,
                    AxisExtents& extents);

/// Split-bf16 weights: each weight as the sum of two bf16 numbers, the rounded value and the
/// residual, by one more reduction axis. For small contractions, where the cost is low.
void split_weights_bf16(Contraction& contraction);

/// Packings of operand b, if it is a weight, into panels, and of its sums for zero points; `batch`
/// are the batch variables that it varies with.
std::vector<Packing> packings_of(const Contraction& contraction, const IndexAxes& batch,
                                 const tile::cpu::Panels& panels);

/// Tile sizes of a contraction: the output tile of one program, and the tile of each k-step.
struct ContractionTiles {
  std::vector<std::int64_t> rows = {};  // by axis of rows
  std::int64_t columns = 1;
  AxisGroups sums = {};        // their tiles are the k extent of one dot
  bool columns_outer = false;  // grid order: all rows before the next columns

  std::int64_t row_count() const;
  std::int64_t sum_count() const;
};

/// Tile sizes with the layout of the packed weights.
struct ContractionTiling {
  tile::cpu::Panels panels = {};
  ContractionTiles tiles = {};
};
/// Code of a contraction with a tiling; that of a GPU has the requests of the schedule in
/// `options`.
Expected<GroupCode> lower_tiled(const Contraction& contraction, ContractionTiling tiling,
                                const machine::Machine& machine, const GroupOptions& options);
/// Tiling with the fewest estimated cycles on a CPU.
ContractionTiling default_tiling(const Contraction& contraction, const GroupOptions& options,
                                 const machine::Machine& machine);
/// Tiling of a schedule, if it is legal, and the schedule of a tiling.
Expected<ContractionTiling> tiling_of(const Contraction& contraction,
                                      const ContractionSchedule& schedule,
                                      const GroupOptions& options, const machine::Machine& machine);
ContractionSchedule schedule_of(const ContractionTiling& tiling);
/// Supported widths of the packed panels.
std::vector<std::int64_t> panel_widths(const Contraction& contraction,
                                       const tile::cpu::Panels& panels,
                                       const machine::Machine& machine);

/// Candidate tiling with its estimated cycles.
struct ContractionCandidate {
  ContractionTiling tiling = {};
  double cycles = 0;
};
/// All legal tilings that are enumerated for a CPU, the fewest estimated cycles first.
std::vector<ContractionCandidate> contraction_candidates(const Contraction& contraction,
                                                         const GroupOptions& options,
                                                         const machine::Machine& machine);

/// Reduction axes, with adjacent axes fused where both operands allow it.
AxisGroups merged_sums(const Contraction& contraction);

/// Row axes of a tile, with adjacent axes fused where operand a allows it and tiles cover them.
AxisGroups row_groups(const Contraction& contraction, const std::vector<std::int64_t>& tiles);

}  // namespace tessera::lower
