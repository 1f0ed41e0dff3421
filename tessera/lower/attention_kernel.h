#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tessera/lower/attention_form.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/lower.h"

namespace tessera::lower {

/// Attention kernel: its parameters, programs, operands of the matmuls, and the result. How a
/// program goes over the scores of its rows is that of the classes below.
class AttentionKernel {
 public:
  using Id = tile::ValueId;

  AttentionKernel(const Group& group, const AttentionForm& form, std::int64_t rows, DType products)
      : group_(group),
        form_(form),
        rows_(rows),
        products_(products),
        query_factor_(form.queries),
        key_factor_(form.keys),
        outside_(form.outside),
        b_(form.result.stage->name()),
        e_(b_, DType::F32) {}
  virtual ~AttentionKernel() = default;

  Expected<Lowered> run() {
    Lowered lowered;
    TESSERA_TRY(const std::vector<Operand> tensors, tensors_of(group_.stages));
    for (const Operand& tensor : tensors)
      if (!is_stage(tensor.name)) TESSERA_TRY_DONE(add(tensor, lowered.arguments));
    const std::string& out = form_.result.stage->name();
    TESSERA_TRY_DONE(add(*std::ranges::find(tensors, out, &Operand::name), lowered.arguments));
    bind_programs(lowered.grid);

    store(attend());
    if (e_.error()) return *e_.error();
    TESSERA_TRY(lowered.kernel, b_.finish());
    return lowered;
  }

 protected:
  /// Emits the second matmul.
  virtual Value attend() = 0;
  /// Adds the axis of the keys to the tile.
  virtual void bind_keys() { bind_whole(form_.key); }

  bool is_stage(const std::string& name) const {
    return std::ranges::any_of(group_.stages, [&](const auto& s) { return s.name() == name; });
  }
  Expected<Done> add(const Operand& tensor, std::vector<std::string>& arguments) {
    tile::Extents shape;
    for (const Dim& dim : tensor.shape) shape.push_back(*dim.constant());
    arguments.push_back(tensor.name);
    return e_.add_tensor(tensor.name, tensor.dtype, std::move(shape));
  }

  std::int64_t extent(int loop) const { return form_.extents[static_cast<std::size_t>(loop)]; }
  static std::string name_of(int loop) { return fmt::format("loop{}", loop); }
  bool is_batch(int loop) const {
    return loop != form_.row && loop != form_.key && loop != form_.inner && loop != form_.width;
  }

  Id program(int axis, std::int64_t count) {
    const Id pid = b_.pid(axis);
    b_.assume(b_.map(tile::Function::Less, {pid, b_.index(count)}));
    return pid;
  }

  /// Blocks of rows run fastest: they share keys and values. Where later rows see more keys, they
  /// come first, so that programs end at about the same time.
  void bind_programs(tile::Grid& grid) {
    if (along_one_axis_) return bind_programs_along_one_axis(grid);
    if (form_.row >= 0) {
      grid[0] = ceil_div(extent(form_.row), rows_);
      if (grid[0] > 1) {
        const Id pid = program(0, grid[0]);
        block_ = last_rows_first_ ? *Position::constant(grid[0] - 1).plus(scalar_position(pid), -1)
                                  : scalar_position(pid);
        block_ = *block_.times(rows_);
      }
    }
    grid[1] = batches();
    if (grid[1] > 1) bind_batch(program(1, grid[1]));
  }

  std::vector<int> batch_loops() const {
    std::vector<int> loops;
    for (int loop = 0; loop < static_cast<int>(form_.extents.size()); ++loop)
      if (is_batch(loop) && extent(loop) > 1) loops.push_back(loop);
    return loops;
  }
  std::int64_t batches() const {
    std::int64_t all = 1;
    for (const int loop : batch_loops()) all *= extent(loop);
    return all;
  }
  void bind_batch(Id rest) {
    std::vector<int> loops = batch_loops();
    while (loops.size() > 1) {
      const Id count = b_.index(extent(loops.back()));
      bind(loops.back(), scalar_position(b_.map(tile::Function::Rem, {rest, count})));
      rest = b_.map(tile::Function::Div, {rest, count});
      loops.pop_back();
    }
    bind(loops.back(), scalar_position(rest));
  }

  /// Blocks of rows run fastest; or, where later rows see more keys, those of some heads at a time,
  /// longest first.
  void bind_programs_along_one_axis(tile::Grid& grid) {
    const std::int64_t blocks = form_.row < 0 ? 1 : ceil_div(extent(form_.row), rows_),
                       heads = batches();
    grid[0] = blocks * heads;
    if (grid[0] == 1) return;
    const auto map = [&](tile::Function function, Id id, std::int64_t by) {
      return b_.map(function, {id, b_.index(by)});
    };
    Id pid = program(0, grid[0]), head = pid, block = pid;
    if (last_rows_first_ && blocks > 1) {
      const std::int64_t together = heads_together(blocks, heads);
      const Id rest = map(tile::Function::Rem, pid, blocks * together);
      block = b_.map(tile::Function::Sub,
                     {b_.index(blocks - 1), map(tile::Function::Div, rest, together)});
      head = b_.add(b_.mul(map(tile::Function::Div, pid, blocks * together), b_.index(together)),
                    map(tile::Function::Rem, rest, together));
    } else {
      block = map(tile::Function::Rem, pid, blocks);
      head = map(tile::Function::Div, pid, blocks);
    }
    if (blocks > 1) block_ = *scalar_position(block).times(rows_);
    if (heads > 1) bind_batch(head);
  }

  virtual std::int64_t heads_together(std::int64_t /*blocks*/, std::int64_t heads) const {
    return heads;
  }

  void bind(int loop, const Position& at) {
    e_.bind_loop(name_of(loop), at, {0, extent(loop) - 1});
  }

  void bind_whole(int loop) {
    const int axis = e_.push_axis(extent(loop));
    bind(loop, extent(loop) > 1 ? axis_position(axis) : Position{});
  }

  /// From here on tiles have these two axes.
  void set_axes(int first, int second) {
    while (!e_.extents().empty()) e_.pop_axis();
    for (const int loop : {first, second}) {
      if (loop == form_.row) {
        const int axis = e_.push_axis(rows_);
        if (loop < 0) continue;
        const std::int64_t end = ceil_div(extent(loop), rows_) * rows_;
        e_.bind_loop(name_of(loop), *block_.plus(axis_position(axis)), {0, end - 1});
      } else if (loop == form_.key) {
        bind_keys();
      } else {
        bind_whole(loop);
      }
    }
  }

  /// Axes of a tile of scores.
  void set_score_axes() {
    keys_first_ ? set_axes(form_.key, form_.row) : set_axes(form_.row, form_.key);
  }
  int key_axis() const { return keys_first_ ? 0 : 1; }
  /// The queries as an operand of the first matmul.
  Id queries() {
    return keys_first_ ? factor(form_.scores, query_factor_, form_.inner, form_.row)
                       : factor(form_.scores, query_factor_, form_.row, form_.inner);
  }
  /// The first matmul.
  Value scores(Id queries) {
    if (keys_first_)
      return product(factor(form_.scores, key_factor_, form_.key, form_.inner), queries);
    return product(queries, factor(form_.scores, key_factor_, form_.inner, form_.key));
  }
  /// The first operand of the second matmul: [row, key].
  Id weights(const Scalar& scalar, const std::vector<tile::Nest::Axis>& guards = {}) {
    if (!keys_first_) return factor(form_.result, scalar, form_.row, form_.key, guards);
    const Id id = factor(form_.result, scalar, form_.key, form_.row, guards);
    return e_.error() ? id : b_.permute(id, {1, 0});
  }

  tile::Nest::Axis axis_of(const AttentionStage& of, const std::string& variable) const {
    const auto loop = of.loop_of.find(variable);
    if (loop == of.loop_of.end()) return {variable, 1, false, Scalar(0)};
    return {variable, extent(loop->second), false, index_of(name_of(loop->second))};
  }
  void enter(const AttentionStage& of) {
    std::vector<tile::Nest::Axis> axes;
    for (const MergedAxis& merged : of.stage->output.axes)
      for (const Axis& axis : merged.parts) axes.push_back(axis_of(of, axis.name));
    for (const Bound& bound : of.fold->bounds) axes.push_back(axis_of(of, bound.axis));
    e_.enter(*of.stage, axes);
    e_.push_scope();
  }

  Id factor(const AttentionStage& of, const Scalar& scalar, int first, int second,
            const std::vector<tile::Nest::Axis>& guards = {}) {
    set_axes(first, second);
    enter(of);
    Id id = e_.full(e_.converted(e_.evaluate(scalar), Sort::Value));
    if (const auto within = e_.guard(guards); within && !e_.error()) {
      const tile::Extents shape = b_.type(id).shape;
      id = b_.map(tile::Function::Select, {e_.full({.sort = Sort::Bool, .id = *within}), id,
                                           b_.constant(tile::Type::tile(DType::F32, shape), 0.0)});
    }
    e_.pop_scope();
    return products_ == DType::F32 || e_.error() ? id : b_.cast(id, products_);
  }

  Id zeros(std::int64_t rows, std::int64_t columns) {
    return b_.constant(tile::Type::tile(DType::F32, {rows, columns}), 0.0);
  }
  Value product(Id a, Id b, std::optional<Id> sum = {}) {
    if (e_.error()) return {};
    if (!sum) sum = zeros(b_.type(a).shape[0], b_.type(b).shape[1]);
    return {.sort = Sort::Value, .id = b_.dot(a, b, *sum)};
  }

  /// Makes a stage, whose reduction has this result, readable. These conditions are known to hold.
  void hold(const AttentionStage& of, const Value& reduced,
            const std::vector<Scalar>& conditions = {}) {
    set_score_axes();
    enter(of);
    for (const Scalar& condition : conditions) e_.set_value(condition, e_.evaluate(truth(true)));
    e_.set_fold(*of.fold, reduced);
    const Value value = e_.converted(e_.evaluate(of.stage->output.value), Sort::Value);
    Evaluator::HeldTile held{.at = {}, .value = value};
    for (const MergedAxis& merged : of.stage->output.axes)
      held.at.push_back(e_.evaluate(Scalar(merged)).position.value_or(Position{}));
    e_.pop_scope();
    e_.hold_tile(of.stage->name(), std::move(held));
  }

  void store(Value sum) {
    const AttentionStage& of = form_.result;
    set_axes(form_.row, form_.width);
    enter(of);
    if (outside_ && !e_.error()) {
      const Id factor = e_.full(e_.converted(e_.evaluate(*outside_), Sort::Value));
      sum.id = b_.mul(*sum.id, factor);
    }
    if (blank_ && !e_.error()) {
      const Id blank = e_.full(e_.evaluate(*blank_));
      sum.id = b_.map(tile::Function::Select,
                      {blank, b_.constant(tile::Type(b_.type(*sum.id)), 0.0), *sum.id});
    }
    e_.set_fold(*of.fold, sum);
    const Value value =
        e_.converted(e_.evaluate(of.stage->output.value), sort_of(of.stage->output.dtype));
    std::vector<Value> at;
    for (const MergedAxis& merged : of.stage->output.axes)
      at.push_back(e_.evaluate(Scalar(merged)));
    std::vector<tile::Nest::Axis> guards;
    if (form_.row >= 0)
      guards.push_back({{}, extent(form_.row), false, index_of(name_of(form_.row))});
    e_.store(*e_.memory(of.stage->name()), at, value, e_.guard(guards), true);
    e_.pop_scope();
  }

  const Group& group_;
  const AttentionForm& form_;
  const std::int64_t rows_;
  const DType products_;
  Scalar query_factor_, key_factor_;  // of the first matmul
  std::optional<Scalar> outside_;     // common factor of the second sum
  std::optional<Scalar> blank_ = {};  // rows whose result is 0 regardless
  bool last_rows_first_ = false;      // in the order of programs
  bool along_one_axis_ = false;       // all programs, for persistent blocks
  /// Tiles of scores are [key, row]: keys are read as they lie in memory, and reductions over the
  /// keys have rows as their lanes.
  bool keys_first_ = false;
  tile::Builder b_;
  Evaluator e_;
  Position block_ = {};  // where the rows begin
};

}  // namespace tessera::lower
