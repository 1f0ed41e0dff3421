#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/expr/function.h"
#include "tessera/expr/number.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/small_types.h"
#include "tessera/tile/function.h"

namespace tessera::lower {

using tile::Function;
using tile::Type;

namespace {

/// Functions that a map has under one name for every sort; those of Values where they differ.
struct FunctionRow {
  Fn fn;
  Function integers, values;
};
constexpr FunctionRow kRows[] = {
    {Fn::Neg, Function::Neg, Function::Neg},
    {Fn::Abs, Function::Abs, Function::Abs},
    {Fn::Exp, Function::None, Function::Exp},
    {Fn::Log, Function::None, Function::Log},
    {Fn::Sqrt, Function::None, Function::Sqrt},
    {Fn::Sin, Function::None, Function::Sin},
    {Fn::Cos, Function::None, Function::Cos},
    {Fn::Tanh, Function::None, Function::Tanh},
    {Fn::Erf, Function::None, Function::Erf},
    {Fn::Floor, Function::None, Function::Floor},
    {Fn::Round, Function::None, Function::Round},
    {Fn::Not, Function::Not, Function::None},
    {Fn::Add, Function::Add, Function::Add},
    {Fn::Sub, Function::Sub, Function::Sub},
    {Fn::Mul, Function::Mul, Function::Mul},
    {Fn::Div, Function::Div, Function::Div},
    {Fn::Pow, Function::None, Function::Pow},
    {Fn::Max, Function::Max, Function::Maximum},
    {Fn::Min, Function::Min, Function::Minimum},
    {Fn::Equal, Function::Equal, Function::Equal},
    {Fn::Less, Function::Less, Function::Less},
    {Fn::LessEqual, Function::LessEqual, Function::LessEqual},
    {Fn::And, Function::And, Function::None},
    {Fn::Or, Function::Or, Function::None},
    {Fn::Xor, Function::Xor, Function::None},
    {Fn::Select, Function::Select, Function::Select},
};
static_assert(std::ranges::all_of(kRows, [](const FunctionRow& row) {
  return row.values == Function::None ||
         info_of(row.fn).is_transcendental == tile::is_transcendental(row.values);
}));

bool compares(Fn fn) {
  return fn == Fn::Equal || fn == Fn::Less || fn == Fn::LessEqual;
}

/// Whether a change of an argument in its last place may change the result by much.
bool is_discontinuous(Fn fn) {
  return compares(fn) || fn == Fn::Floor || fn == Fn::Round || fn == Fn::FloorDiv || fn == Fn::Mod;
}

}  // namespace

Value Evaluator::evaluate_argument(const Scalar& argument, bool discontinuous) {
  const bool inverts = std::exchange(inverts_, inverts_ && !discontinuous);
  const Value value = evaluate(argument);
  inverts_ = inverts;
  return value;
}

Value Evaluator::converted(const Value& value, Sort sort) {
  if (value.sort == sort) return value;
  return number(b_.cast(id_of(value), dtype_of(sort)), sort);
}

namespace {

/// x to a small whole power as products: within the error that pow has, and many times as fast.
std::optional<Scalar> as_products(const node::Apply& n) {
  if (n.fn != Fn::Pow || n.args[0].sort() != Sort::Value) return std::nullopt;
  const auto* exponent = std::get_if<node::Constant>(&n.args[1].node());
  if (exponent == nullptr || exponent->sort != Sort::Value) return std::nullopt;
  const Scalar& x = n.args[0];
  if (exponent->number == 1) return x;
  if (exponent->number == 2) return x * x;
  if (exponent->number == 3) return x * x * x;
  return std::nullopt;
}

}  // namespace

Value Evaluator::visit(const node::Apply& n) {
  if (const auto products = as_products(n)) return evaluate(*products);
  const Scalar probe(Node{n});
  const Sort meet = compares(n.fn) ? tessera::apply(Fn::Add, n.args).sort() : probe.sort();
  std::vector<Value> args;
  for (std::size_t i = 0; i < n.args.size(); ++i) {
    const bool condition = n.fn == Fn::Select && i == 0;
    const bool amount = (n.fn == Fn::ShiftLeft || n.fn == Fn::ShiftRight) && i == 1;
    const Value arg = evaluate_argument(n.args[i], is_discontinuous(n.fn));
    if (error_) return integer({}, {});
    args.push_back(converted(arg, condition ? Sort::Bool : amount ? Sort::Integer : meet));
  }
  if (probe.sort() == Sort::Integer) {
    bool done = false;
    const Value value = apply_affine(n.fn, args, done);
    if (done) return value;
  }
  if (const auto near = near_remainder(n.fn, args)) return *near;
  std::vector<Id> ids;
  for (const Value& arg : args) ids.push_back(id_of(arg));
  Fn fn = n.fn;
  if (inverts_ && fn == Fn::Div && meet == Sort::Value && b_.type(ids[0]).is_tile() &&
      b_.type(ids[1]).count() * 4 <= b_.type(ids[0]).count()) {
    ids[1] = b_.map(Function::Div, {b_.constant(b_.type(ids[1]), 1), ids[1]});
    fn = Fn::Mul;
  }
  fit(ids);
  Value result = number(apply(fn, meet, ids), probe.sort());
  if (probe.sort() == Sort::Integer) {
    result.range = range_of(n.fn, args);
    if (b_.type(*result.id).is_scalar()) result.position = scalar_position(*result.id);
  }
  return result;
}

/// x mod m of an x that is less than m beyond [0, m), by an addition: CPUs have no division of
/// vectors of integers.
std::optional<Value> Evaluator::near_remainder(Fn fn, const std::vector<Value>& args) {
  if (fn != Fn::Mod || args[0].sort != Sort::Integer || !args[1].position ||
      !args[1].position->is_constant())
    return std::nullopt;
  const std::int64_t m = args[1].position->base;
  const Range& range = args[0].range;
  if (m < 1 || m > (std::int64_t{1} << 40) || range.low < -m || range.high >= 2 * m)
    return std::nullopt;
  const Id x = id_of(args[0]);
  if (!b_.type(x).is_tile()) return std::nullopt;
  const auto filled = [&](std::int64_t value) {
    return b_.constant(tile::Type(b_.type(x)), static_cast<double>(value));
  };
  const auto correction = [&](Id condition, std::int64_t by) {
    return b_.map(Function::Select, {condition, filled(by), filled(0)});
  };
  Id result = x;
  if (range.low < 0) result = b_.add(result, correction(b_.map(Function::Less, {x, filled(0)}), m));
  if (range.high >= m)
    result = b_.add(result, correction(b_.map(Function::GreaterEqual, {x, filled(m)}), -m));
  Value value = number(result, Sort::Integer);
  value.range = {0, m - 1};
  return value;
}

Value Evaluator::apply_affine(Fn fn, const std::vector<Value>& args, bool& done) {
  const auto affine = [&](std::size_t i) {
    return i < args.size() ? args[i].position : std::nullopt;
  };
  const auto made = [&](const std::optional<Position>& result, const Range& range) {
    done = result.has_value();
    return integer(result.value_or(Position{}), range);
  };
  const auto fixed = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (!affine(i) || !affine(i)->is_constant()) return std::nullopt;
    return affine(i)->base;
  };
  switch (fn) {
    case Fn::Neg:
      if (affine(0)) return made(affine(0)->times(-1), Range{0, 0} - args[0].range);
      break;
    case Fn::Add:
      if (affine(0) && affine(1))
        return made(affine(0)->plus(*affine(1)), args[0].range + args[1].range);
      break;
    case Fn::Sub:
      if (affine(0) && affine(1))
        return made(affine(0)->plus(*affine(1), -1), args[0].range - args[1].range);
      break;
    case Fn::Mul:
      if (affine(0) && fixed(1))
        return made(affine(0)->times(*fixed(1)), args[0].range * args[1].range);
      if (affine(1) && fixed(0))
        return made(affine(1)->times(*fixed(0)), args[0].range * args[1].range);
      break;
    case Fn::FloorDiv:
      if (fixed(0) && fixed(1)) {
        const std::int64_t value = integer::floor_div(*fixed(0), *fixed(1));
        return made(Position::constant(value), {value, value});
      }
      if (affine(0) && fixed(1) == 1) return made(affine(0), args[0].range);
      break;
    case Fn::Mod:
      if (fixed(0) && fixed(1)) {
        const std::int64_t value = integer::mod(*fixed(0), *fixed(1));
        return made(Position::constant(value), {value, value});
      }
      // What is within the modulus stays as it is.
      if (affine(0) && fixed(1) && args[0].range.within(*fixed(1)))
        return made(affine(0), args[0].range);
      break;
    case Fn::Select:
      if (affine(1) && affine(2) && affine(1)->is_constant() && affine(2)->is_constant() &&
          affine(1)->base == affine(2)->base)
        return made(affine(1), args[1].range);
      break;
    default: break;
  }
  return {};
}

Range Evaluator::range_of(Fn fn, const std::vector<Value>& args) const {
  const auto positive = [&](std::size_t i) { return args[i].range.low > 0; };
  switch (fn) {
    case Fn::Add: return args[0].range + args[1].range;
    case Fn::Sub: return args[0].range - args[1].range;
    case Fn::Mul: return args[0].range * args[1].range;
    case Fn::FloorDiv:
      if (positive(1) && args[1].range.low == args[1].range.high)
        return {integer::floor_div(args[0].range.low, args[1].range.low),
                integer::floor_div(args[0].range.high, args[1].range.low)};
      break;
    case Fn::Mod:
      if (positive(1)) return {0, args[1].range.high - 1};
      break;
    case Fn::Max:
      return {std::max(args[0].range.low, args[1].range.low),
              std::max(args[0].range.high, args[1].range.high)};
    case Fn::Min:
      return {std::min(args[0].range.low, args[1].range.low),
              std::min(args[0].range.high, args[1].range.high)};
    case Fn::Select: return hull(args[1].range, args[2].range);
    default: break;
  }
  return Range::all();
}

Evaluator::Id Evaluator::apply(Fn fn, Sort meet, const std::vector<Id>& args) {
  const auto zero = [&](Id like) { return b_.constant(b_.type(like), 0); };
  const auto map = [&](Function function, Id a, Id b) { return b_.map(function, {a, b}); };
  const auto choose = [&](Id condition, Id a, Id b) {
    return b_.map(Function::Select, {condition, a, b});
  };
  // A remainder with the sign of the divisor, from one with the sign of the dividend.
  const auto is_off = [&](Id rest, Id divisor) {
    const Id differs = map(Function::NotEqual, map(Function::Less, rest, zero(rest)),
                           map(Function::Less, divisor, zero(divisor)));
    return map(Function::And, differs, map(Function::NotEqual, rest, zero(rest)));
  };
  for (const FunctionRow& row : kRows) {
    if (row.fn != fn) continue;
    const Function function = meet == Sort::Value ? row.values : row.integers;
    if (function != Function::None) return b_.map(function, args);
  }
  switch (fn) {
    case Fn::FloorDiv: {
      const Id quotient = map(Function::Div, args[0], args[1]);
      if (meet == Sort::Value) return b_.map(Function::Floor, {quotient});
      if (meet == Sort::Unsigned) return quotient;
      const Id rest = map(Function::Rem, args[0], args[1]);
      return choose(is_off(rest, args[1]),
                    map(Function::Sub, quotient, b_.constant(b_.type(quotient), 1)), quotient);
    }
    case Fn::Mod: {
      const Id rest = map(Function::Rem, args[0], args[1]);
      if (meet == Sort::Unsigned) return rest;
      return choose(is_off(rest, args[1]), map(Function::Add, rest, args[1]), rest);
    }
    case Fn::ShiftLeft:
    case Fn::ShiftRight: {
      const Id amount = args[1], number = args[0];
      const Id bits = b_.type(number).dtype == DType::U64 ? b_.bitcast(amount, DType::U64) : amount;
      const Id shifted = map(fn == Fn::ShiftLeft ? Function::Shl : Function::Shr, number, bits);
      return choose(map(Function::Less, amount, zero(amount)), zero(number), shifted);
    }
    default: break;
  }
  unsupported(
      fmt::format("{} of {} has no form as a tile program", to_string(fn), to_string(meet)));
  return args[0];
}

namespace {

/// Whether a number is kept within 32 bits by constants, as quantization does: min(max(x, 0), 255).
bool is_bounded(const Scalar& scalar) {
  const auto side = [](const Scalar& s, Fn fn) -> std::optional<std::pair<Scalar, double>> {
    const auto* apply = std::get_if<node::Apply>(&s.node());
    if (apply == nullptr || apply->fn != fn) return std::nullopt;
    const auto* bound = std::get_if<node::Constant>(&apply->args[1].node());
    if (bound == nullptr) return std::nullopt;
    return std::pair{apply->args[0], bound->sort == Sort::Value
                                         ? bound->number
                                         : static_cast<double>(bound->integer)};
  };
  constexpr double most = 1 << 24;
  for (const auto& [outer, inner] : {std::pair{Fn::Min, Fn::Max}, std::pair{Fn::Max, Fn::Min}})
    if (const auto first = side(scalar, outer); first && std::abs(first->second) <= most)
      if (const auto second = side(first->first, inner)) return std::abs(second->second) <= most;
  return false;
}

}  // namespace

Evaluator::Id Evaluator::stored_and_read(Id id, DType dtype, Sort sort) {
  return from_storage(b_, to_storage(b_, id, dtype), dtype, dtype_of(sort));
}

Value Evaluator::visit(const node::Cast& n) {
  const Value arg = evaluate_argument(*n.arg, !is_float(n.to));
  const Sort sort = sort_of(n.to);
  if (error_ || (arg.sort == Sort::Integer && n.to == DType::I64)) return arg;
  if (arg.stored && arg.stored->dtype == n.to) return arg;
  const Id id = id_of(arg);
  // From a float it goes to 64 bits first and wraps then, as the interpreter has it.
  const bool from_value = arg.sort == Sort::Value && is_integer(n.to) && n.to != DType::U64;
  const bool wraps = from_value && n.to != DType::I64;
  Id narrow = wraps ? b_.cast(id, is_bounded(*n.arg) ? DType::I32 : DType::I64) : id;
  if (arg.sort == Sort::Value && n.to == DType::U64) {  // what is below zero wraps too
    const Id below = b_.map(Function::Less, {id, b_.constant(b_.type(id), 0)});
    narrow = b_.map(Function::Select,
                    {below, b_.cast(b_.cast(id, DType::I64), DType::U64), b_.cast(id, DType::U64)});
  }
  narrow = stored_and_read(narrow, n.to, sort);
  Value result = number(narrow, sort);
  if (sort == Sort::Integer && b_.type(narrow).is_scalar())
    result.position = scalar_position(narrow);
  return result;
}

}  // namespace tessera::lower
