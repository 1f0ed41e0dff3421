#include "tessera/tile/builder.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

/// Operands, with the optional ones that are present.
std::vector<ValueId> operands(std::vector<ValueId> always, std::optional<ValueId> first,
                              std::optional<ValueId> second = {}) {
  if (first) always.push_back(*first);
  if (second) always.push_back(*second);
  return always;
}

}  // namespace

Literal literal_of(DType dtype, double number) {
  if (is_float(dtype)) return {number, 0};
  if (std::isnan(number)) return {};
  constexpr double kLow = -0x1p63, kHigh = 0x1p63;
  if (number >= kHigh) return {0, std::numeric_limits<std::int64_t>::max()};
  return {0, static_cast<std::int64_t>(std::max(number, kLow))};
}

ValueId Builder::value(Type type) {
  kernel_.values.push_back({std::move(type), {}});
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

const Operation* Builder::definition(ValueId id) const {
  if (id >= definition_.size() || !definition_[id]) return nullptr;
  return &kernel_.ops[*definition_[id]];
}

OpId Builder::append(Operation op) {
  op.source = source_;
  if (!error_) {
    if (auto fits = check_types(kernel_, op); !fits) fail(std::move(fits).error());
  }
  kernel_.ops.push_back(std::move(op));
  const auto id = static_cast<OpId>(kernel_.ops.size() - 1);
  open_.back().ops.push_back(id);
  return id;
}

std::vector<ValueId> Builder::append_values(Operation op, const std::vector<Type>& types) {
  for (const Type& type : types) op.out.push_back(value(type));
  std::vector<ValueId> out = op.out;
  const OpId id = append(std::move(op));
  definition_.resize(kernel_.values.size());
  for (const ValueId value : out) definition_[value] = id;
  return out;
}

ValueId Builder::append_value(Operation op, Type type) {
  return append_values(std::move(op), {std::move(type)}).front();
}

std::vector<Type> Builder::types(const std::vector<ValueId>& values) const {
  std::vector<Type> types;
  for (const ValueId id : values) types.push_back(type(id));
  return types;
}

std::vector<ValueId> Builder::open(const std::vector<Type>& params) {
  open_.push_back({});
  for (const Type& param : params) open_.back().params.push_back(value(param));
  return open_.back().params;
}

Region Builder::close(const std::vector<ValueId>& yields) {
  append({.code = Code::Yield, .in = yields});
  Region region = std::move(open_.back());
  open_.pop_back();
  return region;
}

ValueId Builder::param(Type type, std::string name) {
  const ValueId id = value(std::move(type));
  kernel_.values[id].name = std::move(name);
  open_.front().params.push_back(id);
  return id;
}

ValueId Builder::pid(int axis) {
  return append_value({.code = Code::Pid, .ints = {axis}}, Type::scalar(DType::I64));
}

ValueId Builder::npid(int axis) {
  return append_value({.code = Code::Npid, .ints = {axis}}, Type::scalar(DType::I64));
}

ValueId Builder::constant(const Type& type, Literal literal) {
  return append_value({.code = Code::Const, .literal = literal}, type);
}

ValueId Builder::constant(const Type& type, double number) {
  return constant(type, literal_of(type.dtype, number));
}

ValueId Builder::iota(DType dtype, std::int64_t count) {
  return append_value({.code = Code::Iota}, Type::tile(dtype, {count}));
}

ValueId Builder::broadcast(ValueId x, Extents shape) {
  return append_value({.code = Code::Broadcast, .in = {x}}, type(x).shaped(std::move(shape)));
}

ValueId Builder::reshape(ValueId x, Extents shape) {
  return append_value({.code = Code::Reshape, .in = {x}}, type(x).shaped(std::move(shape)));
}

ValueId Builder::permute(ValueId x, std::vector<std::int64_t> order) {
  Extents shape;
  for (const std::int64_t axis : order) {
    const bool exists = axis >= 0 && axis < type(x).rank();
    shape.push_back(exists ? type(x).shape[static_cast<std::size_t>(axis)] : 1);
  }
  return append_value({.code = Code::Permute, .in = {x}, .ints = std::move(order)},
                      type(x).shaped(std::move(shape)));
}

ValueId Builder::concat(std::vector<ValueId> parts, int axis) {
  Type result = parts.empty() ? Type{} : type(parts.front());
  if (axis >= 0 && axis < result.rank()) {
    std::int64_t& extent = result.shape[static_cast<std::size_t>(axis)];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (axis < type(parts[i]).rank())
        extent += type(parts[i]).shape[static_cast<std::size_t>(axis)];
    }
  }
  return append_value({.code = Code::Concat, .in = std::move(parts), .ints = {axis}},
                      std::move(result));
}

ValueId Builder::slice(ValueId x, std::vector<std::int64_t> from, Extents shape) {
  return append_value({.code = Code::Slice, .in = {x}, .ints = std::move(from)},
                      type(x).shaped(std::move(shape)));
}

ValueId Builder::map(Function function, std::vector<ValueId> operands) {
  Type result = operands.empty() ? Type{} : type(operands.back());
  if (is_compare(function)) result = Type::tile(DType::Bool, result.shape);
  return append_value({.code = Code::Map, .function = function, .in = std::move(operands)},
                      std::move(result));
}

ValueId Builder::cast(ValueId x, DType to) {
  return append_value({.code = Code::Cast, .in = {x}}, type(x).of(to));
}

ValueId Builder::bitcast(ValueId x, DType to) {
  return append_value({.code = Code::Bitcast, .in = {x}}, type(x).of(to));
}

ValueId Builder::address(ValueId pointer) {
  return append_value({.code = Code::Bitcast, .in = {pointer}},
                      Type::tile(DType::I64, type(pointer).shape));
}

ValueId Builder::pointer_cast(ValueId pointer_or_address, DType pointee) {
  return append_value({.code = Code::Bitcast, .in = {pointer_or_address}},
                      Type::pointer(pointee, type(pointer_or_address).shape));
}

ValueId Builder::reduce(Function function, ValueId x, int axis) {
  return append_value({.code = Code::Reduce, .function = function, .in = {x}, .ints = {axis}},
                      type(x).shaped(without(type(x).shape, axis)));
}

ValueId Builder::scan(Function function, ValueId x, int axis, bool reverse) {
  return append_value(
      {.code = Code::Scan, .function = function, .in = {x}, .ints = {axis, reverse ? 1 : 0}},
      type(x));
}

Operation Builder::folding(Code code, std::vector<ValueId> x, std::vector<std::int64_t> ints,
                           const Combine& combine) {
  std::vector<Type> elements;
  for (const ValueId id : x) elements.push_back(type(id).shaped({}));
  std::vector<Type> both = elements;
  both.insert(both.end(), elements.begin(), elements.end());
  const std::vector<ValueId> params = open(both);
  const auto half = params.begin() + static_cast<std::ptrdiff_t>(x.size());
  Region region = close(combine({params.begin(), half}, {half, params.end()}));
  return {
      .code = code, .in = std::move(x), .ints = std::move(ints), .regions = {std::move(region)}};
}

std::vector<ValueId> Builder::reduce(std::vector<ValueId> x, int axis, const Combine& combine) {
  std::vector<Type> results;
  for (const ValueId id : x) results.push_back(type(id).shaped(without(type(id).shape, axis)));
  return append_values(folding(Code::Reduce, std::move(x), {axis}, combine), results);
}

std::vector<ValueId> Builder::scan(std::vector<ValueId> x, int axis, bool reverse,
                                   const Combine& combine) {
  const std::vector<Type> results = types(x);
  return append_values(folding(Code::Scan, std::move(x), {axis, reverse ? 1 : 0}, combine),
                       results);
}

ValueId Builder::gather(ValueId x, ValueId index, int axis) {
  return append_value({.code = Code::Gather, .in = {x, index}, .ints = {axis}},
                      type(x).shaped(type(index).shape));
}

ValueId Builder::dot(ValueId a, ValueId b, ValueId c) {
  return append_value({.code = Code::Dot, .in = {a, b, c}}, type(c));
}

ValueId Builder::offset(ValueId pointer, ValueId elements) {
  return append_value({.code = Code::Offset, .in = {pointer, elements}}, type(pointer));
}

ValueId Builder::load(ValueId pointer, std::optional<ValueId> mask, std::optional<ValueId> other) {
  return append_value({.code = Code::Load, .in = operands({pointer}, mask, other)},
                      Type::tile(type(pointer).dtype, type(pointer).shape));
}

void Builder::store(ValueId pointer, ValueId x, std::optional<ValueId> mask) {
  append({.code = Code::Store, .in = operands({pointer, x}, mask)});
}

ValueId Builder::view(ValueId pointer, Type type, const std::vector<ValueId>& open) {
  Operation op{.code = Code::View, .in = {pointer}};
  op.in.insert(op.in.end(), open.begin(), open.end());
  return append_value(std::move(op), std::move(type));
}

ValueId Builder::dim(ValueId view, int axis) {
  return append_value({.code = Code::Dim, .in = {view}, .ints = {axis}}, Type::scalar(DType::I64));
}

ValueId Builder::stride(ValueId view, int axis) {
  return append_value({.code = Code::Stride, .in = {view}, .ints = {axis}},
                      Type::scalar(DType::I64));
}

ValueId Builder::base(ValueId view) {
  return append_value({.code = Code::Base, .in = {view}}, Type::pointer(type(view).dtype));
}

ValueId Builder::vload(ValueId view, const std::vector<ValueId>& at, Extents shape, Literal pad) {
  Operation op{.code = Code::Vload, .in = {view}, .literal = pad};
  op.in.insert(op.in.end(), at.begin(), at.end());
  return append_value(std::move(op), Type::tile(type(view).dtype, std::move(shape)));
}

void Builder::vstore(ValueId view, const std::vector<ValueId>& at, ValueId x) {
  Operation op{.code = Code::Vstore, .in = {view}};
  op.in.insert(op.in.end(), at.begin(), at.end());
  op.in.push_back(x);
  append(std::move(op));
}

ValueId Builder::atomic(Function function, ValueId pointer, ValueId x,
                        std::optional<ValueId> mask) {
  return append_value(
      {.code = Code::Atomic, .function = function, .in = operands({pointer, x}, mask)}, type(x));
}

ValueId Builder::cas(ValueId pointer, ValueId expected, ValueId x) {
  return append_value({.code = Code::Cas, .in = {pointer, expected, x}}, type(x));
}

Builder::Loop Builder::open_for(ValueId from, ValueId to, ValueId step, std::vector<ValueId> start,
                                std::vector<std::int64_t> hints) {
  std::vector<Type> params = {type(from)};
  for (const ValueId id : start) params.push_back(type(id));
  Operation op{.code = Code::For, .in = {from, to, step}, .ints = std::move(hints)};
  op.in.insert(op.in.end(), start.begin(), start.end());
  op.source = source_;
  loops_.push_back(std::move(op));
  const std::vector<ValueId> given = open(params);
  return {given.front(), {given.begin() + 1, given.end()}};
}

std::vector<ValueId> Builder::close_for(const std::vector<ValueId>& next) {
  Operation op = std::move(loops_.back());
  loops_.pop_back();
  op.regions.push_back(close(next));
  const std::vector<ValueId> start(op.in.begin() + 3, op.in.end());
  return append_values(std::move(op), types(start));
}

std::vector<ValueId> Builder::for_loop(ValueId from, ValueId to, ValueId step,
                                       std::vector<ValueId> start, const Body& body) {
  const Loop loop = open_for(from, to, step, std::move(start));
  return close_for(body(loop.index, loop.carried));
}

std::vector<ValueId> Builder::while_loop(std::vector<ValueId> start, const Step& condition,
                                         const Step& body) {
  const std::vector<Type> carried = types(start);
  Operation op{.code = Code::While, .in = std::move(start)};
  for (const Step* part : {&condition, &body}) {
    const std::vector<ValueId> params = open(carried);
    op.regions.push_back(close((*part)(params)));
  }
  return append_values(std::move(op), carried);
}

std::vector<ValueId> Builder::if_else(ValueId condition, const Branch& then,
                                      const Branch& otherwise) {
  Operation op{.code = Code::If, .in = {condition}};
  open({});
  const std::vector<ValueId> results = then();
  const std::vector<Type> result_types = types(results);
  op.regions.push_back(close(results));
  open({});
  op.regions.push_back(close(otherwise ? otherwise() : std::vector<ValueId>{}));
  return append_values(std::move(op), result_types);
}

void Builder::assume(ValueId condition) {
  append({.code = Code::Assume, .in = {condition}});
}

ValueId Builder::hint(ValueId x, std::string kind, std::vector<std::int64_t> values) {
  return append_value(
      {.code = Code::Hint, .in = {x}, .ints = std::move(values), .text = std::move(kind)}, type(x));
}

void Builder::assertion(ValueId condition, std::string message) {
  append({.code = Code::Assert, .in = {condition}, .text = std::move(message)});
}

void Builder::print(std::string text, std::vector<ValueId> values) {
  append({.code = Code::Print, .in = std::move(values), .text = std::move(text)});
}

void Builder::barrier() {
  append({.code = Code::Barrier});
}

void Builder::fail(Diagnostic diagnostic) {
  if (!error_) error_ = std::move(diagnostic);
}

Expected<Kernel> Builder::finish() {
  if (error_) return *error_;
  kernel_.body = open_.front();
  TESSERA_TRY_DONE(verify(kernel_));
  return kernel_;
}

}  // namespace tessera::tile
