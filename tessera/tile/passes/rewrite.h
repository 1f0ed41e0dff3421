#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// A kernel that is copied operation by operation, with changes on the way. `visit` is called for
/// each operation of the source in order (yields apart, they follow their regions); it copies the
/// operation, emits others in its place, or says which value stands for its results. What it emits
/// goes to the region that is open.
class Rewrite {
 public:
  using Visit = std::function<void(Rewrite& out, const Operation& op)>;

  static Kernel run(const Kernel& source, const Visit& visit);

  const Kernel& source() const { return source_; }
  const Kernel& result() const { return result_; }
  const Type& type(ValueId now) const { return result_.type(now); }

  /// What stands for a value of the source.
  ValueId of(ValueId old) const { return *now_[old]; }
  std::vector<ValueId> of(const std::vector<ValueId>& old) const;
  void set(ValueId old, ValueId now) { now_[old] = now; }

  /// The operation that makes a value of the result; none for a parameter, or while it is open.
  const Operation* definition(ValueId now) const;
  /// The number that a value of the result is, in all of its elements.
  std::optional<Literal> literal(ValueId now) const;
  /// Whether a value of the result may be used in the region that is open.
  bool visible(ValueId now) const;

  /// Copies an operation; its regions are visited.
  void copy(const Operation& op);
  /// The same without those results of a loop or a branch that are not kept, and without what
  /// carries them. Parameters that are not kept must have been set.
  void copy(const Operation& op, const std::vector<bool>& keep);
  /// The same on other operands, which are values of the result.
  void copy(const Operation& op, std::vector<ValueId> in, const std::vector<bool>& keep);
  /// Visits what is in a region as if it stood here; returns what it yields.
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
  std::vector<std::optional<ValueId>> now_;      // by id of the source
  std::vector<std::optional<OpId>> definition_;  // by id of the result, as is the next
  std::vector<int> home_;                        // the serial of the region it is defined in
  std::vector<Open> open_;
  int regions_ = 0;
  Source line_;  // that what is emitted comes from
};

/// Whether an operation's results follow from its operands alone and nothing else happens.
bool is_pure(const Kernel& kernel, const Operation& op);
/// Whether anything in a region, or in those of an operation, does.
bool any_op(const Kernel& kernel, const Operation& op, bool (*what)(Code));

/// Equal but for names and lines.
bool same(const Kernel& a, const Kernel& b);

/// What a region yields.
const std::vector<ValueId>& yields(const Kernel& kernel, const Region& region);

}  // namespace tessera::tile
