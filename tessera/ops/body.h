#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/support/attrs.h"

namespace tessera {

class Body;

/// A value of a graph under construction; it knows its graph, so that arithmetic on it reads as
/// arithmetic. A default-made one stands for an optional input that is left out.
class Val {
 public:
  Val() = default;
  Val(Body& body, std::uint32_t id) : body_(&body), id_(id) {}

  bool present() const { return body_ != nullptr; }
  Body& body() const;
  std::uint32_t id() const { return id_; }

  /// What is known of it.
  const Argument& argument() const;
  int rank() const { return argument().rank(); }
  const Dim& dim(int axis) const { return argument().dim(axis); }
  DType dtype() const { return argument().dtype(); }

 private:
  Body* body_ = nullptr;
  std::uint32_t id_ = 0;
};

using Vals = std::vector<Val>;

/// A graph under construction, as composites see it; ir/ makes it real. The first operator that
/// does not fit its inputs is remembered, and what follows it has no meaning.
class Body {
 public:
  virtual ~Body() = default;

  /// All results of an operator (`outputs` says how many are wanted; 0: as many as it has).
  virtual Vals call(std::string_view op, const Vals& inputs, const Attrs& attrs, int outputs) = 0;
  virtual Val constant(Tensor tensor) = 0;
  virtual const Argument& argument(const Val& value) const = 0;

  /// Runs `step` over the leading axis of `elements`, carrying `states`. It is given the states and
  /// one slice of each element and returns the new states, then what is stacked up as results.
  /// Returns the last states, then the stacked results.
  using Step = std::function<Vals(Body& inner, const Vals& states, const Vals& slices)>;
  virtual Vals scan(const Vals& states, const Vals& elements, const Step& step) = 0;

  /// The first result.
  Val op(std::string_view op, const Vals& inputs, const Attrs& attrs = {}) {
    return call(op, inputs, attrs, 1).at(0);
  }
  /// Constants of rank 0 and 1.
  Val number(double value, DType dtype);
  Val ints(const Ints& values);
};

Val operator+(const Val& a, const Val& b);
Val operator-(const Val& a, const Val& b);
Val operator*(const Val& a, const Val& b);
Val operator/(const Val& a, const Val& b);
Val operator-(const Val& a);
/// With a number of the other's dtype.
Val operator+(const Val& a, double b);
Val operator-(const Val& a, double b);
Val operator*(const Val& a, double b);
Val operator/(const Val& a, double b);
Val operator+(double a, const Val& b);
Val operator-(double a, const Val& b);
Val operator*(double a, const Val& b);
Val operator/(double a, const Val& b);

}  // namespace tessera
