#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/support/attrs.h"

namespace tessera {

class Body;
struct OpDef;

/// Handle of a value of a graph under construction; it knows its graph, so that operators on it
/// build nodes. A default-constructed one stands for an omitted optional input.
class Val {
 public:
  Val() = default;
  Val(Body& body, std::uint32_t id) : body_(&body), id_(id) {}

  bool present() const { return body_ != nullptr; }
  Body& body() const;
  std::uint32_t id() const { return id_; }

  /// Type and known content of the value.
  const Argument& argument() const;
  int rank() const { return argument().rank(); }
  const Dim& dim(int axis) const { return argument().dim(axis); }
  DType dtype() const { return argument().dtype(); }

 private:
  Body* body_ = nullptr;
  std::uint32_t id_ = 0;
};

using Vals = std::vector<Val>;

/// Interface for building the bodies of composite operators, implemented by ir's GraphBuilder. The
/// first operator that does not accept its inputs is recorded as the error; later values are
/// meaningless.
class Body {
 public:
  virtual ~Body() = default;

  /// Adds a node and returns its results; `outputs` is the number of results wanted, 0 means all.
  virtual Vals call(const OpDef& op, const Vals& inputs, const Attrs& attrs, int outputs) = 0;
  virtual Vals call(std::string_view op, const Vals& inputs, const Attrs& attrs, int outputs) = 0;
  virtual Val constant(Tensor tensor) = 0;
  virtual const Argument& argument(const Val& value) const = 0;
  /// The input of rank 0 that a float attribute is called by; added where there is none.
  virtual Val named_real(const std::string& name, DType dtype) = 0;

  /// Adds a scan over the leading axis of `elements`, carrying `states`. `step` is given the states
  /// and one slice of each element and returns the new states, then the values to stack. Returns
  /// the last states, then the stacked results.
  using Step = std::function<Vals(Body& inner, const Vals& states, const Vals& slices)>;
  virtual Vals scan(const Vals& states, const Vals& elements, const Step& step) = 0;

  /// Adds a node and returns its first result.
  Val op(const OpDef& op, const Vals& inputs, const Attrs& attrs = {}) {
    return call(op, inputs, attrs, 1).at(0);
  }
  Val op(std::string_view op, const Vals& inputs, const Attrs& attrs = {}) {
    return call(op, inputs, attrs, 1).at(0);
  }
  /// Constants of rank 0 and 1.
  Val number(double value, DType dtype);
  Val ints(const Ints& values);
  /// A float attribute as a value of rank 0: a constant or, in a rule, the input that names it.
  Val real(const Attrs& attrs, std::string_view name, DType dtype);
};

Val operator+(const Val& a, const Val& b);
Val operator-(const Val& a, const Val& b);
Val operator*(const Val& a, const Val& b);
Val operator/(const Val& a, const Val& b);
Val operator-(const Val& a);
/// Arithmetic with a constant of the operand's dtype.
Val operator+(const Val& a, double b);
Val operator-(const Val& a, double b);
Val operator*(const Val& a, double b);
Val operator/(const Val& a, double b);
Val operator+(double a, const Val& b);
Val operator-(double a, const Val& b);
Val operator*(double a, const Val& b);
Val operator/(double a, const Val& b);

}  // namespace tessera
