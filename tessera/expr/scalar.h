#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/expr/dim.h"
#include "tessera/support/dtype.h"

namespace tessera {

/// The scalar functions. A new one costs a case in every reading, on purpose: operators are open,
/// scalar functions are closed. On integers Not, And, Or and Xor work on the bits; Div rounds
/// towards zero; Mod has the sign of the divisor.
enum class Fn : std::uint8_t {
  // of one argument
  Neg,
  Abs,
  Exp,
  Log,
  Sqrt,
  Sin,
  Cos,
  Atan,
  Tanh,
  Erf,
  Floor,
  Round,
  Not,
  // of two
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Max,
  Min,
  Equal,
  Less,
  LessEqual,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRight,
  // of three
  Select,
};

std::string_view to_string(Fn fn);
std::optional<Fn> parse_fn(std::string_view name);
int arity(Fn fn);

class Scalar;
struct Fold;

namespace node {

/// A number that every evaluation reads exactly (a double is a dyadic rational).
struct Constant {
  Sort sort = Sort::Value;
  double number = 0;         // of a Value
  std::int64_t integer = 0;  // of the others
};

/// The position along an axis: an output's, a fold's or a forward write's.
struct Index {
  std::string axis;
};

/// A size as an integer.
struct Size {
  Dim dim;
};

/// An element of an operand. Out of range it is `otherwise`; where there is no `otherwise`, an
/// index out of range is an error in the data.
struct Read {
  std::string operand;
  Sort sort = Sort::Value;
  std::vector<Scalar> at;
  std::shared_ptr<const Scalar> otherwise;
};

struct Apply {
  Fn fn = Fn::Add;
  std::vector<Scalar> args;
};

/// Conversion to a dtype: rounds to it, truncates towards zero, wraps.
struct Cast {
  DType to = DType::F32;
  std::shared_ptr<const Scalar> arg;
};

/// In the combine of a fold: a component of its left or right argument.
struct Partial {
  enum class Side : std::uint8_t { Left, Right };
  Side side = Side::Left;
  int component = 0;
  Sort sort = Sort::Value;
};

/// A component of the result of a fold.
struct Component {
  std::shared_ptr<const Fold> fold;
  int index = 0;
};

}  // namespace node

using Node = std::variant<node::Constant, node::Index, node::Size, node::Read, node::Apply,
                          node::Cast, node::Partial, node::Component>;

/// What one element is: an immutable expression, shared by its copies.
class Scalar {
 public:
  // NOLINTBEGIN(google-explicit-constructor): `x * 0.5` and `i + n` read as they should
  Scalar(double number);
  Scalar(int integer);
  Scalar(std::int64_t integer);
  Scalar(const Dim& size);
  // NOLINTEND(google-explicit-constructor)
  Scalar(bool truth) = delete;
  explicit Scalar(Node node);

  const Node& node() const { return *node_; }
  Sort sort() const { return sort_; }
  /// Identity, for memo tables: equal ids mean the same expression.
  const void* id() const { return node_.get(); }

  /// The integer, if this is an integer constant or a constant size.
  std::optional<std::int64_t> integer() const;

 private:
  std::shared_ptr<const Node> node_;
  Sort sort_ = Sort::Value;
};

/// Where an axis of a fold runs: from 0 to below `extent`, which may depend on outer indices.
struct Bound {
  std::string axis;
  Scalar extent;
};

/// A fold of an associative monoid over a tuple: starting from `init`, `lift` of every index tuple
/// within the bounds is taken in by `combine`, which is written over node::Partial. Sum, maximum,
/// argmax, mean with variance and online softmax are instances. With a bound that depends on an
/// outer index (`j <= i`) it is a scan.
struct Fold {
  std::vector<Bound> bounds;
  std::vector<Scalar> init, lift, combine;

  /// The function f where the fold has one component, combined as f(left, right).
  std::optional<Fn> simple() const;
};

/// Whether this is the constant 0, of whatever sort.
bool is_zero(const Scalar& scalar);

Scalar truth(bool value);
/// A number of the same sort as x.
Scalar like(const Scalar& x, double number);
Scalar index_of(std::string axis);
Scalar apply(Fn fn, std::vector<Scalar> args);

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
Scalar operator<(const Scalar& a, const Scalar& b);
Scalar operator<=(const Scalar& a, const Scalar& b);
Scalar operator>(const Scalar& a, const Scalar& b);
Scalar operator>=(const Scalar& a, const Scalar& b);
Scalar operator&&(const Scalar& a, const Scalar& b);
Scalar operator||(const Scalar& a, const Scalar& b);
Scalar operator!(const Scalar& a);

Scalar equal(const Scalar& a, const Scalar& b);
Scalar floor_div(const Scalar& a, const Scalar& b);
Scalar mod(const Scalar& a, const Scalar& b);
Scalar pow(const Scalar& a, const Scalar& b);
Scalar max(const Scalar& a, const Scalar& b);
Scalar min(const Scalar& a, const Scalar& b);
Scalar abs(const Scalar& a);
Scalar exp(const Scalar& a);
Scalar log(const Scalar& a);
Scalar sqrt(const Scalar& a);
Scalar sin(const Scalar& a);
Scalar cos(const Scalar& a);
Scalar atan(const Scalar& a);
Scalar tanh(const Scalar& a);
Scalar erf(const Scalar& a);
Scalar floor(const Scalar& a);
Scalar ceil(const Scalar& a);
/// To the nearest integer, ties to even.
Scalar round(const Scalar& a);
Scalar is_nan(const Scalar& a);
Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise);
Scalar cast(DType to, const Scalar& a);

/// Folds of one component.
Scalar sum(std::vector<Bound> bounds, const Scalar& term);
Scalar prod(std::vector<Bound> bounds, const Scalar& factor);
Scalar max_of(std::vector<Bound> bounds, const Scalar& term);
Scalar min_of(std::vector<Bound> bounds, const Scalar& term);
Scalar any_of(std::vector<Bound> bounds, const Scalar& condition);

/// A fold of several: `combine` is given the left and the right tuple.
using Tuple = std::vector<Scalar>;
using Combine = std::function<Tuple(const Tuple& left, const Tuple& right)>;
Tuple fold(std::vector<Bound> bounds, Tuple init, Tuple lift, const Combine& combine);

/// The smallest or largest number of a dtype, as the start of a maximum or minimum.
Scalar lowest(DType dtype);
Scalar highest(DType dtype);

}  // namespace tessera
