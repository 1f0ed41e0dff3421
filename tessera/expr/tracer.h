#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tessera/expr/field.h"
#include "tessera/support/dtype.h"

namespace tessera {

class Tracer;

/// Tracing number type: evaluating a definition on traced numbers appends operations to the tape of
/// the thread's active Tracer instead of computing them. The tape can then be replayed on many
/// inputs of the same sizes.
class TracedNumber {
 public:
  TracedNumber() = default;  // zero
  static TracedNumber of_word(std::uint64_t word);
  static TracedNumber of_integer(std::int64_t integer);
  static TracedNumber of_double(double number);
  static TracedNumber keyed(std::uint64_t key, TracedNumber x);
  static TracedNumber keyed(std::uint64_t key, TracedNumber x, TracedNumber y);
  /// Stored as an element of this type; that of a type all of whose numbers it has is unchanged.
  static TracedNumber stored(DType dtype, TracedNumber x);
  static TracedNumber larger(TracedNumber a, TracedNumber b);
  static TracedNumber smaller(TracedNumber a, TracedNumber b);

  friend TracedNumber operator+(TracedNumber a, TracedNumber b);
  friend TracedNumber operator-(TracedNumber a, TracedNumber b);
  friend TracedNumber operator*(TracedNumber a, TracedNumber b);
  friend TracedNumber operator/(TracedNumber a, TracedNumber b);
  // Control flow cannot depend on a traced number: comparing one makes the recording fail.
  friend bool operator==(TracedNumber a, TracedNumber b);
  friend bool operator<(TracedNumber a, TracedNumber b);
  std::uint64_t word() const;

 private:
  friend class Tracer;
  explicit TracedNumber(std::uint32_t id) : id_(id) {}
  std::uint32_t id_ = 0;
};

/// Straight-line program over the elements of some inputs, as recorded by tracing.
class Tape {
 public:
  std::size_t inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_.size(); }

  /// Computes the outputs from the concatenated elements of all inputs. Returns false on division
  /// by zero. `scratch` is reused from call to call.
  template <class F>
  bool replay(std::span<const std::span<const F>> inputs, F* outputs,
              std::vector<F>& scratch) const;

  enum class Op : std::uint8_t { Add, Sub, Mul, Div, Keyed, Keyed2, Larger, Smaller, Products };
  struct Constant {
    bool is_integer = false;
    std::int64_t integer = 0;
    double number = 0;
  };

 private:
  friend class Tracer;
  /// One operation; registers hold constants, then inputs, then the results of steps in order.
  struct Step {
    Op op = Op::Add;
    std::uint32_t a = 0, b = 0;  // registers; of Products: the range of `products_`
    std::uint64_t key = 0;
  };
  template <class F>
  static F value_of(const Constant& constant);
  std::uint32_t add_constant(const Constant& constant, bool inverse);

  std::size_t inputs_ = 0;
  std::tuple<std::vector<FieldA>, std::vector<FieldB>> constants_;
  std::vector<Step> steps_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> products_;
  std::vector<std::uint32_t> outputs_;
};

/// Tracer of what a thread computes with traced numbers during its lifetime. Operations that
/// give the same number, rounded or not, are merged: operands of sums, products and extremes in any
/// order, extremes of extremes, x + 0, 1 * x, x + x and 2 * x, signs wherever they stand. The sign
/// of zero is ignored.
class Tracer {
 public:
  Tracer();
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Traces the next element of the inputs.
  TracedNumber input();
  /// False once control flow depended on a traced number.
  bool decided() const { return decided_; }
  /// Whether a simplification was made that floating point does not allow: a product with zero, a
  /// number minus itself.
  bool simplified() const { return simplified_; }
  /// Tape that computes these outputs, without dead code.
  Tape tape(std::span<const TracedNumber> outputs) const;

 private:
  friend class TracedNumber;
  friend bool operator==(TracedNumber a, TracedNumber b);
  friend bool operator<(TracedNumber a, TracedNumber b);
  friend TracedNumber operator+(TracedNumber a, TracedNumber b);
  friend TracedNumber operator-(TracedNumber a, TracedNumber b);
  friend TracedNumber operator*(TracedNumber a, TracedNumber b);
  friend TracedNumber operator/(TracedNumber a, TracedNumber b);

  enum class Kind : std::uint8_t { Constant, Input, Step };
  struct Node {
    Kind kind = Kind::Constant;
    Tape::Op op = Tape::Op::Add;
    std::uint32_t a = 0, b = 0;
    std::uint64_t key = 0;
    Tape::Constant constant = {};
  };

  static Tracer& current();
  static bool undecided();
  TracedNumber constant(const Tape::Constant& constant);
  TracedNumber step(Tape::Op op, TracedNumber a, TracedNumber b, std::uint64_t key = 0);
  TracedNumber extreme(Tape::Op op, TracedNumber a, TracedNumber b);
  bool is(TracedNumber x, double number) const;
  bool is_double(TracedNumber x, TracedNumber of) const;      // x = 2 * of
  std::optional<TracedNumber> negated(TracedNumber x) const;  // y where x = -y
  std::optional<std::pair<TracedNumber, TracedNumber>> difference(TracedNumber x) const;
  void collect(Tape::Op op, TracedNumber x, std::set<std::uint32_t>& leaves) const;

  std::vector<Node> nodes_;
  std::size_t inputs_ = 0;
  bool decided_ = true, simplified_ = false;
  struct Operation {
    Tape::Op op;
    std::uint32_t a, b;
    std::uint64_t key;
    bool operator==(const Operation&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Operation& operation) const;
  };
  std::unordered_map<Operation, std::uint32_t, Hash> made_;  // the node of each
  std::map<std::pair<std::int64_t, double>, std::uint32_t> constants_;
  Tracer* outer_;
};

}  // namespace tessera
