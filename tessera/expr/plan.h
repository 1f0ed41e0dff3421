#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// base + sum of factor * position, over axes by their slot.
struct Affine {
  struct Term {
    int slot;
    std::int64_t factor;
  };
  std::int64_t base = 0;
  std::vector<Term> terms = {};
};

/// A read with its index arithmetic taken apart: the offset is affine in the axes plus some
/// coordinates that are computed, and only what can leave its range is checked.
struct Access {
  struct Computed {
    int reg;
    std::int64_t stride, size;
    int axis;  // of the operand, for messages
  };
  struct Checked {
    Affine at;
    std::int64_t size;
    int axis;
  };
  int operand = 0;
  Affine offset;
  std::vector<Computed> computed;
  std::vector<Checked> checked;
  int otherwise = -1;  // register, or -1: out of range is an error
};

/// One step of a plan: what goes into register `out`.
struct Instruction {
  enum class Kind : std::uint8_t { Constant, Index, Read, Apply, Convert, Cast, Fold };

  Kind kind = Kind::Constant;
  Fn fn = Fn::Add;
  DType to = DType::F32;  // of a cast
  int out = -1;
  std::vector<int> args = {};  // registers
  double number = 0;           // of a constant Value
  std::int64_t integer = 0;    // of a constant of another sort
  int which = -1;              // slot of an index, number of an access or of a fold
};

/// Instructions that run together, once for each position of the axes they depend on.
using Code = std::vector<Instruction>;

struct FoldPlan {
  struct Loop {
    int slot;
    std::int64_t extent = 0;  // where it is known
    int extent_reg = -1;      // where it is computed
  };
  std::vector<Loop> loops;
  std::vector<int> init, lift, left, right, combined, results;  // registers, one per component
  Code body;                                                    // computes lift
  Code combine;  // computes combined from left and right
  std::optional<Fn> simple;
  /// Where the fold is a sum of products: the one or two accesses that are multiplied, the code for
  /// their indices, and the register of the condition under which a term counts (or -1).
  std::vector<int> product;
  Code product_code;
  int product_when = -1;
};

/// A definition's output laid out for evaluation: registers instead of expressions, every
/// computation at the outermost loop that it depends on, affine accesses.
struct Plan {
  std::vector<Sort> registers;
  std::vector<Access> accesses;
  std::vector<FoldPlan> folds;
  std::vector<std::int64_t> axes;  // extents of the outermost axes, which have slots 0, 1, …
  int slots = 0;
  Code code;
  std::vector<int> results;  // registers
};

/// Plans the values `results`, each at every position of `over`. Sizes are numbers by now.
Expected<Plan> make_plan(const std::vector<Operand>& operands, const std::vector<Axis>& over,
                         const std::vector<Scalar>& results, const Sizes& sizes);

}  // namespace tessera
