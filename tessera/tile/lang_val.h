#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "tessera/tile/lang_trace.h"

namespace tessera::tile {

/// An operand of the kernel language: a traced value or a C++ number, with the line of its use.
class Operand {
 public:
  // NOLINTBEGIN(google-explicit-constructor): this is what operators and functions convert to
  Operand(const Val& value, Place where = Place::current());
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T number, Place where = Place::current())
      : where_(where) {
    if constexpr (std::is_floating_point_v<T>) {
      number_ = {Sort::Value, {static_cast<double>(number), 0}};
    } else {
      number_ = {std::is_same_v<T, bool> ? Sort::Bool : Sort::Integer,
                 {0, static_cast<std::int64_t>(number)}};
    }
  }
  // NOLINTEND(google-explicit-constructor)

  /// A C++ number whose dtype is not decided yet.
  struct Number {
    Sort sort = Sort::Value;
    Literal literal = {};
  };

  bool is_number() const { return number_.has_value(); }
  const Number& number() const { return *number_; }
  ValueId id() const { return id_; }
  const Place& where() const { return where_; }

 private:
  std::optional<Number> number_;
  ValueId id_ = 0;
  Place where_;
};

using Operands = std::vector<Operand>;

/// An optional operand.
class Maybe {
 public:
  Maybe() = default;
  // NOLINTBEGIN(google-explicit-constructor): as for operands
  Maybe(const Operand& x) : operand_(x) {}
  Maybe(const Val& value, Place where = Place::current()) : operand_(Operand(value, where)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Maybe(T number, Place where = Place::current())
      : operand_(Operand(number, where)) {}
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return operand_.has_value(); }
  const Operand& operator*() const { return *operand_; }

 private:
  std::optional<Operand> operand_;
};

/// Index expression `x[{All, None}]`: each entry is an axis of the tile, or a new one of extent 1.
enum Axis : std::uint8_t { All, None };
struct Axes {
  // NOLINTNEXTLINE(google-explicit-constructor): x[{All, None}]
  Axes(std::initializer_list<Axis> list, Place place = Place::current())
      : axes(list), where(place) {}
  std::vector<Axis> axes;
  Place where;
};

/// A variable of the kernel language: a number, a tile of numbers, a pointer or a tile of pointers.
/// It can be assigned, inside of traced loops and branches too.
class Val {
 public:
  /// A variable without a value until it is assigned.
  Val();
  template <class Number>
  requires std::is_arithmetic_v<Number>
  // NOLINTNEXTLINE(google-explicit-constructor): Val m = 0.0
  Val(Number number, Place where = Place::current()) : Val(Operand(number, where)) {}
  Val(const Val& other);
  Val& operator=(const Val& other);
  ~Val();

  /// Conversion from and to values of the Builder.
  static Val of(ValueId id);
  ValueId id() const;

  Type type() const;
  DType dtype() const { return type().dtype; }
  Extents shape() const { return type().shape; }
  int rank() const { return type().rank(); }

  Val to(DType dtype, Place where = Place::current()) const;
  Val bitcast(DType dtype, Place where = Place::current()) const;
  /// Tile with new axes of extent 1: `rows[{All, None}]`.
  Val operator[](const Axes& axes) const;

  Val& operator+=(const Operand& x);
  Val& operator-=(const Operand& x);
  Val& operator*=(const Operand& x);
  Val& operator/=(const Operand& x);
  Val& operator%=(const Operand& x);
  Val& operator&=(const Operand& x);
  Val& operator|=(const Operand& x);
  Val& operator^=(const Operand& x);

 private:
  friend class Trace;
  enum class State : std::uint8_t { Nothing, Value, Gone };
  explicit Val(const Operand& number);

  // Mutable: a region gives every variable its own value, constants too.
  Trace* trace_ = nullptr;
  mutable State state_ = State::Nothing;
  mutable ValueId id_ = 0;
  mutable Source gone_ = {};  // the region at whose end its value went out of scope
};

// ------------------------------------------------------------------------------------ operators

Val operator+(const Operand& a, const Operand& b);  // pointer + integers too
Val operator-(const Operand& a, const Operand& b);
Val operator*(const Operand& a, const Operand& b);
Val operator/(const Operand& a, const Operand& b);
Val operator%(const Operand& a, const Operand& b);
Val operator&(const Operand& a, const Operand& b);
Val operator|(const Operand& a, const Operand& b);
Val operator^(const Operand& a, const Operand& b);
Val operator<<(const Operand& a, const Operand& b);
Val operator>>(const Operand& a, const Operand& b);
Val operator==(const Operand& a, const Operand& b);
Val operator!=(const Operand& a, const Operand& b);
Val operator<(const Operand& a, const Operand& b);
Val operator<=(const Operand& a, const Operand& b);
Val operator>(const Operand& a, const Operand& b);
Val operator>=(const Operand& a, const Operand& b);
Val operator&&(const Operand& a, const Operand& b);  // both sides are computed
Val operator||(const Operand& a, const Operand& b);
Val operator!(const Operand& x);
Val operator~(const Operand& x);
Val operator-(const Operand& x);

// ---------------------------------------------------------------------------------------- views

/// A view of the kernel language: memory with extents and strides. Loads out of bounds give the
/// padding value; stores out of bounds are dropped. Not assignable: a loop cannot carry it.
class View {
 public:
  explicit View(ValueId id) : value_(Val::of(id)) {}
  View(const View&) = default;
  View& operator=(const View&) = delete;
  ~View() = default;

  ValueId id() const { return value_.id(); }
  Type type() const { return value_.type(); }
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }

  Val dim(int axis, Place where = Place::current()) const;
  Val stride(int axis, Place where = Place::current()) const;
  Val base(Place where = Place::current()) const;
  /// Loads the tile of this shape at these offsets: `x.load({m * block, 0}, {block, width})`.
  Val load(const Operands& at, const Extents& shape, double pad = 0,
           Place where = Place::current()) const;
  /// Stores a tile; x is converted to the element type of the view.
  void store(const Operands& at, const Operand& x) const;

 private:
  Val value_;
};

}  // namespace tessera::tile
