#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/small_types.h"
#include "tessera/support/small_float.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Extents;
using tile::Function;
using tile::Literal;
using tile::Type;

namespace {

/// The axis of the tile along which consecutive elements are read, if the index says no more.
struct UnitIndex {
  Position scalar = {};
  int axis = -1;
};
std::optional<UnitIndex> unit_index(const Value& value) {
  if (!value.position) return std::nullopt;
  UnitIndex result{.scalar = value.position->without(&PositionVariable::is_axis)};
  for (const auto& [variable, factor] : value.position->terms) {
    if (!variable.is_axis()) continue;
    if (factor != 1 || result.axis >= 0) return std::nullopt;
    result.axis = static_cast<int>(variable.index);
  }
  return result;
}

/// All indices as such, each axis of the tile in one of them at most.
std::optional<std::vector<UnitIndex>> unit_indices(const std::vector<Value>& at) {
  std::vector<UnitIndex> result;
  std::set<int> axes;
  for (const Value& index : at) {
    const auto unit = unit_index(index);
    if (!unit || (unit->axis >= 0 && !axes.insert(unit->axis).second)) return std::nullopt;
    result.push_back(*unit);
  }
  return result;
}

/// The literal of an expression that is a constant, as a tensor of the dtype stores it.
std::optional<Literal> literal_of(const Scalar& scalar, DType dtype) {
  const auto* constant = std::get_if<node::Constant>(&scalar.node());
  if (constant == nullptr) return std::nullopt;
  if (is_float(dtype)) {
    const double number =
        constant->sort == Sort::Value ? constant->number : static_cast<double>(constant->integer);
    return is_small(dtype) ? Literal{0, encoded(dtype, number)} : tile::literal_of(dtype, number);
  }
  if (constant->sort == Sort::Value) return std::nullopt;
  return Literal{0, constant->integer};
}

}  // namespace

Expected<Done> Evaluator::add_tensor(const std::string& name, DType dtype, Extents shape) {
  if (memory(name) != nullptr) return Done{};
  if (dtype == DType::String)
    return Diagnostic{.id = "lower-unsupported", .message = "no code generation for strings"};
  if (!element_count(shape))
    return Diagnostic{.id = "lower-unsupported",
                      .message = fmt::format("{} has too many elements", name)};
  const bool viewed =
      !shape.empty() && shape.size() <= tile::kMostAxes && std::ranges::count(shape, 0) == 0;
  const DType stored = storage_of(dtype);
  const Id id = b_.param(viewed ? Type::view(stored, shape) : Type::pointer(stored), name);
  add_memory({.operand = {name, dtype, {}}, .shape = std::move(shape), .param = id});
  return Done{};
}

std::optional<Evaluator::Id> Evaluator::in_range(const std::vector<Value>& at,
                                                 const Extents& shape) {
  std::optional<Id> mask;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i].range.within(shape[i])) continue;
    const Id index = id_of(at[i]);
    const Type type = b_.type(index);
    if (at[i].range.low < 0)
      mask = both(mask, b_.map(Function::GreaterEqual, {index, b_.constant(type, 0)}));
    if (at[i].range.high >= shape[i])
      mask = both(mask, b_.map(Function::Less, {index, b_.constant(type, Literal{0, shape[i]})}));
  }
  return mask;
}

std::optional<Evaluator::Id> Evaluator::load_view(const Memory& memory,
                                                  const std::vector<Value>& at, Literal pad) {
  if (!b_.type(memory.param).is_view()) return std::nullopt;
  const auto units = unit_indices(at);
  if (!units) return std::nullopt;
  std::vector<Id> offsets;
  std::vector<int> axes;
  Extents shape, kept;
  for (const UnitIndex& unit : *units) {
    shape.push_back(unit.axis < 0 ? 1 : extents_[static_cast<std::size_t>(unit.axis)]);
    if (unit.axis < 0) continue;
    axes.push_back(unit.axis);
    kept.push_back(shape.back());
  }
  if (axes.empty()) return std::nullopt;
  for (const UnitIndex& unit : *units) offsets.push_back(scalar_part(unit.scalar));
  Id loaded = b_.vload(memory.param, offsets, shape, pad);
  if (kept != shape) loaded = b_.reshape(loaded, kept);
  return placed(loaded, axes);
}

Evaluator::Id Evaluator::pointers(const Memory& memory, const std::vector<Value>& at) {
  const Type type = b_.type(memory.param);
  std::int64_t dense = 1;
  std::optional<Position> offset = Position{};
  std::vector<Id> computed;
  for (std::size_t i = at.size(); i-- > 0;) {
    const std::int64_t stride = type.is_view() ? type.strides[i] : dense;
    const std::optional<Position> sum =
        at[i].position && offset ? offset->plus(*at[i].position, stride) : std::nullopt;
    if (sum) {
      offset = sum;
    } else {
      const Id index = id_of(at[i]);
      computed.push_back(
          stride == 1 ? index : b_.mul(index, b_.constant(b_.type(index), Literal{0, stride})));
    }
    dense *= memory.shape[i];
  }
  computed.push_back(materialized(*offset));
  fit(computed);
  Id total = computed[0];
  for (std::size_t i = 1; i < computed.size(); ++i) total = b_.add(total, computed[i]);
  Id base = type.is_view() ? b_.base(memory.param) : memory.param;
  if (!b_.type(total).is_scalar()) base = b_.broadcast(base, b_.type(total).shape);
  return b_.offset(base, total);
}

Evaluator::Id Evaluator::load_pointers(const Memory& memory, const std::vector<Value>& at,
                                       std::optional<Id> mask) {
  const Id pointer = pointers(memory, at);
  if (!mask) return b_.load(pointer);
  std::vector<Id> ids = {pointer, *mask};
  fit(ids);
  return b_.load(ids[0], ids[1]);
}

Value Evaluator::visit(const node::Read& n) {
  std::vector<Value> at;
  if (const auto it = tiles_.find(n.operand); it != tiles_.end())
    return converted(it->second, n.sort);
  for (const Scalar& index : n.at) at.push_back(converted(evaluate(index), Sort::Integer));
  if (error_) return integer({}, {});
  if (const auto it = held_.find(n.operand); it != held_.end()) return read_held(it->second, n, at);
  if (const auto it = computed_.find(n.operand); it != computed_.end())
    return read_computed(*it->second, n, at);
  const Memory* memory = this->memory(n.operand);
  TESSERA_CHECK(memory != nullptr, "operand {} is not there", n.operand);
  return read_memory(*memory, n, at);
}

/// Whether no position that is read is there.
bool Evaluator::is_outside(const Memory& memory, const std::vector<Value>& at) {
  for (std::size_t i = 0; i < at.size(); ++i)
    if (memory.shape[i] == 0 || at[i].range.high < 0 || at[i].range.low >= memory.shape[i])
      return true;
  return false;
}

bool Evaluator::is_padding(const Scalar& scalar) {
  const auto* read = std::get_if<node::Read>(&scalar.node());
  if (read == nullptr || read->otherwise == nullptr) return false;
  const Memory* memory = this->memory(read->operand);
  const auto* zero = std::get_if<node::Constant>(&read->otherwise->node());
  if (memory == nullptr || zero == nullptr || zero->number != 0 || zero->integer != 0) return false;
  std::vector<Value> at;
  for (const Scalar& index : read->at) at.push_back(converted(evaluate(index), Sort::Integer));
  return !error_ && is_outside(*memory, at);
}

Value Evaluator::read_memory(const Memory& memory, const node::Read& n,
                             const std::vector<Value>& at) {
  const DType dtype = memory.operand.dtype;
  const auto otherwise = [&] {
    return n.otherwise != nullptr ? converted(evaluate(*n.otherwise), n.sort)
                                  : number(constant(n.sort, 0), n.sort);
  };
  if (is_outside(memory, at)) return otherwise();
  const auto pad =
      n.otherwise == nullptr ? std::optional(Literal{}) : literal_of(*n.otherwise, dtype);
  const auto widened = [&](Id loaded) { return from_storage(b_, loaded, dtype, dtype_of(n.sort)); };
  if (pad)
    if (const auto loaded = load_view(memory, at, *pad)) {
      Value result = number(widened(*loaded), n.sort);
      if (is_small(dtype)) result.stored = {*loaded, dtype};
      return result;
    }
  const std::optional<Id> mask = in_range(at, memory.shape);
  const Id bytes = load_pointers(memory, at, mask);
  Id loaded = widened(bytes);
  const bool has_otherwise = mask && n.otherwise != nullptr;
  if (has_otherwise) {
    std::vector<Id> ids = {*mask, loaded, id_of(otherwise())};
    fit(ids);
    loaded = b_.map(Function::Select, ids);
  }
  Value result = number(loaded, n.sort);
  if (is_small(dtype) && !has_otherwise) result.stored = {bytes, dtype};
  if (n.sort == Sort::Integer && b_.type(loaded).is_scalar())
    result.position = scalar_position(loaded);
  return result;
}

Value Evaluator::read_held(const HeldTile& held, const node::Read& n,
                           const std::vector<Value>& at) {
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i].position != held.at[i]) {
      unsupported(fmt::format("{} is read at other positions than it is computed", n.operand));
      break;
    }
  return held.value;
}

Value Evaluator::read_computed(const tile::Stage& stage, const node::Read& n,
                               const std::vector<Value>& at) {
  Extents shape;
  Frame frame;
  frame.stage = &stage;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto& parts = stage.output.axes[i].parts;
    std::int64_t size = 1;
    Value rest = at[i];
    for (std::size_t p = parts.size(); p-- > 0;) {
      const std::int64_t extent = resolved(parts[p].size(), stage.sizes).constant().value_or(1);
      size *= extent;
      if (p == 0) {
        frame.fixed.emplace(parts[p].name, rest);
        continue;
      }
      frame.fixed.emplace(
          parts[p].name,
          number(apply(Fn::Mod, Sort::Integer,
                       {id_of(rest), b_.constant(b_.type(id_of(rest)), Literal{0, extent})}),
                 Sort::Integer));
      rest = number(apply(Fn::FloorDiv, Sort::Integer,
                          {id_of(rest), b_.constant(b_.type(id_of(rest)), Literal{0, extent})}),
                    Sort::Integer);
    }
    shape.push_back(size);
  }
  const std::optional<Id> mask = n.otherwise != nullptr ? in_range(at, shape) : std::nullopt;
  frames_.push_back(std::move(frame));
  push_scope();
  Value value = converted(evaluate(stage.output.value), n.sort);
  pop_scope();
  frames_.pop_back();
  if (!mask || error_) return value;
  std::vector<Id> ids = {*mask, id_of(value), id_of(converted(evaluate(*n.otherwise), n.sort))};
  fit(ids);
  return number(b_.map(Function::Select, ids), n.sort);
}

void Evaluator::preload(const Scalar& scalar, const std::string& tensor) {
  for_each_within(scalar, [&](const Scalar& part) {
    if (const auto* read = std::get_if<node::Read>(&part.node()); read && read->operand == tensor)
      evaluate(part);
  });
}

void Evaluator::store(const Memory& into, const std::vector<Value>& at, const Value& value,
                      std::optional<Id> guard, bool drops_outside) {
  if (error_) return;
  const DType dtype = into.operand.dtype;
  const bool is_move = value.stored && value.stored->dtype == dtype;
  Id id = is_move ? full({.sort = value.sort, .id = value.stored->id})
                  : to_storage(b_, full(value), dtype);
  const auto units = unit_indices(at);
  std::vector<int> axes;
  if (units)
    for (const UnitIndex& unit : *units)
      if (unit.axis >= 0) axes.push_back(unit.axis);
  if (drops_outside && units && axes.size() == extents_.size() && b_.type(into.param).is_view()) {
    Extents shape;
    std::vector<Id> offsets;
    for (const UnitIndex& unit : *units) {
      shape.push_back(unit.axis < 0 ? 1 : extents_[static_cast<std::size_t>(unit.axis)]);
      offsets.push_back(scalar_part(unit.scalar));
    }
    id = taken(id, axes);
    if (b_.type(id).shape != shape) id = b_.reshape(id, shape);
    b_.vstore(into.param, offsets, id);
    return;
  }
  if (drops_outside && !guard) guard = in_range(at, into.shape);
  Id pointer = pointers(into, at);
  if (!extents_.empty()) {
    const Type type = b_.type(pointer);
    if (type.shape != extents_) pointer = shaped(pointer, extents_);
    if (guard) guard = shaped(*guard, extents_);
  }
  b_.store(pointer, id, guard);
}

void Evaluator::update(const Memory& into, const std::vector<Scalar>& at, const Value& value,
                       std::optional<Id> guard, std::optional<Fn> combine) {
  std::vector<Value> places;
  for (const Scalar& index : at) places.push_back(converted(evaluate(index), Sort::Integer));
  if (error_) return;
  std::optional<Id> mask = both(guard, in_range(places, into.shape));
  if (mask) mask = shaped(*mask, extents_);
  Value made = value;
  if (combine) {
    const Id there = from_storage(b_, load_pointers(into, places, mask), into.operand.dtype,
                                  dtype_of(value.sort));
    std::vector<Id> ids = {there, id_of(value)};
    fit(ids);
    made = number(apply(*combine, value.sort, ids), value.sort);
  }
  store(into, places, made, mask, false);
}

void Evaluator::store_part(const Memory& into, const std::vector<Value>& at, const Value& value) {
  if (error_) return;
  const auto units = unit_indices(at);
  if (!units || !b_.type(into.param).is_view())
    return unsupported(fmt::format("{} is not stored along its axes", into.operand.name));
  Extents shape;
  std::vector<int> axes;
  std::vector<Id> offsets;
  for (const UnitIndex& unit : *units) {
    shape.push_back(unit.axis < 0 ? 1 : extents_[static_cast<std::size_t>(unit.axis)]);
    offsets.push_back(scalar_part(unit.scalar));
    if (unit.axis >= 0) axes.push_back(unit.axis);
  }
  Id id = id_of(value);
  if (!extents_.empty()) id = taken(id, axes);
  id = to_storage(b_, id, into.operand.dtype);
  if (b_.type(id).shape != shape) id = b_.reshape(id, shape);
  b_.vstore(into.param, offsets, id);
}

}  // namespace tessera::lower
