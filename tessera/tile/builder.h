#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Builds a kernel operation by operation. Types are inferred and checked as it goes: the first
/// mistake is kept, with the line it was made on (`at`), and `finish` returns it; what is built
/// after a mistake is of no meaning and does no harm.
class Builder {
 public:
  explicit Builder(std::string name) {
    kernel_.name = std::move(name);
    open_.push_back({});
  }

  /// The line that the next operations come from.
  void at(Source source) { source_ = std::move(source); }
  const Type& type(ValueId id) const { return kernel_.type(id); }
  void name(ValueId id, std::string name) { kernel_.values[id].name = std::move(name); }

  ValueId param(Type type, std::string name);

  ValueId pid(int axis);
  ValueId npid(int axis);
  ValueId constant(const Type& type, Literal literal);
  /// In the elements of the type, whatever it is.
  ValueId constant(const Type& type, double number);
  ValueId index(std::int64_t integer) { return constant(Type::scalar(DType::I64), {0, integer}); }
  ValueId iota(DType dtype, std::int64_t count);
  ValueId broadcast(ValueId x, Extents shape);
  ValueId reshape(ValueId x, Extents shape);
  ValueId permute(ValueId x, std::vector<std::int64_t> order);
  ValueId concat(std::vector<ValueId> parts, int axis);
  ValueId slice(ValueId x, std::vector<std::int64_t> from, Extents shape);

  ValueId map(Function function, std::vector<ValueId> operands);
  ValueId add(ValueId a, ValueId b) { return map(Function::Add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return map(Function::Sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return map(Function::Mul, {a, b}); }
  ValueId cast(ValueId x, DType to);
  ValueId bitcast(ValueId x, DType to);

  ValueId reduce(Function function, ValueId x, int axis);
  ValueId scan(Function function, ValueId x, int axis, bool reverse = false);
  ValueId gather(ValueId x, ValueId index, int axis);
  /// Given the left and the right elements, the combined ones.
  using Combine = std::function<std::vector<ValueId>(const std::vector<ValueId>& left,
                                                     const std::vector<ValueId>& right)>;
  std::vector<ValueId> reduce(std::vector<ValueId> x, int axis, const Combine& combine);
  std::vector<ValueId> scan(std::vector<ValueId> x, int axis, bool reverse, const Combine& combine);

  ValueId dot(ValueId a, ValueId b, ValueId c);

  ValueId offset(ValueId pointer, ValueId elements);
  ValueId load(ValueId pointer, std::optional<ValueId> mask = {},
               std::optional<ValueId> other = {});
  void store(ValueId pointer, ValueId x, std::optional<ValueId> mask = {});
  /// `open` are the extents and strides that the type leaves open, in order.
  ValueId view(ValueId pointer, Type type, const std::vector<ValueId>& open = {});
  ValueId dim(ValueId view, int axis);
  ValueId stride(ValueId view, int axis);
  ValueId base(ValueId view);
  ValueId vload(ValueId view, const std::vector<ValueId>& at, Extents shape, Literal pad = {});
  void vstore(ValueId view, const std::vector<ValueId>& at, ValueId x);
  ValueId atomic(Function function, ValueId pointer, ValueId x, std::optional<ValueId> mask = {});
  ValueId cas(ValueId pointer, ValueId expected, ValueId x);

  /// A loop is opened, filled and closed; what it yields becomes its results.
  struct Loop {
    ValueId index = 0;
    std::vector<ValueId> carried = {};
  };
  Loop open_for(ValueId from, ValueId to, ValueId step, std::vector<ValueId> start,
                std::vector<std::int64_t> hints = {});
  std::vector<ValueId> close_for(const std::vector<ValueId>& next);
  using Body = std::function<std::vector<ValueId>(ValueId index, const std::vector<ValueId>&)>;
  std::vector<ValueId> for_loop(ValueId from, ValueId to, ValueId step, std::vector<ValueId> start,
                                const Body& body);
  using Step = std::function<std::vector<ValueId>(const std::vector<ValueId>&)>;
  /// `condition` yields one truth value.
  std::vector<ValueId> while_loop(std::vector<ValueId> start, const Step& condition,
                                  const Step& body);
  using Branch = std::function<std::vector<ValueId>()>;
  std::vector<ValueId> if_else(ValueId condition, const Branch& then, const Branch& otherwise = {});

  void assume(ValueId condition);
  ValueId hint(ValueId x, std::string kind, std::vector<std::int64_t> values);
  void assertion(ValueId condition, std::string message);
  void print(std::string text, std::vector<ValueId> values);
  void barrier();

  /// Takes note of a mistake that was found outside (the first one counts).
  void fail(Diagnostic diagnostic);
  bool failed() const { return error_.has_value(); }
  Expected<Kernel> finish();

 private:
  ValueId value(Type type);
  /// Appends it to the open region, after a check of its types.
  OpId append(Operation op);
  ValueId append_value(Operation op, Type type);
  std::vector<ValueId> append_values(Operation op, const std::vector<Type>& types);
  std::vector<Type> types(const std::vector<ValueId>& values) const;
  std::vector<ValueId> open(const std::vector<Type>& params);
  Region close(const std::vector<ValueId>& yields);
  Operation folding(Code code, std::vector<ValueId> x, std::vector<std::int64_t> ints,
                    const Combine& combine);

  Kernel kernel_;
  std::vector<Region> open_;      // innermost last
  std::vector<Operation> loops_;  // of open_for, innermost last
  Source source_;
  std::optional<Diagnostic> error_;
};

/// The literal of this dtype that is nearest to the number.
Literal literal_of(DType dtype, double number);

}  // namespace tessera::tile
