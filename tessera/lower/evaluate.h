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

/// What a scalar expression is within a tile program: a number for every position of the tile. It
/// is a scalar, or a tile with an extent of 1 along axes that it does not vary with; axes at the
/// end may be missing. An integer that is affine is not computed before it is needed.
struct Value {
  Sort sort = Sort::Value;
  std::optional<tile::ValueId> id = {};
  std::optional<Position> position = {};  // of an integer
  Range range = {};                       // of an integer
  /// The bytes that hold an element of a small type, which is moved without being converted.
  struct Stored {
    tile::ValueId id = 0;
    DType dtype = DType::U8;
  };
  std::optional<Stored> stored = {};
};

/// How a fold is run through.
struct FoldNest {
  std::vector<tile::Loop> loops = {};  // that are no vectors
  std::vector<int> vectors = {};       // axes of the tile, the last ones
  std::vector<tile::Nest::Axis> guards = {};
  std::vector<tile::Nest::Place> reads = {};  // what is loaded where
  bool tensorized = false;
};

/// Emits expressions into a kernel that is being built. The first thing that cannot be emitted is
/// kept (`error`); what is built after it is of no meaning.
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
  /// A stage that is there as a tile: what is read at these positions.
  struct Held {
    std::vector<Position> at;
    Value value;
  };
  void hold(const std::string& name, Held held) { held_.insert_or_assign(name, std::move(held)); }
  /// A stage whose elements are computed where they are read.
  void add_computed(const tile::Stage& stage) { computed_.emplace(stage.name(), &stage); }

  /// A stage that has been computed: reads of it, at the positions of the tile, are this value.
  void add_tile(const std::string& stage, const Value& value) {
    tiles_.insert_or_assign(stage, value);
  }
  /// What is divided by one number for many elements is multiplied by the inverse, but in arguments
  /// of functions with jumps (floor, comparisons): there a last place decides about the result.
  void invert_divisors() { inverts_ = true; }

  /// The stage whose expressions are evaluated, and its index variables.
  void enter(const tile::Stage& stage, const std::vector<tile::Nest::Axis>& axes);

  void bind_loop(const std::string& loop, const Position& at, const Range& range);
  void bind_loop(const tile::Loop& loop, const Position& at);
  /// A new axis of the tile, the last one.
  int push_axis(std::int64_t extent);
  void pop_axis() { extents_.pop_back(); }
  const tile::Extents& extents() const { return extents_; }

  /// What is evaluated between the two is forgotten: it belongs to an inner region.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }

  Value evaluate(const Scalar& scalar);
  Id id_of(const Value& value);
  /// At every position of the tile.
  Id full(const Value& value);
  Value converted(const Value& value, Sort sort);
  /// What a number is when it has been stored as the dtype and read again.
  Id stored_and_read(Id id, DType dtype, Sort sort);
  /// The index variable as an integer.
  Value axis(const std::string& name);
  Value evaluate_over_loops(const Scalar& scalar);
  /// Whether they are in their ranges; nothing where they always are.
  std::optional<Id> guard(const std::vector<tile::Nest::Axis>& guards);
  std::optional<Id> both(std::optional<Id> a, std::optional<Id> b);

  /// Runs the fold and remembers its results.
  void run_fold(const std::shared_ptr<const Fold>& fold, const FoldNest& nest);
  /// The result of a fold of one component that was run elsewhere.
  void set_fold(const Fold& fold, const Value& value) {
    scopes_.back().folds.insert_or_assign(&fold, std::vector{value});
  }
  /// Evaluates every read of a tensor in an expression, so that it is there further in.
  void preload(const Scalar& scalar, const std::string& tensor);

  /// The value at every position of the tile's axes, stored at these indices, where the guard
  /// holds. `drops_outside`: what the guard leaves out is outside of the tensor along some axis, so
  /// that a view need not be told.
  void store(const Memory& into, const std::vector<Value>& at, const Value& value,
             std::optional<Id> guard, bool drops_outside);

  /// The value at every position of the tile's axes, stored at these indices or, where they are in
  /// range, combined with what is there. No two positions of a tile may have the same.
  void update(const Memory& into, const std::vector<Scalar>& at, const Value& value,
              std::optional<Id> guard, std::optional<Fn> combine);

  /// The value along those axes of the tile that the indices run along, stored there.
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
  Value apply_affine(Fn fn, const std::vector<Value>& args, bool& done);
  Id apply(Fn fn, Sort meet, const std::vector<Id>& args);
  Range range_of(Fn fn, const std::vector<Value>& args) const;

  // evaluate_memory.cpp
  Value read_memory(const Memory& memory, const node::Read& n, const std::vector<Value>& at);
  Value read_computed(const tile::Stage& stage, const node::Read& n, const std::vector<Value>& at);
  Value read_held(const Held& held, const node::Read& n, const std::vector<Value>& at);
  static bool is_outside(const Memory& memory, const std::vector<Value>& at);
  /// Whether it is a read that is 0 because it is outside.
  bool is_padding(const Scalar& scalar);
  std::optional<Id> in_range(const std::vector<Value>& at, const tile::Extents& shape);
  std::optional<Id> load_view(const Memory& memory, const std::vector<Value>& at,
                              tile::Literal pad);
  Id load_pointers(const Memory& memory, const std::vector<Value>& at, std::optional<Id> mask);
  Id pointers(const Memory& memory, const std::vector<Value>& at);

  // evaluate_fold.cpp
  struct Running;
  void run_loops(Running& run, std::size_t depth);
  void step(Running& run);
  bool step_product(Running& run);
  void step_dot(Running& run);
  std::vector<Id> combine(const Fold& fold, const std::vector<Id>& left,
                          const std::vector<Id>& right);
  std::vector<tile::Loop> inline_loops(const Fold& fold);
  void run_inline(const std::shared_ptr<const Fold>& fold);
  std::set<int> tile_axes_of(const Scalar& scalar);
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

  /// All of one shape: the extents broadcast, missing axes added.
  void fit(std::vector<Id>& ids);
  Id shaped(Id id, tile::Extents shape);
  /// A tile whose axes are these axes of the program's tile, in order, as one of the full rank.
  Id placed(Id id, const std::vector<int>& axes);
  /// The other way: without the axes that are not named, in the order in which they are.
  Id taken(Id id, const std::vector<int>& axes);

  tile::Builder& b_;
  DType number_;
  tile::Extents extents_;
  std::map<std::string, Memory, std::less<>> memory_;
  std::map<std::string, const tile::Stage*, std::less<>> computed_;
  std::map<std::string, Held, std::less<>> held_;
  std::map<std::string, Value, std::less<>> tiles_;
  std::map<std::string, Value, std::less<>> loops_;
  std::vector<Frame> frames_;
  std::vector<Scope> scopes_ = {{}};
  std::vector<Scalar> keep_;  // ids of expressions stay their own while memos live
  std::optional<Diagnostic> error_;
  bool over_loops_ = false;  // an index is a loop, not a variable
  bool inverts_ = false;
};

}  // namespace tessera::lower
