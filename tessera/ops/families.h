#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/ops/opdef.h"

namespace tessera {

/// Operands brought to a common shape: an axis of size 1 is repeated, missing leading axes count
/// as 1.
struct Broadcast {
  std::vector<Operand> operands;
  std::vector<Axis> axes;               // of the result
  std::vector<std::vector<Scalar>> at;  // where each operand is read at the result's position
  std::vector<Scalar> values;           // each operand's element there
};

/// Broadcasts all the inputs that are present; they are called `names[i]` (the last name is
/// numbered when there are more inputs than names).
Broadcast broadcast(const std::vector<std::string>& names, const Signature& in);

/// The element types that a function is defined on.
enum class Domain { Numbers, Floats, Integers, Truths, Any };
Expected<Done> check_domain(Domain domain, DType dtype);
/// All the inputs that are present are of one type.
Expected<Done> check_same_dtype(const Signature& in);

/// Functions of the elements. The result has the dtype of the first input unless it is a truth
/// value.
using Unary = std::function<Scalar(const Scalar&)>;
using Binary = std::function<Scalar(const Scalar&, const Scalar&)>;
OpDef elementwise(std::string name, std::string summary, Unary f, Domain domain = Domain::Numbers);
OpDef elementwise(std::string name, std::string summary, Binary f, Domain domain = Domain::Numbers);
/// With attributes.
using UnaryWith = std::function<Scalar(const Attrs&, const Scalar&)>;
using BinaryWith = std::function<Scalar(const Attrs&, const Scalar&, const Scalar&)>;
OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, UnaryWith f,
                  Domain domain = Domain::Numbers);
OpDef elementwise(std::string name, std::string summary, std::vector<AttrSpec> attrs, BinaryWith f,
                  Domain domain = Domain::Numbers);

/// Truth values of a Scalar are stored as bool, the rest as `dtype`.
DType dtype_for(const Scalar& value, DType dtype);

/// The output `out`; a value of another sort than the dtype's is cast.
Output output(DType dtype, std::vector<Merged> axes, const Scalar& value);

// Inputs.

/// Whether an optional input is there.
bool given(const Signature& in, std::size_t index);
/// An operand of exactly the sizes that an argument has.
Operand as_given(std::string name, const Argument& argument);
/// The same for those of the inputs that are there, but the first.
std::vector<Operand> rest_as_given(const std::vector<std::string>& names, const Signature& in);
/// The element of an input that has one, of whatever rank.
Expected<Scalar> only_element(const Operand& operand);

/// The known content of an integer input: sizes, perhaps symbolic, and numbers.
Expected<std::vector<Dim>> known_sizes(const Signature& in, std::size_t index,
                                       std::string_view name);
Expected<Ints> known_integers(const Signature& in, std::size_t index, std::string_view name);
Expected<std::int64_t> known_integer(const Signature& in, std::size_t index, std::string_view name);

/// Axes in [0, rank), each named once.
Expected<std::vector<int>> normal_axes(const Ints& axes, int rank);
/// All of them: 0, 1, …
Ints all_axes(int rank);

/// The dtype that an attribute names; `otherwise` if it is left out.
Expected<DType> dtype_attr(const Attrs& attrs, std::string_view name, DType otherwise);

/// How a number becomes an element of a small float: whether what is beyond the range becomes the
/// nearest number of the type, and which power of two f8e8m0 takes.
struct Narrowing {
  bool saturates = true;
  enum class Rounding { Up, Down, Nearest };
  Rounding rounding = Rounding::Up;
};
/// By the attributes saturate and, if there is one, round_mode.
Expected<Narrowing> narrowing_attr(const Attrs& attrs);
/// A number converted to a dtype.
Scalar narrowed(DType to, const Scalar& x, const Narrowing& how);
/// An element of a dtype as a number to compute with.
Scalar widened(DType dtype, const Scalar& element);

/// An element of a constant.
Scalar constant_of(const Tensor& tensor, std::int64_t position);
/// An index that counts from the end where it is negative.
Scalar wrapped(const Scalar& index, const Dim& size);

}  // namespace tessera
