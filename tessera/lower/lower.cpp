#include "tessera/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/evaluate.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Extents;
using tile::Loop;
using tile::Nest;
using tile::Schedule;
using tile::Stage;
using tile::Type;

namespace {

Expected<Extents> numbers(const Shape& shape, const Sizes& sizes) {
  Extents result;
  for (const Dim& dim : shape) {
    const auto extent = resolved(dim, sizes).constant();
    if (!extent || *extent < 0)
      return Diagnostic{.id = "lower-unsupported",
                        .message = fmt::format("size {} is not a number", dim.to_string())};
    result.push_back(*extent);
  }
  return result;
}

/// One stage with loops of its own.
class StageLowering {
 public:
  StageLowering(const Schedule& schedule, const Stage& stage, const Target* target = nullptr)
      : schedule_(schedule),
        stage_(stage),
        target_(target),
        nest_(schedule.nest(stage.name())),
        fold_(main_fold(stage)),
        builder_(stage.name()),
        evaluator_(builder_, number_type()) {}

  Expected<Lowered> run() {
    if (stage_.output.forward)
      return Diagnostic{.id = "lower-unsupported",
                        .message = "no code generation for this scatter",
                        .note = "interpreter fallback"};
    for (const Nest& other : schedule_.nests()) {
      if (!other.at || other.at->what != nest_.stage) continue;
      const Stage& inner = stage_called(other.stage);
      if (inner.output.forward)
        return Diagnostic{.id = "lower-unsupported",
                          .message = "a scatter cannot be inlined into another stage"};
      evaluator_.add_computed(inner);
      inner_.push_back(&inner);
    }
    TESSERA_TRY_DONE(add_params());
    evaluator_.enter(stage_, nest_.axes);
    Lowered lowered;
    lowered.arguments = names_;
    bind_parallel(lowered.grid);
    for (const Loop& loop : nest_.loops) {
      if (loop.kind != Loop::Kind::Vector) continue;
      if (loop.extent <= 1) {
        evaluator_.bind_loop(loop, {});
        continue;
      }
      const int axis = evaluator_.push_axis(loop.extent);
      evaluator_.bind_loop(loop, axis_position(axis));
      if (loop.reduces) {
        fold_axes_.push_back(axis);
        fold_extents_.push_back(loop.extent);
      }
    }
    for (const Loop& loop : nest_.loops)
      if (loop.kind == Loop::Kind::Parallel) preload(loop);
    if (const Loop* loop = nest_.write ? nest_.find(*nest_.write) : nullptr;
        loop != nullptr && loop->kind == Loop::Kind::Parallel)
      store_collected(static_cast<std::size_t>(loop - nest_.loops.data()) + 1);
    else
      nested(0);
    if (evaluator_.error()) return *evaluator_.error();
    TESSERA_TRY(lowered.kernel, builder_.finish());
    return lowered;
  }

 private:
  const Stage& stage_called(const std::string& name) const {
    return *std::ranges::find_if(schedule_.stages(),
                                 [&](const Stage& stage) { return stage.name() == name; });
  }

  DType number_type() const {
    return std::ranges::any_of(schedule_.stages(), is_wide) ? DType::F64 : DType::F32;
  }

  Expected<Done> add_param(const std::string& name, DType dtype, Extents shape) {
    if (evaluator_.memory(name) == nullptr) names_.push_back(name);
    return evaluator_.add_tensor(name, dtype, std::move(shape));
  }

  Expected<Done> add_params() {
    std::vector<const Stage*> reading = inner_;
    reading.insert(reading.begin(), &stage_);
    for (const Stage* stage : reading)
      for (const Operand& operand : stage->operands) {
        if (std::ranges::any_of(inner_, [&](const Stage* s) { return s->name() == operand.name; }))
          continue;
        TESSERA_TRY(Extents shape, numbers(operand.shape, stage->sizes));
        TESSERA_TRY_DONE(add_param(operand.name, operand.dtype, std::move(shape)));
      }
    if (evaluator_.memory(stage_.name()) != nullptr)
      return Diagnostic{.id = "lower-unsupported",
                        .message = fmt::format("{} is read and written", stage_.name())};
    TESSERA_TRY(Extents shape,
                numbers(target_ != nullptr ? target_->shape : stage_.output.shape(), stage_.sizes));
    return add_param(stage_.name(), stage_.output.dtype, std::move(shape));
  }

  /// Programs: the innermost loop runs fastest; from the third on, loops share an axis.
  void bind_parallel(tile::Grid& grid) {
    std::vector<const Loop*> loops;
    for (const Loop& loop : nest_.loops)
      if (loop.kind == Loop::Kind::Parallel) loops.push_back(&loop);
    std::ranges::reverse(loops);
    std::optional<tile::ValueId> rest;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const Loop& loop = *loops[i];
      const auto axis = static_cast<int>(std::min<std::size_t>(i, 2));
      std::int64_t& programs = grid[static_cast<std::size_t>(axis)];
      programs *= std::max<std::int64_t>(loop.extent, 0);
      if (i < 2 || i + 1 == loops.size()) {
        evaluator_.bind_loop(loop, scalar_position(rest ? *rest : builder_.pid(axis)));
        continue;
      }
      if (!rest) rest = builder_.pid(axis);
      const tile::ValueId extent = builder_.index(std::max<std::int64_t>(loop.extent, 1));
      evaluator_.bind_loop(loop,
                           scalar_position(builder_.map(tile::Function::Rem, {*rest, extent})));
      rest = builder_.map(tile::Function::Div, {*rest, extent});
    }
  }

  /// What is loaded or computed in a loop, before what lies inside of it.
  void preload(const Loop& loop) {
    for (const Nest::Place& read : places())
      if (read.loop == loop.name) evaluator_.preload(stage_.output.value, read.what);
  }
  std::vector<Nest::Place> places() const {
    std::vector<Nest::Place> result;
    for (const Nest& nest : schedule_.nests())
      if (nest.at && nest.at->what == nest_.stage) result.push_back({nest.stage, nest.at->loop});
    result.insert(result.end(), nest_.reads.begin(), nest_.reads.end());
    return result;
  }

  void nested(std::size_t depth) {
    while (depth < nest_.loops.size() && nest_.loops[depth].kind == Loop::Kind::Parallel) ++depth;
    if (is_innermost(depth)) return store(compute());
    if (is_jammed(depth)) return jam(depth);
    const Loop& loop = nest_.loops[depth];
    const auto body = [&](const Position& at, const Range& range) {
      evaluator_.push_scope();
      evaluator_.bind_loop(loop.name, at, range);
      preload(loop);
      if (nest_.write == loop.name)
        store_collected(depth + 1);
      else
        nested(depth + 1);
      evaluator_.pop_scope();
    };
    if (loop.kind == Loop::Kind::Unrolled || loop.extent == 1) {
      for (std::int64_t i = 0; i < loop.extent; ++i) body(Position::constant(i), {i, i});
      return;
    }
    std::vector<std::int64_t> hints;
    if (loop.pipeline_depth > 0) hints = {loop.pipeline_depth, 0};
    const auto opened = builder_.open_for(builder_.index(0), builder_.index(loop.extent),
                                          builder_.index(1), {}, hints);
    body(scalar_position(opened.index), {0, std::max<std::int64_t>(loop.extent - 1, 0)});
    builder_.close_for({});
  }

  /// Whether the loops from here on are unrolled around a reduction that has loops: they are then
  /// unrolled inside of it. What is loaded or computed in a loop would be of one position alone.
  bool is_jammed(std::size_t depth) const {
    if (fold_ == nullptr || nest_.write || !places().empty()) return false;
    for (; !is_innermost(depth); ++depth)
      if (nest_.loops[depth].kind != Loop::Kind::Unrolled) return false;
    return std::ranges::any_of(nest_.loops, [](const Loop& loop) {
      return loop.reduces && loop.kind == Loop::Kind::Serial && loop.extent > 1;
    });
  }
  void jam(std::size_t depth) {
    std::vector<UnrolledPosition> positions = {{}};
    for (; !is_innermost(depth); ++depth) {
      const Loop& loop = nest_.loops[depth];
      std::vector<UnrolledPosition> next;
      for (const UnrolledPosition& outer : positions)
        for (std::int64_t i = 0; i < loop.extent; ++i) {
          next.push_back(outer);
          next.back().emplace_back(loop.name, i);
        }
      positions = std::move(next);
    }
    if (positions.empty()) return;
    auto results = evaluator_.run_folds(fold_, fold_nest(), positions);
    for (std::size_t i = 0; i < results.size(); ++i) {
      evaluator_.push_scope();
      evaluator_.bind_position(positions[i]);
      evaluator_.set_fold_results(*fold_, std::move(results[i]));
      store(result());
      evaluator_.pop_scope();
    }
  }

  bool is_innermost(std::size_t depth) const {
    return depth == nest_.loops.size() || nest_.loops[depth].reduces ||
           nest_.loops[depth].kind == Loop::Kind::Vector;
  }

  /// The results of the unrolled loops from here on as one tile, stored at once: the loops become
  /// axes of the tile.
  void store_collected(std::size_t depth) {
    std::vector<const Loop*> loops;
    for (std::size_t i = depth; !is_innermost(i); ++i) loops.push_back(&nest_.loops[i]);
    std::vector<tile::ValueId> parts;
    collect(loops, 0, parts);
    if (evaluator_.error()) return;
    if (loops.empty() || parts.empty()) {
      if (!parts.empty()) store(value_of(parts[0]));
      return;
    }
    Extents shape = result_extents();
    shape.push_back(1);
    for (tile::ValueId& part : parts) part = builder_.reshape(part, shape);
    tile::ValueId all = builder_.concat(parts, static_cast<int>(shape.size()) - 1);
    shape.pop_back();
    for (const Loop* loop : loops) shape.push_back(loop->extent);
    all = builder_.reshape(all, shape);
    evaluator_.push_scope();
    close_fold();
    const std::vector<std::int64_t> fold_extents = std::exchange(fold_extents_, {});
    const std::vector<int> fold_axes = std::exchange(fold_axes_, {});
    for (const Loop* loop : loops)
      evaluator_.bind_loop(loop->name, axis_position(evaluator_.push_axis(loop->extent)),
                           {0, loop->extent - 1});
    store(value_of(all));
    for (std::size_t i = 0; i < loops.size(); ++i) evaluator_.pop_axis();
    fold_extents_ = fold_extents;
    fold_axes_ = fold_axes;
    open_fold();
    evaluator_.pop_scope();
  }
  void collect(const std::vector<const Loop*>& loops, std::size_t depth,
               std::vector<tile::ValueId>& parts) {
    if (depth == loops.size()) {
      const Value value = compute();
      close_fold();
      parts.push_back(evaluator_.full(value));
      open_fold();
      return;
    }
    for (std::int64_t i = 0; i < loops[depth]->extent; ++i) {
      evaluator_.push_scope();
      evaluator_.bind_loop(loops[depth]->name, Position::constant(i), {i, i});
      preload(*loops[depth]);
      collect(loops, depth + 1, parts);
      evaluator_.pop_scope();
    }
  }
  Extents result_extents() const {
    Extents extents = evaluator_.extents();
    extents.resize(extents.size() - fold_extents_.size());
    return extents;
  }
  Value value_of(tile::ValueId id) const {
    return {.sort = sort_of(stage_.output.dtype), .id = id};
  }

  FoldNest fold_nest() const {
    FoldNest fold{.vectors = fold_axes_,
                  .guards = guards(true),
                  .reads = places(),
                  .tensorized = nest_.tensorized};
    for (const Loop& loop : nest_.loops)
      if (loop.reduces && loop.kind != Loop::Kind::Vector) fold.loops.push_back(loop);
    return fold;
  }
  Value compute() {
    if (fold_ != nullptr) evaluator_.run_fold(fold_, fold_nest());
    return result();
  }
  /// The output, once the reduction in it is computed.
  Value result() {
    return evaluator_.converted(evaluator_.evaluate(stage_.output.value),
                                sort_of(stage_.output.dtype));
  }

  std::vector<Nest::Axis> guards(bool reduces) const {
    std::vector<Nest::Axis> result;
    for (const Nest::Axis& guard : nest_.guards)
      if (guard.reduces == reduces) result.push_back(guard);
    return result;
  }

  /// The axes of the fold are no axes of the result.
  void close_fold() {
    for (std::size_t i = 0; i < fold_axes_.size(); ++i) evaluator_.pop_axis();
  }
  void open_fold() {
    for (const std::int64_t extent : fold_extents_) evaluator_.push_axis(extent);
  }

  void store(const Value& value) {
    if (evaluator_.error()) return;
    if (target_ != nullptr) {
      evaluator_.update(*evaluator_.memory(stage_.name()), target_->at, value,
                        evaluator_.guard(guards(false)), target_->combine);
      return;
    }
    // What leaves an axis of the tensor that is run through by one index variable is dropped.
    const auto is_dropped = [&](const Nest::Axis& guard) {
      return std::ranges::any_of(stage_.output.axes, [&](const MergedAxis& merged) {
        return merged.parts.size() == 1 && merged.parts[0].name == guard.name;
      });
    };
    const std::vector<Nest::Axis> guards = this->guards(false);
    std::vector<Value> at;
    for (const MergedAxis& merged : stage_.output.axes)
      at.push_back(evaluator_.evaluate(Scalar(merged)));
    close_fold();
    evaluator_.store(*evaluator_.memory(stage_.name()), at, value, evaluator_.guard(guards),
                     std::ranges::all_of(guards, is_dropped));
    open_fold();
  }

  const Schedule& schedule_;
  const Stage& stage_;
  const Target* target_;  // null: its own tensor
  const Nest& nest_;
  std::shared_ptr<const Fold> fold_;
  tile::Builder builder_;
  Evaluator evaluator_;
  std::vector<const Stage*> inner_;  // stages that are computed in this one
  std::vector<std::string> names_;
  std::vector<int> fold_axes_;  // of the tile, the last ones
  std::vector<std::int64_t> fold_extents_;
};

}  // namespace

Expected<std::vector<Lowered>> lower(const Schedule& schedule) {
  std::vector<Lowered> result;
  for (const Stage& stage : schedule.stages()) {
    if (schedule.nest(stage.name()).at) continue;
    TESSERA_TRY(Lowered lowered, StageLowering(schedule, stage).run());
    result.push_back(std::move(lowered));
  }
  return result;
}

Expected<Lowered> lower_writes(const Schedule& schedule, const Target& target) {
  return StageLowering(schedule, schedule.stages().front(), &target).run();
}

bool is_wide(const Stage& stage) {
  bool wide = stage.output.dtype == DType::F64;
  bool of_floats = !stage.operands.empty();
  for (const Operand& operand : stage.operands) {
    wide = wide || operand.dtype == DType::F64;
    of_floats = of_floats && is_float(operand.dtype);
  }
  for_each_within(stage.output.value, [&](const Scalar& part) {
    const auto* cast = std::get_if<node::Cast>(&part.node());
    wide = wide || (cast != nullptr && cast->to == DType::F64);
    // Powers and roots of integers have more digits than f32; those of floats are rounded.
    const auto* apply = std::get_if<node::Apply>(&part.node());
    wide = wide || (apply != nullptr && is_integer(stage.output.dtype) && !of_floats &&
                    (apply->fn == Fn::Pow || apply->fn == Fn::Sqrt) && part.sort() == Sort::Value);
  });
  return wide;
}

void erase_unread_operands(Stage& stage) {
  std::set<std::string> names;
  for_each_read(stage.output.value, [&](const node::Read& read) { names.insert(read.operand); });
  std::erase_if(stage.operands, [&](const Operand& o) { return !names.contains(o.name); });
}

Expected<std::vector<Operand>> tensors_of(const tile::Stages& stages) {
  std::vector<Operand> result;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape,
                       const Sizes& sizes) -> Expected<Done> {
    if (std::ranges::count(result, name, &Operand::name) > 0) return Done{};
    TESSERA_TRY(const Extents extents, numbers(shape, sizes));
    result.push_back({name, dtype, {extents.begin(), extents.end()}});
    return Done{};
  };
  for (const Stage& stage : stages) {
    for (const Operand& operand : stage.operands)
      TESSERA_TRY_DONE(add(operand.name, operand.dtype, operand.shape, stage.sizes));
    TESSERA_TRY_DONE(add(stage.name(), stage.output.dtype, stage.output.shape(), stage.sizes));
  }
  return result;
}

}  // namespace tessera::lower
