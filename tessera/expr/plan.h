#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/affine.h"
#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// Affine function of axis positions: base + sum of factor * position; axes are numbered by slot.
using AffinePosition = Affine<int>;

/// Memory access with its index arithmetic taken apart: the offset is affine in the axes plus some
/// computed coordinates, and only indices that can be out of range are checked.
struct Access {
  struct Computed {
    int reg;
    std::int64_t stride, size;
    int axis;  // axis of the operand, for messages
  };
  struct Checked {
    AffinePosition at;
    std::int64_t size;
    int axis;
  };
  int operand = 0;
  AffinePosition offset;
  std::vector<Computed> computed;
  std::vector<Checked> checked;
  int otherwise = -1;  // register read when out of range; -1: that is an error
};

/// Instruction of a plan, which writes register `out`.
struct Instruction {
  enum class Kind : std::uint8_t { Constant, Index, Read, Apply, Convert, Cast, Fold };

  Kind kind = Kind::Constant;
  Fn fn = Fn::Add;
  DType to = DType::F32;  // target of a cast
  int out = -1;
  std::vector<int> args = {};  // registers
  double number = 0;           // constant of sort Value
  std::int64_t integer = 0;    // constant of another sort
  int which = -1;              // slot of an index, number of an access or of a fold
};

/// Straight-line code that runs once for each position of the axes it depends on.
using Code = std::vector<Instruction>;

/// Loop nest of one fold.
struct FoldPlan {
  struct Loop {
    int slot;
    std::int64_t extent = 0;  // static extent
    int extent_reg = -1;      // register of a computed extent, or -1
  };
  std::vector<Loop> loops;
  std::vector<int> init, lift, left, right, combined, results;  // registers, one per component
  Code body;                                                    // computes lift
  Code combine;  // computes combined from left and right
  std::optional<Fn> simple;
  /// Contraction form, if the fold is a sum of products: the one or two accesses that are
  /// multiplied, the code for their indices, and the register of the condition under which a term
  /// counts (or -1).
  std::vector<int> product;
  Code product_code;
  int product_when = -1;
};

/// Evaluation plan of a definition's output: register code with every computation hoisted to the
/// outermost loop that it depends on, and affine accesses.
struct Plan {
  std::vector<Sort> registers;
  std::vector<Access> accesses;
  std::vector<FoldPlan> folds;
  std::vector<std::int64_t> axes;  // extents of the outermost axes, in slots 0, 1, …
  int slots = 0;
  Code code;
  std::vector<int> results;  // registers
};

/// Plans the evaluation of `results` at every position of `over`. All sizes are numbers.
Expected<Plan> make_plan(const std::vector<Operand>& operands, const std::vector<Axis>& over,
                         const std::vector<Scalar>& results, const Sizes& sizes);

}  // namespace tessera
