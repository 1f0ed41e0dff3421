#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/ops/opdef.h"

/// Families of operator definitions (elementwise functions with broadcasting) and helpers for
/// writing definitions.
namespace tessera {

/// Operands broadcast to a common shape: an axis of size 1 is repeated, missing leading axes have
/// size 1.
struct Broadcast {
  std::vector<Operand> operands;
  std::vector<Axis> axes;               // of the result
  std::vector<std::vector<Scalar>> at;  // where each operand is read at the result's position
  std::vector<Scalar> values;           // each operand's element there
};

/// Broadcasts all inputs that are present; they are called `names[i]` (the last name is numbered
/// when there are more inputs than names).
Broadcast broadcast(const std::vector<std::string>& names, const Signature& in);

/// Element types that an elementwise function accepts.
enum class Domain { Numbers, Floats, Integers, Truths, Any };
Expected<Done> check_domain(Domain domain, DType dtype);
/// Checks that all present inputs have one dtype.
Expected<Done> check_same_dtype(const Signature& in);

/// Elementwise operators. The result has the dtype of the first input unless it is a boolean.
using Unary = std::function<Scalar(const Scalar&)>;
using Binary = std::function<Scalar(const Scalar&, const Scalar&)>;
OpDef elementwise(std::string name, std::string summary, Unary f, Domain domain = Domain::Numbers);
OpDef elementwise(std::string name, std::string summary, Binary f, Domain domain = Domain::Numbers);
/// Elementwise operators with attributes.
using UnaryWith = std::function<Scalar(const Attrs&, const Scalar&)>;
using BinaryWith = std::function<Scalar(const Attrs&, const Scalar&, const Scalar&)>;
OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, UnaryWith f,
                  Domain domain = Domain::Numbers);
OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, BinaryWith f,
                  Domain domain = Domain::Numbers);

/// An operator with the laws of a commutative semigroup: commutative and associative.
OpDef semigroup(OpDef op, Laws::Associative associative);

/// Storage type of a value: bool for booleans, otherwise `dtype`.
DType dtype_for(const Scalar& value, DType dtype);

/// The output `out`; a value of another sort than that of the dtype is cast.
Output output(DType dtype, std::vector<MergedAxis> axes, const Scalar& value);

// Inputs.

/// Whether an optional input is present.
bool given(const Signature& in, std::size_t index);
/// Operand with exactly the sizes of an argument.
Operand as_given(std::string name, const Argument& argument);
/// Operands for the present inputs after the first, with exactly their sizes.
std::vector<Operand> rest_as_given(const std::vector<std::string>& names, const Signature& in);
/// The only element of an operand of any rank.
Expected<Scalar> only_element(const Operand& operand);

/// Compile-time value of an integer input: sizes, perhaps symbolic, or numbers.
Expected<std::vector<Dim>> known_sizes(const Signature& in, std::size_t index,
                                       std::string_view name);
Expected<Ints> known_integers(const Signature& in, std::size_t index, std::string_view name);
Expected<std::int64_t> known_integer(const Signature& in, std::size_t index, std::string_view name);

/// Normalizes axes to [0, rank) and rejects duplicates.
Expected<std::vector<int>> normal_axes(const Ints& axes, int rank);
/// All axes: 0, 1, …
Ints all_axes(int rank);

/// Dtype that an attribute names; `otherwise` if it is omitted.
Expected<DType> dtype_attr(const Attrs& attrs, std::string_view name, DType otherwise);

/// Conversion to a small float: saturation of numbers out of range, and rounding to the powers of
/// two of f8e8m0.
struct Narrowing {
  bool saturates = true;
  enum class Rounding { Up, Down, Nearest };
  Rounding rounding = Rounding::Up;
};
/// Conversion mode from the attributes `saturate` and, if there is one, `round_mode`.
Expected<Narrowing> narrowing_attr(const Attrs& attrs);
/// Converts a number to a dtype.
Scalar narrowed(DType to, const Scalar& x, const Narrowing& how);
/// Converts an element of a small type to a number to compute with.
Scalar widened(DType dtype, const Scalar& element);

/// Element of a constant tensor as a scalar constant.
Scalar constant_of(const Tensor& tensor, std::int64_t position);
/// Wraps a negative index, which counts from the end.
Scalar wrapped(const Scalar& index, const Dim& size);

}  // namespace tessera
