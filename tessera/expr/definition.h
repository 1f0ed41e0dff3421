#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

/// Definitions in index notation: the inputs of an operator, its index variables, and what each
/// output element is (compare Halide's algorithms and TVM's te.compute).
namespace tessera {

using Shape = std::vector<Dim>;

/// Element type and symbolic shape of a tensor.
struct TensorType {
  DType dtype = DType::F32;
  Shape shape = {};
  bool operator==(const TensorType&) const = default;
};

/// Input of an operator as its definition sees it: type, and content where it is known at compile
/// time.
struct Argument {
  bool present = true;  // an optional input may be left out
  TensorType type = {};
  /// Elements of a small integer tensor where they are known, perhaps symbolically: sizes, axes,
  /// pads.
  std::optional<std::vector<Dim>> value = {};
  /// Elements of a small constant tensor of numbers: scales, limits.
  std::optional<Tensor> content = {};

  int rank() const { return static_cast<int>(type.shape.size()); }
  const Dim& dim(int axis) const { return type.shape[static_cast<std::size_t>(axis)]; }
  DType dtype() const { return type.dtype; }
};

using Signature = std::vector<Argument>;

/// Index variable and its extent. Without a stated extent the size is the symbol `#name`, which is
/// solved for by matching operands with the given shapes.
struct Axis {
  std::string name;
  std::optional<Dim> extent = {};

  Dim size() const { return extent ? *extent : Dim::symbol("#" + name); }
  // NOLINTBEGIN(google-explicit-constructor): an axis stands for its size, its index and its loop
  operator Dim() const { return size(); }
  operator Scalar() const { return index_of(name); }
  operator Bound() const { return {name, size()}; }
  // NOLINTEND(google-explicit-constructor)
};

/// Axes `prefix0, prefix1, …` without stated extents.
std::vector<Axis> axes(const std::string& prefix, int count);
std::vector<Bound> bounds(const std::vector<Axis>& over);

/// Tensor axis that is indexed by several index variables, the last one fastest (a reshape of these
/// axes into one).
struct MergedAxis {
  std::vector<Axis> parts;

  // NOLINTBEGIN(google-explicit-constructor): the product of the sizes, and the position
  operator Dim() const;
  operator Scalar() const;
  // NOLINTEND(google-explicit-constructor)
};
MergedAxis merge(const Axis& outer, const Axis& inner);

/// Input tensor of a definition: a name, an element type and a shape.
struct Operand {
  std::string name;
  DType dtype = DType::F32;
  Shape shape = {};

  Scalar operator()(std::vector<Scalar> at) const;
  /// Element at a position, or zero (or `otherwise`) where an index is out of range.
  Scalar or_zero(std::vector<Scalar> at) const;
  Scalar or_else(std::vector<Scalar> at, const Scalar& otherwise) const;
};

/// Scatter: out[target] = value for all positions of `over`, or combined with what is there.
struct ScatterWrite {
  std::vector<Axis> over;
  std::vector<Scalar> target;  // a position out of range is an error in the data
  Scalar value = 0;
  std::optional<Fn> combine = {};  // none: the last write wins, in row-major order of `over`
};

/// Output tensor of a definition. Each of its axes has one index variable or, merged, several;
/// `value` is the element at a position, and a forward write then changes some elements.
struct Output {
  std::string name;
  DType dtype = DType::F32;
  std::vector<MergedAxis> axes;
  Scalar value;
  std::optional<ScatterWrite> forward = {};

  Shape shape() const;
};

/// Meaning of an operator on inputs of one signature.
struct Definition {
  std::vector<Operand> inputs;
  std::vector<Output> outputs;
};

/// Concatenation of two lists.
template <class T>
std::vector<T> concat(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Lists of axes as output axes, indices and sizes.
std::vector<MergedAxis> each(const std::vector<Axis>& axes);
std::vector<Scalar> indices(const std::vector<Axis>& axes);
Shape sizes(const std::vector<Axis>& axes);

}  // namespace tessera
