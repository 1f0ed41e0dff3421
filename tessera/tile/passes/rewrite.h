#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Rewriter of kernels: copies a kernel operation by operation, with changes. `visit` is called for
/// each operation of the source in order (yields apart, they follow their regions); it copies the
/// operation, emits others in its place, or maps its results to existing values. New operations are
/// appended to the open region.
class Rewrite {
 public:
  using Visit = std::function<void(Rewrite& out, const Operation& op)>;

  static Kernel run(const Kernel& source, const Visit& visit);

  const Kernel& source() const { return source_; }
  const Kernel& result() const { return result_; }
  const Type& type(ValueId now) const { return result_.type(now); }

  /// Value of the result that replaces a value of the source.
  ValueId of(ValueId old) const { return *now_[old]; }
  std::vector<ValueId> of(const std::vector<ValueId>& old) const;
  void set(ValueId old, ValueId now) { now_[old] = now; }

  /// Operation that defines a value of the result; none for a parameter, or while its region is
  /// open.
  const Operation* definition(ValueId now) const;
  /// Constant that a value of the result holds in all of its elements.
  std::optional<Literal> literal(ValueId now) const;
  /// Whether a value of the result dominates the insertion point.
  bool visible(ValueId now) const;

  /// Copies an operation; its regions are visited.
  void copy(const Operation& op);
  /// Copies a loop or a branch without the results that are not kept and their carried values.
  /// Parameters that are not kept must have been set.
  void copy(const Operation& op, const std::vector<bool>& keep);
  /// Copies an operation with other operands, which are values of the result.
  void copy(const Operation& op, std::vector<ValueId> in, const std::vector<bool>& keep);
  /// Inlines a region at the insertion point; returns the values that it yields.
  std::vector<ValueId> inline_region(const Region& region, const std::vector<ValueId>& params);

  /// Appends an operation on values of the result.
  ValueId emit(Operation op, Type type);
  void emit(Operation op);
  ValueId constant(Type type, Literal literal);
  ValueId index(std::int64_t integer);
  ValueId map(Function function, std::vector<ValueId> in);
  ValueId cast(ValueId x, DType to);

 private:
  Rewrite(const Kernel& source, const Visit& visit);
  ValueId value(Value like);
  void walk(const Region& region);
  Region copy_region(const Region& region, const std::vector<bool>& params,
                     const std::vector<bool>& yields);
  OpId append(Operation op);

  struct Open {
    Region region = {};
    int serial = 0;
  };

  const Kernel& source_;
  const Visit& visit_;
  Kernel result_;
  std::vector<std::optional<ValueId>> now_;      // by value of the source
  std::vector<std::optional<OpId>> definition_;  // by value of the result, as is the next
  std::vector<int> home_;  // serial number of the region that defines the value
  std::vector<Open> open_;
  int regions_ = 0;
  Source line_;  // source line of emitted operations
};

/// Whether an operation is pure: its results follow from its operands alone, without effects.
bool is_pure(const Kernel& kernel, const Operation& op);
/// Whether any operation in the regions of `op` has the property.
bool any_op(const Kernel& kernel, const Operation& op, bool (*what)(Code));

/// Whether two kernels are equal up to names and source lines.
bool same(const Kernel& a, const Kernel& b);

/// Values that a region yields.
const std::vector<ValueId>& yields(const Kernel& kernel, const Region& region);

}  // namespace tessera::tile
