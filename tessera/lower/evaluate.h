#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/lower/position.h"
#include "tessera/lower/range.h"
#include "tessera/support/expected.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Scalar expression of index notation as a value of a tile kernel: a number for every position of
/// the tile. It is a scalar, or a tile with extent 1 along axes that it does not vary with;
/// trailing axes may be missing. Affine integers are materialized on demand.
struct Value {
  Sort sort = Sort::Value;
  std::optional<tile::ValueId> id = {};
  std::optional<Position> position = {};  // of an integer
  Range range = {};                       // of an integer
  /// Storage bytes of an element of a small type, which is copied without conversion.
  struct Stored {
    tile::ValueId id = 0;
    DType dtype = DType::U8;
  };
  std::optional<Stored> stored = {};
};

/// Loop nest of a reduction.
struct FoldNest {
  std::vector<tile::Loop> loops = {};  // not vectorized
  std::vector<int> vectors = {};       // axes of the tile, the last ones
  std::vector<tile::Nest::Axis> guards = {};
  std::vector<tile::Nest::Place> reads = {};  // operands and the loops that load them
  bool tensorized = false;
  /// Accumulators to continue from, shaped as initial_accumulators(); empty: those.
  std::vector<tile::ValueId> carried = {};
};

/// A position of unrolled loops.
using UnrolledPosition = std::vector<std::pair<std::string, std::int64_t>>;

/// Emits scalar expressions of index notation as tile IR. The first expression that is not
/// supported is kept as the error; values that are built after it are meaningless.
class Evaluator {
 public:
  using Id = tile::ValueId;

  Evaluator(tile::Builder& builder, DType number) : b_(builder), number_(number) {}

  /// A tensor in memory; a view may have strides of its own.
  struct Memory {
    Operand operand;  // its shape as numbers
    tile::Extents shape;
    Id param = 0;
  };
  void add_memory(Memory memory) {
    memory_.insert_or_assign(memory.operand.name, std::move(memory));
  }
  const Memory* memory(const std::string& name) const;
  /// A parameter of the kernel: a view, or a pointer for tensors without axes, with more than eight
  /// of them or without elements.
  Expected<Done> add_tensor(const std::string& name, DType dtype, tile::Extents shape);
  /// Stage whose elements at these positions are a tile in registers.
  struct HeldTile {
    std::vector<Position> at;
    Value value;
  };
  void hold_tile(const std::string& name, HeldTile held) {
    held_.insert_or_assign(name, std::move(held));
  }
  /// Inlined stage: its elements are computed where they are read.
  void add_computed(const tile::Stage& stage) { computed_.emplace(stage.name(), &stage); }

  /// Computed stage: its elements at the positions of the tile are this value.
  void add_tile(const std::string& stage, const Value& value) {
    tiles_.insert_or_assign(stage, value);
  }
  /// Replaces division by a value that many elements share by multiplication with its reciprocal,
  /// except in arguments of discontinuous functions (floor, comparisons).
  void invert_divisors() { inverts_ = true; }

  /// Sets the stage whose expressions are evaluated, and its index variables.
  void enter(const tile::Stage& stage, const std::vector<tile::Nest::Axis>& axes);

  void bind_loop(const std::string& loop, const Position& at, const Range& range);
  void bind_loop(const tile::Loop& loop, const Position& at);
  /// A new axis of the tile, the last one.
  int push_axis(std::int64_t extent);
  void pop_axis() { extents_.pop_back(); }
  const tile::Extents& extents() const { return extents_; }

  /// Scope of memoized values, for an inner region.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }

  Value evaluate(const Scalar& scalar);
  /// Sets the value of an expression in this scope.
  void set_value(const Scalar& scalar, const Value& value) {
    keep_.push_back(scalar);
    scopes_.back().made.insert_or_assign(scalar.id(), value);
  }
  Id id_of(const Value& value);
  /// At every position of the tile.
  Id full(const Value& value);
  Value converted(const Value& value, Sort sort);
  /// The number after a round trip through the storage dtype.
  Id stored_and_read(Id id, DType dtype, Sort sort);
  /// The index variable as an integer.
  Value axis(const std::string& name);
  Value evaluate_over_loops(const Scalar& scalar);
  /// Mask of the positions at which all guards are in range; none if they always are.
  std::optional<Id> guard(const std::vector<tile::Nest::Axis>& guards);
  std::optional<Id> both(std::optional<Id> a, std::optional<Id> b);

  /// Emits a reduction and memoizes its results.
  void run_fold(const std::shared_ptr<const Fold>& fold, const FoldNest& nest);
  /// The same for several positions of unrolled loops around the reduction, in one loop nest with
  /// accumulators for each (unroll and jam). Gives the results by position.
  std::vector<std::vector<Value>> run_folds(const std::shared_ptr<const Fold>& fold,
                                            const FoldNest& nest,
                                            const std::vector<UnrolledPosition>& positions);
  void bind_position(const UnrolledPosition& position) {
    for (const auto& [loop, at] : position) bind_loop(loop, Position::constant(at), {at, at});
  }
  /// Initial values of a reduction that is not tensorized, one per component.
  std::vector<Id> initial_accumulators(const Fold& fold, const FoldNest& nest);
  /// Results of the innermost reduction that run_fold() or set_fold() made of this.
  const std::vector<Value>* fold_results(const Fold& fold) const;
  /// Sets the result of a reduction that is computed elsewhere.
  void set_fold(const Fold& fold, const Value& value) { set_fold_results(fold, {value}); }
  void set_fold_results(const Fold& fold, std::vector<Value> values) {
    scopes_.back().folds.insert_or_assign(&fold, std::move(values));
  }
  /// Hoists every read of a tensor in an expression to this scope.
  void preload(const Scalar& scalar, const std::string& tensor);

  /// Stores the value at these indices, for every position of the tile at which the guard holds.
  /// `drops_outside`: positions that the guard excludes are out of bounds, so that a view store
  /// needs no mask.
  void store(const Memory& into, const std::vector<Value>& at, const Value& value,
             std::optional<Id> guard, bool drops_outside);

  /// Scatter: stores the value at these indices, or combines it with the old content where they are
  /// in range. The indices of one tile are distinct.
  void update(const Memory& into, const std::vector<Scalar>& at, const Value& value,
              std::optional<Id> guard, std::optional<Fn> combine);

  /// Stores the value along the axes of the tile that the indices vary with.
  void store_part(const Memory& into, const std::vector<Value>& at, const Value& value);

  DType dtype_of(Sort sort) const;
  void fail(Diagnostic diagnostic);
  void unsupported(std::string what);
  const std::optional<Diagnostic>& error() const { return error_; }

 private:
  struct Frame {
    const tile::Stage* stage = nullptr;
    std::map<std::string, tile::Nest::Axis, std::less<>> axes = {};  // over loops
    std::map<std::string, Value, std::less<>> fixed = {};
    std::vector<std::pair<std::vector<Value>, std::vector<Value>>> partials = {};
  };
  struct Scope {
    std::unordered_map<const void*, Value> made = {};
    std::unordered_map<const Fold*, std::vector<Value>> folds = {};
  };

  Value visit(const node::Constant& n);
  Value visit(const node::Index& n);
  Value visit(const node::Size& n);
  Value visit(const node::Read& n);
  Value visit(const node::Apply& n);
  Value visit(const node::Cast& n);
  Value visit(const node::Partial& n);
  Value visit(const node::Component& n);

  // evaluate_number.cpp: functions of numbers
  Value evaluate_argument(const Scalar& argument, bool discontinuous);
  std::optional<Value> near_remainder(Fn fn, const std::vector<Value>& args);
  Value apply_affine(Fn fn, const std::vector<Value>& args, bool& done);
  Id apply(Fn fn, Sort meet, const std::vector<Id>& args);
  Range range_of(Fn fn, const std::vector<Value>& args) const;

  // evaluate_memory.cpp
  Value read_memory(const Memory& memory, const node::Read& n, const std::vector<Value>& at);
  Value read_computed(const tile::Stage& stage, const node::Read& n, const std::vector<Value>& at);
  Value read_held(const HeldTile& held, const node::Read& n, const std::vector<Value>& at);
  static bool is_outside(const Memory& memory, const std::vector<Value>& at);
  /// Whether it is an out-of-bounds read, which is 0.
  bool is_padding(const Scalar& scalar);
  std::optional<Id> in_range(const std::vector<Value>& at, const tile::Extents& shape);
  std::optional<Id> load_view(const Memory& memory, const std::vector<Value>& at,
                              tile::Literal pad);
  Id load_pointers(const Memory& memory, const std::vector<Value>& at, std::optional<Id> mask);
  Id pointers(const Memory& memory, const std::vector<Value>& at);

  // evaluate_fold.cpp
  struct FoldState;
  void run_loops(FoldState& run, std::size_t depth);
  void step(FoldState& run);
  bool step_product(FoldState& run);
  void step_dot(FoldState& run);
  std::vector<Id> combine(const Fold& fold, const std::vector<Id>& left,
                          const std::vector<Id>& right);
  std::vector<tile::Loop> inline_loops(const Fold& fold);
  void run_inline(const std::shared_ptr<const Fold>& fold);
  std::set<int> tile_axes_of(const Scalar& scalar);
  std::set<int> kept_axes(const Scalar& scalar, const FoldNest& nest);
  tile::Extents accumulator_shape(const Fold& fold, const FoldNest& nest);
  std::int64_t count(const std::vector<int>& axes) const;
  void collect_axes(const Scalar& scalar, std::set<const void*>& seen, std::set<int>& axes);

  Value number(Id id, Sort sort) const {
    return {.sort = sort, .id = id, .position = {}, .range = Range::all()};
  }
  Value integer(const Position& position, const Range& range) const {
    return {.sort = Sort::Integer, .id = {}, .position = position, .range = range};
  }
  Id constant(Sort sort, double number);
  Id scalar_part(const Position& position);
  Id materialized(const Position& position);

  /// Broadcasts tiles to a common shape.
  void fit(std::vector<Id>& ids);
  Id shaped(Id id, tile::Extents shape);
  /// Expands a tile over these axes to the full rank of the program's tile.
  Id placed(Id id, const std::vector<int>& axes);
  /// The inverse: permutes and squeezes a tile to these axes.
  Id taken(Id id, const std::vector<int>& axes);

  tile::Builder& b_;
  DType number_;
  tile::Extents extents_;
  std::map<std::string, Memory, std::less<>> memory_;
  std::map<std::string, const tile::Stage*, std::less<>> computed_;
  std::map<std::string, HeldTile, std::less<>> held_;
  std::map<std::string, Value, std::less<>> tiles_;
  std::map<std::string, Value, std::less<>> loops_;
  std::vector<Frame> frames_;
  std::vector<Scope> scopes_ = {{}};
  std::vector<Scalar> keep_;  // keeps ids of memoized expressions unique
  std::optional<Diagnostic> error_;
  bool over_loops_ = false;  // an index is a loop, not a variable
  bool inverts_ = false;
};

}  // namespace tessera::lower
