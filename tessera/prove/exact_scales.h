#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/prove/joint_graph.h"
#include "tessera/prove/prepared.h"
#include "tessera/prove/widen.h"

namespace tessera::prove {

/// Two models with quantized tensors over the reals, as far as double goes.
///
/// In single precision, or with a product of scales that a file gives rounded, some results are
/// quantized to the next integer, and all that follows moves by more than rounding does elsewhere.
/// Here results are doubles, products of scales are products, and so is a scale of a file that is
/// one, rounded. What is left are ties, which two ways to compute a number break differently; none
/// is left where scales are moved by a small part of themselves.
class ExactScales {
 public:
  /// Source and target are prepared with scales as products (`ScaleReading::Products`, `Integers`).
  ExactScales(const Prepared& source, const Prepared& target);

  const Graph& source() const { return source_; }
  const Graph& target() const { return target_; }
  const JointGraph& joint() const { return joint_; }
  /// The joint graph over inputs in double, its scales moved at random.
  Widened moved(std::uint64_t seed) const;

 private:
  using Constants = std::vector<std::optional<Tensor>>;  // in double, by value of the joint graph

  Constants moved_constants(std::uint64_t seed) const;
  void compute_products(Constants& constants) const;

  Graph source_, target_;
  JointGraph joint_;
  std::vector<bool> is_scale_;  // by value of the joint graph
  struct Product {
    ValueId constant, product;
  };
  std::vector<Product> products_;  // constants that are rounded products of scales
};

}  // namespace tessera::prove
