#include "tessera/lower/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tessera::lower {

using tile::Extents;
using tile::Function;
using tile::Type;

void Evaluator::fail(Diagnostic diagnostic) {
  if (!error_) error_ = std::move(diagnostic);
}

void Evaluator::unsupported(std::string what) {
  fail({.id = "lower-unsupported", .message = std::move(what), .note = "interpreter fallback"});
}

const Evaluator::Memory* Evaluator::memory(const std::string& name) const {
  const auto it = memory_.find(name);
  return it == memory_.end() ? nullptr : &it->second;
}

void Evaluator::enter(const tile::Stage& stage, const std::vector<tile::Nest::Axis>& axes) {
  Frame& frame = frames_.emplace_back();
  frame.stage = &stage;
  for (const tile::Nest::Axis& axis : axes) frame.axes.emplace(axis.name, axis);
}

void Evaluator::bind_loop(const std::string& loop, const Position& at, const Range& range) {
  loops_.insert_or_assign(loop, integer(at, range));
}

void Evaluator::bind_loop(const tile::Loop& loop, const Position& at) {
  // A loop of one round has one position.
  bind_loop(loop.name, loop.extent == 1 ? Position::constant(0) : at,
            {0, std::max<std::int64_t>(loop.extent - 1, 0)});
}

int Evaluator::push_axis(std::int64_t extent) {
  extents_.push_back(extent);
  return static_cast<int>(extents_.size()) - 1;
}

DType Evaluator::dtype_of(Sort sort) const {
  switch (sort) {
    case Sort::Value: return number_;
    case Sort::Integer: return DType::I64;
    case Sort::Unsigned: return DType::U64;
    case Sort::Bool: return DType::Bool;
    case Sort::Text: break;
  }
  return number_;
}

Value Evaluator::evaluate(const Scalar& scalar) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto it = scope->made.find(scalar.id()); it != scope->made.end()) return it->second;
  if (error_) return integer({}, {});
  keep_.push_back(scalar);
  const Value value = std::visit([&](const auto& node) { return visit(node); }, scalar.node());
  scopes_.back().made.emplace(scalar.id(), value);
  return value;
}

Evaluator::Id Evaluator::id_of(const Value& value) {
  return value.id ? *value.id : materialized(value.position.value_or(Position{}));
}

Evaluator::Id Evaluator::full(const Value& value) {
  return extents_.empty() ? id_of(value) : shaped(id_of(value), extents_);
}

Value Evaluator::visit(const node::Constant& n) {
  if (n.sort == Sort::Integer)
    return integer(Position::constant(n.integer), {n.integer, n.integer});
  const Type type = Type::scalar(dtype_of(n.sort));
  return number(n.sort == Sort::Value ? b_.constant(type, n.number)
                                      : b_.constant(type, tile::Literal{0, n.integer}),
                n.sort);
}

Value Evaluator::visit(const node::Index& n) {
  if (!over_loops_) return axis(n.axis);
  const auto it = loops_.find(n.axis);
  TESSERA_CHECK(it != loops_.end(), "loop {} is not open", n.axis);
  return it->second;
}

Value Evaluator::axis(const std::string& name) {
  const Frame& frame = frames_.back();
  if (const auto it = frame.fixed.find(name); it != frame.fixed.end()) return it->second;
  const auto it = frame.axes.find(name);
  TESSERA_CHECK(it != frame.axes.end(), "axis {} is not bound", name);
  return evaluate_over_loops(it->second.at);
}

Value Evaluator::evaluate_over_loops(const Scalar& scalar) {
  const bool before = std::exchange(over_loops_, true);
  const Value value = evaluate(scalar);
  over_loops_ = before;
  return value;
}

Value Evaluator::visit(const node::Size& n) {
  const auto size = resolved(n.dim, frames_.back().stage->sizes).constant();
  if (!size) unsupported(fmt::format("size {} is not a number", n.dim.to_string()));
  const std::int64_t value = size.value_or(0);
  return integer(Position::constant(value), {value, value});
}

Value Evaluator::visit(const node::Partial& n) {
  TESSERA_CHECK(!frames_.back().partials.empty(), "left and right exist in a fold only");
  const auto& [left, right] = frames_.back().partials.back();
  return (n.side == node::Partial::Side::Left ? left
                                              : right)[static_cast<std::size_t>(n.component)];
}

const std::vector<Value>* Evaluator::fold_results(const Fold& fold) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto it = scope->folds.find(&fold); it != scope->folds.end()) return &it->second;
  return nullptr;
}

Value Evaluator::visit(const node::Component& n) {
  const std::vector<Value>* results = fold_results(*n.fold);
  if (results == nullptr) {
    run_inline(n.fold);
    results = fold_results(*n.fold);
  }
  if (results == nullptr) return number(constant(Sort::Value, 0), Sort::Value);
  return (*results)[static_cast<std::size_t>(n.index)];
}

std::optional<Evaluator::Id> Evaluator::both(std::optional<Id> a, std::optional<Id> b) {
  if (!a || !b) return a ? a : b;
  std::vector<Id> ids = {*a, *b};
  fit(ids);
  return b_.map(Function::And, ids);
}

std::optional<Evaluator::Id> Evaluator::guard(const std::vector<tile::Nest::Axis>& guards) {
  std::vector<Value> at;
  Extents extents;
  for (const tile::Nest::Axis& guard : guards) {
    at.push_back(evaluate_over_loops(guard.at));
    extents.push_back(guard.extent);
  }
  return in_range(at, extents);
}

// --- integers

Evaluator::Id Evaluator::scalar_part(const Position& position) {
  std::optional<Id> sum;
  for (const auto& [variable, factor] : position.terms) {
    if (variable.is_axis()) continue;
    const Id id = variable.index;
    const Id term = factor == 1 ? id : b_.mul(id, b_.index(factor));
    sum = sum ? b_.add(*sum, term) : term;
  }
  if (!sum) return b_.index(position.base);
  return position.base == 0 ? *sum : b_.add(*sum, b_.index(position.base));
}

Evaluator::Id Evaluator::materialized(const Position& position) {
  Id sum = scalar_part(position);
  for (const auto& [variable, factor] : position.terms) {
    if (!variable.is_axis()) continue;
    const std::int64_t extent = extents_[variable.index];
    Extents shape(variable.index, 1);
    shape.push_back(extent);
    Id term = b_.reshape(b_.iota(DType::I64, extent), shape);
    if (factor != 1) term = b_.mul(term, b_.broadcast(b_.index(factor), shape));
    std::vector<Id> ids = {sum, term};
    fit(ids);
    sum = b_.add(ids[0], ids[1]);
  }
  return sum;
}

Evaluator::Id Evaluator::constant(Sort sort, double number) {
  return b_.constant(Type::scalar(dtype_of(sort)), number);
}

// --- shapes

Evaluator::Id Evaluator::shaped(Id id, Extents shape) {
  const Type type = b_.type(id);
  if (type.shape == shape) return id;
  if (type.is_scalar()) return b_.broadcast(id, std::move(shape));
  if (type.shape.size() < shape.size()) {
    Extents longer = type.shape;
    longer.resize(shape.size(), 1);
    id = b_.reshape(id, longer);
    if (longer == shape) return id;
  }
  return b_.broadcast(id, std::move(shape));
}

void Evaluator::fit(std::vector<Id>& ids) {
  Extents shape;
  for (const Id id : ids) {
    const Extents& other = b_.type(id).shape;
    if (other.size() > shape.size()) shape.resize(other.size(), 1);
    for (std::size_t i = 0; i < other.size(); ++i) shape[i] = std::max(shape[i], other[i]);
  }
  if (shape.empty()) return;
  for (Id& id : ids) id = shaped(id, shape);
}

Evaluator::Id Evaluator::placed(Id id, const std::vector<int>& axes) {
  if (axes.empty()) return b_.reshape(id, {});
  std::vector<std::int64_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int64_t i) { return axes[static_cast<std::size_t>(i)]; });
  if (!std::ranges::is_sorted(order)) id = b_.permute(id, order);
  Extents shape(static_cast<std::size_t>(std::ranges::max(axes)) + 1, 1);
  for (const int axis : axes)
    shape[static_cast<std::size_t>(axis)] = extents_[static_cast<std::size_t>(axis)];
  return b_.type(id).shape == shape ? id : b_.reshape(id, shape);
}

Evaluator::Id Evaluator::taken(Id id, const std::vector<int>& axes) {
  Extents full = extents_;
  std::vector<int> sorted = axes;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < full.size(); ++i)
    if (!std::ranges::binary_search(sorted, static_cast<int>(i))) full[i] = 1;
  id = shaped(id, full);
  Extents kept;
  for (const int axis : sorted) kept.push_back(extents_[static_cast<std::size_t>(axis)]);
  if (kept != full) id = b_.reshape(id, kept);
  std::vector<std::int64_t> order;
  for (const int axis : axes)
    order.push_back(std::ranges::lower_bound(sorted, axis) - sorted.begin());
  return std::ranges::is_sorted(order) ? id : b_.permute(id, order);
}

}  // namespace tessera::lower
