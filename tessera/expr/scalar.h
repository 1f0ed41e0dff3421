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

/// Scalar functions of index notation. The set is closed on purpose: a new function costs a case in
/// every reading (shape, evaluation, linearity, …), while operators are open. On integers Not, And,
/// Or and Xor are bitwise; Div rounds towards zero; Mod has the sign of the divisor.
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

/// Constant that every evaluation represents exactly (a double is a dyadic rational).
struct Constant {
  Sort sort = Sort::Value;
  double number = 0;         // of a Value
  std::int64_t integer = 0;  // of the others
};

/// Position along an axis of an output, a fold or a forward write.
struct Index {
  std::string axis;
};

/// Symbolic size as an integer.
struct Size {
  Dim dim;
};

/// Element of an operand. Out of range it is `otherwise`; without `otherwise`, an index out of
/// range is an error in the data.
struct Read {
  std::string operand;
  Sort sort = Sort::Value;
  std::vector<Scalar> at;
  std::shared_ptr<const Scalar> otherwise;
};

/// Application of a scalar function.
struct Apply {
  Fn fn = Fn::Add;
  std::vector<Scalar> args;
};

/// Conversion to a dtype: rounds floats, truncates towards zero, wraps integers.
struct Cast {
  DType to = DType::F32;
  std::shared_ptr<const Scalar> arg;
};

/// Component of the left or right argument of a fold's combiner.
struct Partial {
  enum class Side : std::uint8_t { Left, Right };
  Side side = Side::Left;
  int component = 0;
  Sort sort = Sort::Value;
};

/// Component of the result of a fold.
struct Component {
  std::shared_ptr<const Fold> fold;
  int index = 0;
};

}  // namespace node

using Node = std::variant<node::Constant, node::Index, node::Size, node::Read, node::Apply,
                          node::Cast, node::Partial, node::Component>;

/// Scalar expression: an immutable expression tree in index notation that says what one element is;
/// copies share it.
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
  /// Identity for memoization: equal ids mean the same expression.
  const void* id() const { return node_.get(); }

  /// Value of an integer constant or a constant size.
  std::optional<std::int64_t> integer() const;

 private:
  std::shared_ptr<const Node> node_;
  Sort sort_ = Sort::Value;
};

/// Reduction axis of a fold: runs from 0 to below `extent`, which may depend on outer indices.
struct Bound {
  std::string axis;
  Scalar extent;
};

/// Reduction with an associative combiner over a tuple: starting from `init`, `lift` of every index
/// tuple within the bounds is combined by `combine`, which is written over node::Partial. Sum,
/// maximum, argmax, mean with variance and online softmax are instances. With a bound that depends
/// on an outer index (`j <= i`) it is a scan.
struct Fold {
  std::vector<Bound> bounds;
  std::vector<Scalar> init, lift, combine;

  /// Function f of a fold with one component that is combined as f(left, right).
  std::optional<Fn> simple() const;
};

/// Whether this is the constant 0 of any sort.
bool is_zero(const Scalar& scalar);

Scalar truth(bool value);
/// Constant of the same sort as x.
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
/// Rounds to the nearest integer, ties to even.
Scalar round(const Scalar& a);
Scalar is_nan(const Scalar& a);
Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise);
Scalar cast(DType to, const Scalar& a);

/// Reductions with one component.
Scalar sum(std::vector<Bound> bounds, const Scalar& term);
Scalar prod(std::vector<Bound> bounds, const Scalar& factor);
Scalar max_of(std::vector<Bound> bounds, const Scalar& term);
Scalar min_of(std::vector<Bound> bounds, const Scalar& term);
Scalar any_of(std::vector<Bound> bounds, const Scalar& condition);

/// Reduction with several components: `combine` is given the left and the right tuple.
using Tuple = std::vector<Scalar>;
using Combine = std::function<Tuple(const Tuple& left, const Tuple& right)>;
Tuple fold(std::vector<Bound> bounds, Tuple init, Tuple lift, const Combine& combine);

/// Smallest and largest number of a dtype, as the initial values of a maximum and a minimum.
Scalar lowest(DType dtype);
Scalar highest(DType dtype);

}  // namespace tessera
