#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::ValueId;
using F = tile::Function;

/// Products of a batch, which are lowered one by one.
constexpr std::int64_t kMostProducts = 1024;

/// Function of a reduction whose region is one operation of its two arguments.
struct Fold {
  F function = F::None;
  bool is_unsigned = false;
};

Fold fold_of(const Operation& op) {
  if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return {};
  const Block& block = op.regions[0].blocks[0];
  if (block.arguments.size() != 2 || block.ops.size() != 2) return {};
  const Operation &combine = block.ops[0], &end = block.ops[1];
  const std::vector<std::string> both = {block.arguments[0].name, block.arguments[1].name};
  const bool takes_both =
      combine.operands == both || combine.operands == std::vector<std::string>{both[1], both[0]};
  if (!takes_both || end.operands != combine.results) return {};
  const std::string& name = combine.name;
  if (name == "arith.addi" || name == "arith.addf") return {F::Add};
  if (name == "arith.muli" || name == "arith.mulf") return {F::Mul};
  if (name == "arith.andi") return {F::And};
  if (name == "arith.ori") return {F::Or};
  if (name == "arith.xori") return {F::Xor};
  if (name == "arith.maxsi" || name == "arith.maxnumf") return {F::Max};
  if (name == "arith.minsi" || name == "arith.minnumf") return {F::Min};
  if (name == "arith.maxui") return {F::Max, true};
  if (name == "arith.minui") return {F::Min, true};
  if (name == "arith.maximumf") return {F::Maximum};
  if (name == "arith.minimumf") return {F::Minimum};
  return {};
}

bool has_axis(const Type& type, std::int64_t axis) {
  return axis >= 0 && axis < static_cast<std::int64_t>(type.shape.size());
}

}  // namespace

bool Lowering::lower_tensor(const Operation& op) {
  const std::string& name = op.name;
  if (name == "tt.reduce") return lower_reduce(op), true;
  if (name == "tt.scan") return lower_scan(op), true;
  if (name == "tt.dot") return lower_dot(op), true;
  if (name == "tt.dot_scaled") return lower_dot_scaled(op), true;
  if (name == "tt.histogram") return lower_histogram(op), true;
  if (name == "tt.map_elementwise") return lower_map_elementwise(op), true;
  if (name == "tt.make_range") {
    const Type type = result_type(op);
    if (type.shape.size() != 1) return malformed(op, "a tensor of one axis"), true;
    const ValueId lanes = builder_.iota(DType::I32, type.shape[0]);
    const std::int64_t start = integer_attribute(op, "start");
    result(op, type, start == 0 ? lanes : map(F::Add, {lanes, integer(lanes, start)}));
    return true;
  }
  if (name == "tt.splat" || name == "tt.broadcast") {
    const Type type = result_type(op);
    result(op, type, builder_.broadcast(operand(op, 0).id, type.shape));
    return true;
  }
  if (name == "tt.unsplat" || name == "tt.reshape" || name == "tt.expand_dims") {
    const Lowered x = operand(op, 0);
    Type type = x.type;
    if (name == "tt.unsplat") {
      type.shape.clear();
      type.is_tensor = false;
    } else {
      type = result_type(op);
    }
    result(op, type, shaped(x.id, type.shape));
    return true;
  }
  if (name == "tt.trans") {
    const Attribute* order = op.attribute("order");
    if (order == nullptr) return malformed(op, "there is no order"), true;
    result(op, result_type(op), builder_.permute(operand(op, 0).id, order->integers));
    return true;
  }
  if (name == "tt.cat") {
    result(op, result_type(op),
           builder_.concat({operand(op, 0).id, operand(op, 1).id},
                           static_cast<int>(integer_attribute(op, "dim"))));
    return true;
  }
  if (name == "tt.join") {
    const Lowered a = operand(op, 0), b = operand(op, 1);
    std::vector<std::int64_t> shape = a.type.shape;
    shape.push_back(1);
    result(op, result_type(op),
           builder_.concat({builder_.reshape(a.id, shape), builder_.reshape(b.id, shape)},
                           static_cast<int>(shape.size()) - 1));
    return true;
  }
  if (name == "tt.split") {
    const Lowered x = operand(op, 0);
    if (op.results.size() != 2 || x.type.shape.empty() || x.type.shape.back() != 2)
      return malformed(op, "two results and a last axis of two elements"), true;
    Type half = x.type;
    half.shape.pop_back();
    half.is_tensor = !half.shape.empty();
    std::vector<std::int64_t> from(x.type.shape.size(), 0), shape = x.type.shape;
    shape.back() = 1;
    for (std::size_t i = 0; i < 2; ++i) {
      from.back() = static_cast<std::int64_t>(i);
      define(op.results[i], {half, shaped(builder_.slice(x.id, from, shape), half.shape)});
    }
    return true;
  }
  if (name == "tt.gather") {
    const Lowered x = operand(op, 0), index = operand(op, 1);
    result(op, result_type(op),
           builder_.gather(x.id, index.id, static_cast<int>(integer_attribute(op, "axis"))));
    return true;
  }
  return false;
}

// Reductions and scans

std::vector<ValueId> Lowering::combine(const Operation& op, const std::vector<ValueId>& left,
                                       const std::vector<ValueId>& right) {
  const Scope outer = scope_;
  std::vector<Lowered> arguments;
  for (const std::vector<ValueId>* side : {&left, &right}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      Type type = operand(op, i).type;
      type.shape.clear();
      type.is_tensor = false;
      arguments.push_back({type, (*side)[i]});
    }
  }
  std::vector<ValueId> ids;
  for (const Lowered& x : lower_region(op.regions[0], arguments)) ids.push_back(x.id);
  scope_ = outer;
  return ids;
}

void Lowering::lower_reduce(const Operation& op) {
  const std::int64_t axis = integer_attribute(op, "axis");
  std::vector<ValueId> x;
  std::vector<Type> types;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Lowered operand_ = operand(op, i);
    if (!has_axis(operand_.type, axis)) return malformed(op, "there is no such axis");
    Type type = operand_.type;
    type.shape.erase(type.shape.begin() + axis);
    type.is_tensor = !type.shape.empty();
    types.push_back(type);
    x.push_back(operand_.id);
  }
  if (x.empty() || op.regions.size() != 1) return malformed(op, "operands and a region");
  std::vector<ValueId> results;
  const Fold fold = fold_of(op);
  if (fold.function != F::None && x.size() == 1) {
    const DType dtype = builder_.type(x[0]).dtype;
    const F function = dtype == DType::Bool && fold.function == F::Add   ? F::Xor
                       : dtype == DType::Bool && fold.function == F::Mul ? F::And
                                                                         : fold.function;
    const ValueId from = fold.is_unsigned ? reinterpret(x[0], unsigned_of(dtype)) : x[0];
    results = {reinterpret(builder_.reduce(function, from, static_cast<int>(axis)), dtype)};
  } else {
    results =
        builder_.reduce(x, static_cast<int>(axis),
                        [&](const std::vector<ValueId>& left, const std::vector<ValueId>& right) {
                          return combine(op, left, right);
                        });
  }
  for (std::size_t i = 0; i < op.results.size() && i < results.size(); ++i)
    define(op.results[i], {types[i], results[i]});
}

void Lowering::lower_scan(const Operation& op) {
  const auto axis = static_cast<int>(integer_attribute(op, "axis"));
  const Attribute* direction = op.attribute("reverse");
  const bool reverse = direction != nullptr && direction->text == "true";
  std::vector<ValueId> x;
  std::vector<Type> types;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Lowered operand_ = operand(op, i);
    if (!has_axis(operand_.type, axis)) return malformed(op, "there is no such axis");
    types.push_back(operand_.type);
    x.push_back(operand_.id);
  }
  if (x.empty() || op.regions.size() != 1) return malformed(op, "operands and a region");
  std::vector<ValueId> results;
  const Fold fold = fold_of(op);
  if (fold.function != F::None && x.size() == 1 && !fold.is_unsigned &&
      builder_.type(x[0]).dtype != DType::Bool) {
    results = {builder_.scan(fold.function, x[0], axis, reverse)};
  } else {
    results = builder_.scan(
        x, axis, reverse, [&](const std::vector<ValueId>& left, const std::vector<ValueId>& right) {
          return combine(op, left, right);
        });
  }
  for (std::size_t i = 0; i < op.results.size() && i < results.size(); ++i)
    define(op.results[i], {types[i], results[i]});
}

void Lowering::lower_histogram(const Operation& op) {
  const Lowered x = operand(op, 0);
  const Type type = result_type(op);
  if (x.type.shape.size() != 1 || type.shape.size() != 1) return malformed(op, "one axis");
  const std::int64_t count = x.type.shape[0], bins = type.shape[0];
  const DType dtype = builder_.type(x.id).dtype;
  const std::vector<std::int64_t> both = {count, bins};
  const ValueId values = builder_.broadcast(builder_.reshape(x.id, {count, 1}), both);
  const ValueId bin =
      builder_.cast(builder_.reshape(builder_.iota(DType::I32, bins), {1, bins}), dtype);
  ValueId hit = map(F::Equal, {values, builder_.broadcast(bin, both)});
  if (op.operands.size() > 1) {
    const ValueId mask = builder_.reshape(operand(op, 1).id, {count, 1});
    hit = map(F::And, {hit, builder_.broadcast(mask, both)});
  }
  const ValueId sums = builder_.reduce(F::Add, as(hit, DType::I32), 0);
  result(op, type, as(sums, carrier_of(type.element)));
}

/// The region is arithmetic of scalars; that of tiles is the same. A branch computes both sides.
/// With `pack`, the region is given several neighbors of each operand at a time.
void Lowering::lower_map_elementwise(const Operation& op) {
  const std::int64_t pack = integer_attribute(op, "pack", 1);
  if (op.operands.empty() || op.regions.size() != 1 || op.regions[0].blocks.size() != 1)
    return malformed(op, "operands and a region");
  if (!elementwise_.empty()) return unsupported(op, "in a function of elements");
  const std::vector<std::int64_t> shape = operand(op, 0).type.shape;
  if (shape.empty() || pack < 1 || shape.back() % pack != 0)
    return malformed(op, "elements at a time");
  std::vector<std::int64_t> packed = shape, part = shape;
  packed.back() /= pack;
  packed.push_back(pack);
  part.back() /= pack;
  Values arguments;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Lowered x = operand(op, i);
    if (x.type.shape != shape) return malformed(op, "operands of several shapes");
    for (std::int64_t at = 0; at < pack; ++at) {
      arguments.push_back(x);
      if (pack == 1) continue;
      std::vector<std::int64_t> from(packed.size(), 0), one = packed;
      from.back() = at;
      one.back() = 1;
      const ValueId slice = builder_.slice(builder_.reshape(x.id, packed), from, one);
      arguments.back() = {x.type, builder_.reshape(slice, part)};
      arguments.back().type.shape = part;
    }
  }
  const Scope outer = scope_;
  elementwise_ = part;
  const Values results = lower_region(op.regions[0], arguments);
  elementwise_.clear();
  scope_ = outer;
  if (std::ssize(results) < std::ssize(op.results) * pack && !builder_.failed())
    return malformed(op, "it has too few results");
  for (std::size_t i = 0; i < op.results.size() && !builder_.failed(); ++i) {
    std::vector<ValueId> parts;
    std::vector<std::int64_t> one = part;
    if (pack > 1) one.push_back(1);
    for (std::int64_t at = 0; at < pack; ++at)
      parts.push_back(shaped(
          results[i * static_cast<std::size_t>(pack) + static_cast<std::size_t>(at)].id, one));
    Type type = results[i * static_cast<std::size_t>(pack)].type;
    type.shape = shape;
    type.is_tensor = true;
    const ValueId joined =
        pack == 1 ? parts[0]
                  : builder_.reshape(builder_.concat(parts, static_cast<int>(shape.size())), shape);
    define(op.results[i], {type, joined});
  }
}

/// A branch in a function of elements: both sides, then a choice.
void Lowering::lower_elementwise_if(const Operation& op) {
  if (op.regions.size() != 2) return unsupported(op, "a branch without results");
  const Lowered condition = operand(op, 0);
  Values sides[2];
  for (std::size_t side = 0; side < 2; ++side) {
    const Scope outer = scope_;
    sides[side] = lower_region(op.regions[side], {});
    scope_ = outer;
  }
  if (sides[0].size() != sides[1].size() || sides[0].size() < op.results.size())
    return malformed(op, "the sides differ");
  for (std::size_t i = 0; i < op.results.size(); ++i)
    define(op.results[i], {sides[0][i].type, select(condition.id, sides[0][i].id, sides[1][i].id)});
}

// Matrix products

ValueId Lowering::matrix_product(ValueId a, ValueId b, ValueId c) {
  const tile::Type &left = builder_.type(a), &right = builder_.type(b), &sum = builder_.type(c);
  if (left.rank() == 2) return builder_.dot(a, b, c);
  // A batch of products, one by one.
  if (left.rank() != 3 || right.rank() != 3 || sum.rank() != 3) return builder_.dot(a, b, c);
  const std::int64_t batch = left.shape[0];
  const auto matrix = [&](ValueId x, std::int64_t i) {
    const tile::Extents shape = builder_.type(x).shape;
    return builder_.reshape(builder_.slice(x, {i, 0, 0}, {1, shape[1], shape[2]}),
                            {shape[1], shape[2]});
  };
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < batch; ++i) {
    const ValueId product = builder_.dot(matrix(a, i), matrix(b, i), matrix(c, i));
    const tile::Extents shape = builder_.type(product).shape;
    parts.push_back(builder_.reshape(product, {1, shape[0], shape[1]}));
  }
  return parts.size() == 1 ? parts[0] : builder_.concat(parts, 0);
}

void Lowering::lower_dot(const Operation& op) {
  const Lowered a = operand(op, 0), b = operand(op, 1), c = operand(op, 2);
  if (builder_.failed()) return;
  ValueId left = a.id, right = b.id, sum = c.id;
  // Float8 numbers are f16 numbers too; products of f16 may be summed in f16 or f32.
  if (is_float8(a.type.element)) left = as(decoded(a.type.element, left), DType::F16);
  if (is_float8(b.type.element)) right = as(decoded(b.type.element, right), DType::F16);
  const DType from = builder_.type(left).dtype, into = builder_.type(sum).dtype;
  if (from != builder_.type(right).dtype)
    return unsupported(op, fmt::format("{} times {}", to_string(a.type), to_string(b.type)));
  if (a.type.shape.size() == 3 && a.type.shape[0] > kMostProducts)
    return unsupported(op, fmt::format("a batch of {} products", a.type.shape[0]));
  const bool halves = from == DType::F16 || from == DType::BF16;
  if (is_float(from) && into != from && !(halves && into == DType::F32)) {
    left = as(left, into);  // f16 into f64, bf16 into f16: in the wider type
    right = as(right, into);
  }
  result(op, c.type, matrix_product(left, right, sum));
}

}  // namespace tessera::triton
