#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

using Shape = std::vector<Dim>;

struct TensorType {
  DType dtype = DType::F32;
  Shape shape = {};
  bool operator==(const TensorType&) const = default;
};

/// What a definition may know of one of its inputs.
struct Argument {
  bool present = true;  // an optional input may be left out
  TensorType type = {};
  /// The elements of a small integer tensor, where they are known: sizes, axes, pads.
  std::optional<std::vector<Dim>> value = {};
  /// The same for a small tensor of numbers whose content is fixed: scales, limits.
  std::optional<Tensor> content = {};

  int rank() const { return static_cast<int>(type.shape.size()); }
  const Dim& dim(int axis) const { return type.shape[static_cast<std::size_t>(axis)]; }
  DType dtype() const { return type.dtype; }
};

using Signature = std::vector<Argument>;

/// An index variable and where it runs. Its size is what is stated, or, if nothing is, the symbol
/// `#name`, which is solved for by matching operands with the shapes that are given.
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

/// `prefix0, prefix1, …`, unsized.
std::vector<Axis> axes(const std::string& prefix, int count);
std::vector<Bound> bounds(const std::vector<Axis>& over);

/// One tensor axis that is run through by several index variables, the last one fastest.
struct Merged {
  std::vector<Axis> parts;

  // NOLINTBEGIN(google-explicit-constructor): the product of the sizes, and the position
  operator Dim() const;
  operator Scalar() const;
  // NOLINTEND(google-explicit-constructor)
};
Merged merge(const Axis& outer, const Axis& inner);

/// A tensor that is read: a name and the sizes of its axes.
struct Operand {
  std::string name;
  DType dtype = DType::F32;
  Shape shape = {};

  Scalar operator()(std::vector<Scalar> at) const;
  /// The element, or zero (or `otherwise`) where an index is out of range.
  Scalar or_zero(std::vector<Scalar> at) const;
  Scalar or_else(std::vector<Scalar> at, const Scalar& otherwise) const;
};

/// Writes that say where they go: out[target] = value, or combined with what is there.
struct Forward {
  std::vector<Axis> over;
  std::vector<Scalar> target;  // a position out of range is an error in the data
  Scalar value = 0;
  std::optional<Fn> combine = {};  // none: the last write wins, in row-major order of `over`
};

/// A tensor that is computed. Each of its axes is run through by one index variable or, merged, by
/// several; `value` says what an element is, and a forward write then changes some.
struct Output {
  std::string name;
  DType dtype = DType::F32;
  std::vector<Merged> axes;
  Scalar value;
  std::optional<Forward> forward = {};

  Shape shape() const;
};

/// What an operator means on inputs of one signature.
struct Definition {
  std::vector<Operand> inputs;
  std::vector<Output> outputs;
};

/// One list after the other.
template <class T>
std::vector<T> concat(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Lists of axes as what they are used for.
std::vector<Merged> each(const std::vector<Axis>& axes);
std::vector<Scalar> indices(const std::vector<Axis>& axes);
Shape sizes(const std::vector<Axis>& axes);

}  // namespace tessera
