#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Builder of kernels, operation by operation, like LLVM's IRBuilder. Types are inferred and
/// checked on the way: the first error is kept, with its source line (`at`), and `finish` returns
/// it; operations appended after an error have no meaning and do no harm.
class Builder {
 public:
  explicit Builder(std::string name) {
    kernel_.name = std::move(name);
    open_.push_back({});
  }

  /// Sets the source line of the operations that follow.
  void at(Source source) { source_ = std::move(source); }
  const Type& type(ValueId id) const { return kernel_.type(id); }
  /// Operation that defines a value; null for parameters of the kernel and of regions.
  const Operation* definition(ValueId id) const;
  void name(ValueId id, std::string name) { kernel_.values[id].name = std::move(name); }

  ValueId param(Type type, std::string name);

  ValueId pid(int axis);
  ValueId npid(int axis);
  ValueId constant(const Type& type, Literal literal);
  /// Constant with the number converted to the element type.
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
  /// Pointers as i64, i64 as pointers, or pointers as pointers to another dtype.
  ValueId address(ValueId pointer);
  ValueId pointer_cast(ValueId pointer_or_address, DType pointee);

  ValueId reduce(Function function, ValueId x, int axis);
  ValueId scan(Function function, ValueId x, int axis, bool reverse = false);
  ValueId gather(ValueId x, ValueId index, int axis);
  /// Combiner of a reduction or scan, given the left and the right elements.
  using Combine = std::function<std::vector<ValueId>(const std::vector<ValueId>& left,
                                                     const std::vector<ValueId>& right)>;
  std::vector<ValueId> reduce(std::vector<ValueId> x, int axis, const Combine& combine);
  std::vector<ValueId> scan(std::vector<ValueId> x, int axis, bool reverse, const Combine& combine);

  ValueId dot(ValueId a, ValueId b, ValueId c);

  ValueId offset(ValueId pointer, ValueId elements);
  ValueId load(ValueId pointer, std::optional<ValueId> mask = {},
               std::optional<ValueId> other = {});
  void store(ValueId pointer, ValueId x, std::optional<ValueId> mask = {});
  /// Makes a view; `open` are the dynamic extents and strides of the type, in order.
  ValueId view(ValueId pointer, Type type, const std::vector<ValueId>& open = {});
  ValueId dim(ValueId view, int axis);
  ValueId stride(ValueId view, int axis);
  ValueId base(ValueId view);
  ValueId vload(ValueId view, const std::vector<ValueId>& at, Extents shape, Literal pad = {});
  void vstore(ValueId view, const std::vector<ValueId>& at, ValueId x);
  ValueId atomic(Function function, ValueId pointer, ValueId x, std::optional<ValueId> mask = {});
  ValueId cas(ValueId pointer, ValueId expected, ValueId x);

  /// Loop under construction: opened, filled and closed; the values that it yields become its
  /// results.
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
  /// Appends a While; `condition` yields one bool.
  std::vector<ValueId> while_loop(std::vector<ValueId> start, const Step& condition,
                                  const Step& body);
  using Branch = std::function<std::vector<ValueId>()>;
  std::vector<ValueId> if_else(ValueId condition, const Branch& then, const Branch& otherwise = {});

  void assume(ValueId condition);
  ValueId hint(ValueId x, std::string kind, std::vector<std::int64_t> values);
  void assertion(ValueId condition, std::string message);
  void print(std::string text, std::vector<ValueId> values);
  void barrier();

  /// Records an error that was found by the caller; the first one counts.
  void fail(Diagnostic diagnostic);
  bool failed() const { return error_.has_value(); }
  Expected<Kernel> finish();

 private:
  ValueId value(Type type);
  /// Appends an operation to the open region, after a check of its types.
  OpId append(Operation op);
  ValueId append_value(Operation op, Type type);
  std::vector<ValueId> append_values(Operation op, const std::vector<Type>& types);
  std::vector<Type> types(const std::vector<ValueId>& values) const;
  std::vector<ValueId> open(const std::vector<Type>& params);
  Region close(const std::vector<ValueId>& yields);
  Operation folding(Code code, std::vector<ValueId> x, std::vector<std::int64_t> ints,
                    const Combine& combine);

  Kernel kernel_;
  std::vector<std::optional<OpId>> definition_;  // by value
  std::vector<Region> open_;                     // innermost last
  std::vector<Operation> loops_;                 // opened by open_for, innermost last
  Source source_;
  std::optional<Diagnostic> error_;
};

/// Literal of this dtype that is nearest to the number.
Literal literal_of(DType dtype, double number);

}  // namespace tessera::tile
