#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/expr/walk.h"
#include "tessera/lower/evaluate.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Extents;
using tile::Function;
using tile::Loop;
using tile::Type;

namespace {

/// Largest tiles of a reduction inside of an expression, whose axes become axes of the tile.
constexpr std::int64_t kInlineElements = 4096, kTileElements = 1 << 18;

/// What a reduction of a tile has a name for.
std::optional<Function> reduction(const Fold& fold) {
  const bool values = fold.init[0].sort() == Sort::Value;
  const std::optional<Fn> fn = fold.simple();
  if (!fn) return std::nullopt;
  switch (*fn) {
    case Fn::Add: return Function::Add;
    case Fn::Mul: return Function::Mul;
    case Fn::Max: return values ? Function::Maximum : Function::Max;
    case Fn::Min: return values ? Function::Minimum : Function::Min;
    case Fn::And: return Function::And;
    case Fn::Or: return Function::Or;
    default: return std::nullopt;
  }
}

std::int64_t tile_elements(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

/// Reduction that is being emitted.
struct Evaluator::FoldState {
  const Fold& fold;
  const FoldNest& nest;
  const std::vector<UnrolledPosition>& positions;
  std::vector<Id> init = {};                 // one per component
  std::vector<Id> result = {};               // accumulators, one per component and position
  std::vector<int> rows = {}, columns = {};  // of a matmul: axes of the tile
};

void Evaluator::collect_axes(const Scalar& scalar, std::set<const void*>& seen,
                             std::set<int>& axes) {
  if (!seen.insert(scalar.id()).second) return;
  if (const auto* index = std::get_if<node::Index>(&scalar.node())) {
    const Frame& frame = frames_.back();
    const auto it = frame.axes.find(index->axis);
    // The axes of folds that are not open vary within them alone.
    if (it != frame.axes.end()) {
      const std::function<bool(const Scalar&)> open = [&](const Scalar& at) {
        const auto* loop = std::get_if<node::Index>(&at.node());
        bool all = loop == nullptr || loops_.contains(loop->axis);
        for_each_part(at, [&](const Scalar& part) { all = all && open(part); });
        return all;
      };
      if (!open(it->second.at)) return;
    } else if (!frame.fixed.contains(index->axis)) {
      return;
    }
    const Value value = axis(index->axis);
    if (value.position) {
      for (const auto& [variable, factor] : value.position->terms)
        if (variable.is_axis()) axes.insert(static_cast<int>(variable.index));
    } else {
      const Extents& shape = b_.type(*value.id).shape;
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (shape[i] > 1) axes.insert(static_cast<int>(i));
    }
  }
  for_each_part(scalar, [&](const Scalar& part) { collect_axes(part, seen, axes); });
}

std::set<int> Evaluator::tile_axes_of(const Scalar& scalar) {
  std::set<const void*> seen;
  std::set<int> axes;
  collect_axes(scalar, seen, axes);
  return axes;
}

std::vector<Loop> Evaluator::inline_loops(const Fold& fold) {
  std::vector<Loop> loops;
  for (const Bound& bound : fold.bounds) {
    std::optional<std::int64_t> extent =
        tile::number_of_size(bound.extent, frames_.back().stage->sizes);
    if (!extent) {
      // It may depend on outer indices; where it leaves off is checked then.
      const Range range = evaluate(bound.extent).range;
      if (range.high < (std::int64_t{1} << 31)) extent = range.high;
    }
    if (!extent) {
      unsupported(fmt::format("the extent of axis {} depends on data", bound.axis));
      return {};
    }
    loops.push_back(
        {.name = bound.axis, .extent = std::max<std::int64_t>(*extent, 0), .reduces = true});
  }
  std::int64_t elements = 1;
  const std::int64_t around = tile_elements(extents_);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->extent < 1 || loop->extent > kInlineElements / elements) break;
    elements *= loop->extent;
    if (elements > std::max<std::int64_t>(kTileElements / around, 1) ||
        static_cast<int>(extents_.size()) + (loop - loops.rbegin()) >= tile::kMostAxes)
      break;
    loop->kind = Loop::Kind::Vector;
  }
  return loops;
}

void Evaluator::run_inline(const std::shared_ptr<const Fold>& fold) {
  const std::vector<Loop> loops = inline_loops(*fold);
  if (error_) return;
  FoldNest nest;
  Frame& frame = frames_.back();
  const auto axes_before = frame.axes;
  const auto loops_before = loops_;
  for (const Loop& loop : loops) {
    frame.axes.insert_or_assign(
        loop.name, tile::Nest::Axis{loop.name, loop.extent, true, index_of(loop.name)});
    loops_.erase(loop.name);
  }
  for (const Loop& loop : loops) {
    if (loop.kind != Loop::Kind::Vector) {
      nest.loops.push_back(loop);
      continue;
    }
    if (loop.extent > 1) nest.vectors.push_back(push_axis(loop.extent));
    bind_loop(loop, loop.extent > 1 ? axis_position(nest.vectors.back()) : Position{});
  }
  run_fold(fold, nest);
  for (std::size_t i = 0; i < nest.vectors.size(); ++i) pop_axis();
  frames_.back().axes = axes_before;
  loops_ = loops_before;
}

std::set<int> Evaluator::kept_axes(const Scalar& scalar, const FoldNest& nest) {
  std::set<int> axes = tile_axes_of(scalar);
  for (const int axis : nest.vectors) axes.erase(axis);
  return axes;
}

/// The accumulators vary with what the terms vary with, whatever the round and the place in it.
Extents Evaluator::accumulator_shape(const Fold& fold, const FoldNest& nest) {
  std::set<int> axes;
  for (const Bound& bound : fold.bounds) axes.merge(kept_axes(bound.extent, nest));
  for (const auto* part : {&fold.init, &fold.lift})
    for (const Scalar& scalar : *part) axes.merge(kept_axes(scalar, nest));
  Extents shape;
  if (axes.empty()) return shape;
  shape.assign(static_cast<std::size_t>(*axes.rbegin()) + 1, 1);
  for (const int axis : axes)
    shape[static_cast<std::size_t>(axis)] = extents_[static_cast<std::size_t>(axis)];
  return shape;
}

std::vector<Evaluator::Id> Evaluator::initial_accumulators(const Fold& fold, const FoldNest& nest) {
  const Extents shape = accumulator_shape(fold, nest);
  std::vector<Id> result;
  for (const Scalar& init : fold.init) {
    const Id id = id_of(evaluate(init));
    result.push_back(shape.empty() || error_ ? id : shaped(id, shape));
  }
  return result;
}

void Evaluator::run_fold(const std::shared_ptr<const Fold>& fold, const FoldNest& nest) {
  auto results = run_folds(fold, nest, {{}});
  if (!results.empty()) scopes_.back().folds.emplace(fold.get(), std::move(results.front()));
}

std::vector<std::vector<Value>> Evaluator::run_folds(
    const std::shared_ptr<const Fold>& fold, const FoldNest& nest,
    const std::vector<UnrolledPosition>& positions) {
  if (error_) return {};
  FoldState run{.fold = *fold, .nest = nest, .positions = positions};
  push_scope();  // shapes and initial values are those of any position
  bind_position(positions.front());
  for (const Loop& loop : nest.loops) loops_.erase(loop.name);  // open no more since the last time
  Extents shape = accumulator_shape(*fold, nest);
  if (nest.tensorized) {
    const auto factors = tile::product_of(*fold);
    TESSERA_CHECK(factors.has_value(), "the reduction is not a matmul");
    const std::set<int> rows = kept_axes(factors->first, nest),
                        columns = kept_axes(factors->second, nest);
    run.rows.assign(rows.begin(), rows.end());
    run.columns.assign(columns.begin(), columns.end());
    shape = {count(run.rows), count(run.columns)};
  }
  for (const Scalar& init : fold->init) run.init.push_back(id_of(evaluate(init)));
  for (std::size_t i = 0; i < positions.size(); ++i)
    for (const Id init : run.init) run.result.push_back(shape.empty() ? init : shaped(init, shape));
  if (!nest.carried.empty()) run.result = nest.carried;
  pop_scope();
  push_scope();
  run_loops(run, 0);
  pop_scope();

  std::vector<std::vector<Value>> results(positions.size());
  for (std::size_t n = 0; n < run.result.size(); ++n) {
    const std::size_t i = n % run.init.size();
    Id id = run.result[n];
    if (nest.tensorized && !error_) {
      std::vector<int> placed_axes = run.rows;
      placed_axes.insert(placed_axes.end(), run.columns.begin(), run.columns.end());
      Extents extents;
      for (const int axis : placed_axes)
        extents.push_back(extents_[static_cast<std::size_t>(axis)]);
      id = placed(b_.reshape(id, extents), placed_axes);
    }
    Value value = number(id, fold->init[i].sort());
    if (value.sort == Sort::Integer && b_.type(id).is_scalar())
      value.position = scalar_position(id);
    results[n / run.init.size()].push_back(value);
  }
  return results;
}

std::int64_t Evaluator::count(const std::vector<int>& axes) const {
  std::int64_t all = 1;
  for (const int axis : axes) all *= extents_[static_cast<std::size_t>(axis)];
  return all;
}

void Evaluator::run_loops(FoldState& run, std::size_t depth) {
  if (error_) return;
  if (depth == run.nest.loops.size()) {
    const std::vector<Id> before = std::exchange(run.result, {});
    std::vector<Id> after;
    auto own = before.begin();
    for (const UnrolledPosition& position : run.positions) {
      push_scope();
      bind_position(position);
      run.result.assign(own, own + std::ssize(run.init));
      own += std::ssize(run.init);
      if (run.nest.tensorized)
        step_dot(run);
      else
        step(run);
      after.insert(after.end(), run.result.begin(), run.result.end());
      pop_scope();
    }
    run.result = std::move(after);
    return;
  }
  const Loop& loop = run.nest.loops[depth];
  const auto body = [&](const Position& at, const Range& range) {
    push_scope();
    bind_loop(loop.name, at, range);
    for (const tile::Nest::Place& read : run.nest.reads)
      if (read.loop == loop.name)
        for (const Scalar& lift : run.fold.lift) preload(lift, read.what);
    run_loops(run, depth + 1);
    pop_scope();
  };
  if (loop.kind == Loop::Kind::Unrolled || loop.extent == 1) {
    for (std::int64_t i = 0; i < loop.extent; ++i) body(Position::constant(i), {i, i});
    return;
  }
  const std::vector<std::int64_t> hints = loop.pipeline_depth > 0
                                              ? std::vector<std::int64_t>{loop.pipeline_depth, 0}
                                              : std::vector<std::int64_t>{};
  const auto opened =
      b_.open_for(b_.index(0), b_.index(loop.extent), b_.index(1), run.result, hints);
  run.result = opened.carried;
  body(scalar_position(opened.index), {0, std::max<std::int64_t>(loop.extent - 1, 0)});
  run.result = b_.close_for(run.result);
}

std::vector<Evaluator::Id> Evaluator::combine(const Fold& fold, const std::vector<Id>& left,
                                              const std::vector<Id>& right) {
  const auto values = [&](const std::vector<Id>& ids) {
    std::vector<Value> result;
    for (std::size_t i = 0; i < ids.size(); ++i)
      result.push_back(number(ids[i], fold.init[i].sort()));
    return result;
  };
  frames_.back().partials.emplace_back(values(left), values(right));
  // It may become a region of its own, which sees nothing of what is around it.
  const std::vector<Scope> outside = std::exchange(scopes_, {{}});
  std::vector<Id> result;
  for (std::size_t i = 0; i < fold.combine.size(); ++i)
    result.push_back(id_of(converted(evaluate(fold.combine[i]), fold.init[i].sort())));
  scopes_ = outside;
  frames_.back().partials.pop_back();
  for (std::size_t i = 0; i < result.size(); ++i)
    if (b_.type(result[i]).shape != b_.type(left[i]).shape)
      result[i] = shaped(result[i], b_.type(left[i]).shape);
  return result;
}

/// A sum that takes in a tile_elements without rounding it first: how sums round on the way is
/// open.
bool Evaluator::step_product(FoldState& run) {
  const auto factors = tile::product_of(run.fold);
  if (!factors || !run.nest.vectors.empty() || !run.nest.guards.empty()) return false;
  if (std::ranges::any_of(run.fold.bounds, [&](const Bound& bound) {
        return !tile::number_of_size(bound.extent, frames_.back().stage->sizes);
      }))
    return false;
  // A tile_elements with padding is nothing, as it is in a dot.
  if (is_padding(factors->first) || is_padding(factors->second)) return true;
  std::vector<Id> ids = {id_of(converted(evaluate(factors->first), Sort::Value)),
                         id_of(converted(evaluate(factors->second), Sort::Value)), run.result[0]};
  if (error_) return true;
  fit(ids);
  run.result[0] = b_.map(Function::Fma, ids);
  return true;
}

void Evaluator::step(FoldState& run) {
  if (step_product(run)) return;
  std::vector<Id> terms;
  for (std::size_t i = 0; i < run.fold.lift.size(); ++i)
    terms.push_back(id_of(converted(evaluate(run.fold.lift[i]), run.fold.init[i].sort())));
  std::optional<Id> within = guard(run.nest.guards);
  for (const Bound& bound : run.fold.bounds) {
    if (tile::number_of_size(bound.extent, frames_.back().stage->sizes)) continue;
    std::vector<Id> ids = {id_of(axis(bound.axis)), id_of(evaluate(bound.extent))};
    fit(ids);
    within = both(within, b_.map(Function::Less, ids));
  }
  if (error_) return;
  if (within)
    for (std::size_t i = 0; i < terms.size(); ++i) {
      std::vector<Id> ids = {*within, terms[i], run.init[i]};
      fit(ids);
      terms[i] = b_.map(Function::Select, ids);
    }
  if (!run.nest.vectors.empty()) {
    std::vector<Id> all = terms;
    fit(all);
    Extents shape = b_.type(all[0]).shape;
    shape.resize(extents_.size(), 1);
    for (const int axis : run.nest.vectors)
      shape[static_cast<std::size_t>(axis)] = extents_[static_cast<std::size_t>(axis)];
    for (Id& term : terms) term = shaped(term, shape);
    const auto function = reduction(run.fold);
    for (auto axis = run.nest.vectors.rbegin(); axis != run.nest.vectors.rend(); ++axis) {
      if (function)
        terms[0] = b_.reduce(*function, terms[0], *axis);
      else
        terms = b_.reduce(terms, *axis, [&](const auto& left, const auto& right) {
          return combine(run.fold, left, right);
        });
      // Axes behind it stay in their places.
      shape[static_cast<std::size_t>(*axis)] = 1;
      if (static_cast<std::size_t>(*axis) + 1 < shape.size())
        for (Id& term : terms) term = b_.reshape(term, shape);
      else
        shape.pop_back();
    }
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Extents shape = b_.type(run.result[i]).shape;
    if (shape == b_.type(terms[i]).shape) continue;
    // Reduced over axes of the fold, it may have axes of 1 more than it needs.
    if (b_.type(terms[i]).shape.size() > shape.size()) {
      if (shape.empty()) {
        terms[i] = b_.reshape(terms[i], {});
        continue;
      }
      Extents fewer = b_.type(terms[i]).shape;
      fewer.resize(shape.size());
      terms[i] = b_.reshape(terms[i], fewer);
    }
    terms[i] = shaped(terms[i], shape);
  }
  run.result = combine(run.fold, run.result, terms);
}

void Evaluator::step_dot(FoldState& run) {
  const auto factors = tile::product_of(run.fold);
  Id left = id_of(converted(evaluate(factors->first), Sort::Value));
  Id right = id_of(converted(evaluate(factors->second), Sort::Value));
  const std::optional<Id> within = guard(run.nest.guards);
  if (error_) return;
  if (within)
    for (Id* factor : {&left, &right}) {
      std::vector<Id> ids = {*within, *factor, constant(Sort::Value, 0)};
      fit(ids);
      *factor = b_.map(Function::Select, ids);
    }
  std::vector<int> rows = run.rows, columns = run.nest.vectors;
  rows.insert(rows.end(), run.nest.vectors.begin(), run.nest.vectors.end());
  columns.insert(columns.end(), run.columns.begin(), run.columns.end());
  const Extents& acc = b_.type(run.result[0]).shape;
  const std::int64_t m = acc[0], n = acc[1];
  const std::int64_t k = count(run.nest.vectors);
  const auto matrix = [&](Id id, const std::vector<int>& axes, Extents shape) {
    id = taken(id, axes);
    return b_.type(id).shape == shape ? id : b_.reshape(id, std::move(shape));
  };
  run.result[0] = b_.dot(matrix(left, rows, {m, k}), matrix(right, columns, {k, n}), run.result[0]);
}

}  // namespace tessera::lower
