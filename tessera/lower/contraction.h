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

/// An index variable and how far it runs.
struct IndexAxis {
  std::string name;
  std::int64_t extent = 1;
  bool operator==(const IndexAxis&) const = default;
};
using IndexAxes = std::vector<IndexAxis>;
std::int64_t count(const IndexAxes& axes);

/// A read of a tensor in its own axes, which may leave it: what lies outside is zero. Tiles lie
/// along memory: where an index variable counts every other element, an axis is two, of quotients
/// and of remainders.
struct BoxedRead {
  /// Two index variables more: the quotient and the remainder of a number that is not negative.
  struct Divided {
    std::string quotient, remainder;
    Scalar number;
    std::int64_t by = 1;
  };
  tile::Extents shape = {}, strides = {};
  std::vector<Scalar> at = {};
  std::vector<Divided> divided = {};
};

/// A read as a view of memory with an axis for every index variable: where its element lies.
struct StridedRead {
  std::string view;     // what it is called in the expression that it was taken from
  std::string operand;  // the tensor
  DType dtype = DType::F32;
  AffineIndex at;  // in elements
  std::optional<BoxedRead> box = {};
};

/// One factor of the products: an expression over `reads`, each read by its name without indices.
struct Factor {
  Scalar value = 0.0;
  std::vector<StridedRead> reads = {};

  /// Whether it is what lies in memory, as numbers of f32.
  bool is_plain() const;
  /// Whether memory is run through evenly by two index variables, the second one faster.
  bool merges(const IndexAxis& outer, const IndexAxis& inner) const;
};

/// A sum of products of which each factor varies with axes of the output of its own:
///
///   out[batch, rows, columns] = f(sum(sums) a[batch, rows, sums] * b[batch, sums, columns])
///
/// with f of anything at the same position. A factor that reads outside of its tensor (unless it
/// can be read as a box), or at positions that are not affine, is computed first, as a stage of its
/// own (`before`). Of integers
/// a and b are the bytes; sums of bytes that their shifts are multiplied with are computed first
/// too, or with the weights.
struct Contraction {
  const tile::Stage* stage = nullptr;
  std::shared_ptr<const Fold> fold = nullptr;
  IndexAxes batch = {}, rows = {}, sums = {};
  IndexAxis column = {};
  bool widened = false;  // some of the sums run further than the fold, where products are zero
  Factor a = {}, b = {};
  tile::Stages before = {};
  /// The factor b where it is known when code is made: over the index variables themselves.
  std::optional<Scalar> known_b = {};
  std::string weight = {};  // the tensor that it reads

  /// Products of bytes.
  struct Bytes {
    DType a = DType::I8, b = DType::I8;
    Scalar a_shift = 0, b_shift = 0;
    std::string a_sums = {}, b_sums = {};  // [batch, rows] and [batch, column], where it takes them
  };
  std::optional<Bytes> bytes = {};

  /// Whether a sum is one of the fold, and was not added.
  bool sums_over(const IndexAxis& axis) const {
    return std::ranges::count(fold->bounds, axis.name, &Bound::axis) > 0;
  }
  /// Whether an index variable shares an axis of the result with others.
  bool is_merged(const IndexAxis& axis) const;
  /// Whether two index variables count as one, the second one faster, wherever they are read.
  bool merges(const IndexAxis& outer, const IndexAxis& inner) const {
    return a.merges(outer, inner) && b.merges(outer, inner);
  }
};

/// Index variables that are run through as one, in order; part of them at a time.
struct AxisGroup {
  IndexAxes axes = {};
  std::int64_t tile = 1;

  std::int64_t extent() const { return count(axes); }
  const std::string& name() const { return axes.back().name; }
};
using AxisGroups = std::vector<AxisGroup>;

/// What a GPU rounds factors to.
struct Rounding {
  DType to = DType::F32;
  bool exact = false;  // zeros times infinity are to be seen
};

/// Nothing where the group is no such thing. With a rounding, a factor that reads outside of its
/// tensor may be read where it lies, or else a copy is made that is rounded already.
std::optional<Contraction> contraction_of(const Group& group, std::optional<Rounding> rounding);

/// The factor a, if it is an image with few channels, for a copy in which 16 bytes fit everywhere:
/// there are as many more channels as that takes, and the window is as much wider as makes a power
/// of two of a piece of it. The copy has zeros there, or the weights do: not where zeros times
/// infinity are to be seen.
Scalar with_more_channels(const Scalar& value, const Rounding& rounding, Contraction& contraction,
                          AxisExtents& extents);

/// Weights of bf16 as two factors, what they are rounded to and what that leaves: one more sum. For
/// products that are done in little time anyway.
void add_rest_of_weights(Contraction& contraction);

/// The factor b in panels, where it is known, and its sums where shifts of bytes are multiplied
/// with them; `batch` are the index variables of the batch that it varies with.
std::vector<Packing> packings_of(const Contraction& contraction, const IndexAxes& batch,
                                 const tile::cpu::Panels& panels);

/// What one program computes, and how it walks along the sum.
struct ContractionTiles {
  std::vector<std::int64_t> rows = {};  // of each axis of rows
  std::int64_t columns = 1;
  AxisGroups sums = {};        // the tiles of all of them are what one dot takes in
  bool columns_outer = false;  // programs run through all rows before the next columns

  std::int64_t row_count() const;
  std::int64_t sum_count() const;
};
ContractionTiles choose_tiles(const Contraction& contraction, const tile::cpu::Panels& panels,
                              const machine::Machine& machine);

/// The same for a GPU: powers of two, which registers and tensor cores hold. Rows, columns, and the
/// sum where it is one axis, may end before the tiles do.
ContractionTiles gpu_tiles(const Contraction& contraction, const GroupOptions& options,
                           const machine::Machine& machine);

/// A sum that is cut along one of its axes.
struct SumParts {
  std::string axis = {};
  std::int64_t parts = 1;
};
/// How a GPU should cut the sum so that more of it has work; one part: it has enough.
SumParts parts_of_sum(const Contraction& contraction, const GroupOptions& options,
                      const machine::Machine& machine);
/// The sum in parts, each a position along the first axis of a tensor, as one stage, and what is
/// made of their sum as another.
tile::Stages split_sum(const Contraction& contraction, const SumParts& cut);

/// Neighbours that count as one wherever they are read, as one.
AxisGroups merged_sums(const Contraction& contraction);

/// The rows of a tile as a is read: neighbours that merge and are whole are one.
AxisGroups row_groups(const Contraction& contraction, const std::vector<std::int64_t>& tiles);

}  // namespace tessera::lower
