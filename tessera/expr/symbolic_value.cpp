#include "tessera/expr/symbolic_value.h"

#include <array>
#include <cmath>

namespace tessera::symbolic {
namespace {

constexpr double kExact = 0x1p53;  // beyond it a double is not one integer

MaybeSymbolicValue truth_of(std::optional<bool> decided) {
  if (!decided) return std::nullopt;
  return SymbolicValue(Dim(*decided ? 1 : 0));
}

std::optional<bool> negated(std::optional<bool> decided) {
  if (!decided) return std::nullopt;
  return !*decided;
}

std::optional<bool> decided_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (decided_less(a, b) == true || decided_less(b, a) == true) return false;
  return std::nullopt;
}

MaybeSymbolicValue on_numbers(Fn fn, const std::vector<SymbolicValue>& args) {
  const double a = std::get<double>(args[0]);
  const double b = args.size() > 1 ? std::get<double>(args[1]) : 0;
  switch (fn) {
    case Fn::Neg: return -a;
    case Fn::Abs: return std::fabs(a);
    case Fn::Exp: return std::exp(a);
    case Fn::Log: return std::log(a);
    case Fn::Sqrt: return std::sqrt(a);
    case Fn::Sin: return std::sin(a);
    case Fn::Cos: return std::cos(a);
    case Fn::Atan: return std::atan(a);
    case Fn::Tanh: return std::tanh(a);
    case Fn::Erf: return std::erf(a);
    case Fn::Floor: return std::floor(a);
    case Fn::Round: return std::nearbyint(a);
    case Fn::Add: return a + b;
    case Fn::Sub: return a - b;
    case Fn::Mul: return a * b;
    case Fn::Div: return a / b;
    case Fn::FloorDiv: return std::floor(a / b);
    case Fn::Mod: {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case Fn::Pow: return std::pow(a, b);
    case Fn::Max:
    case Fn::Min:
      if (std::isnan(a) || std::isnan(b)) return std::nullopt;
      return (fn == Fn::Max) == (a < b) ? b : a;
    case Fn::Equal: return truth_of(a == b);
    case Fn::Less: return truth_of(a < b);
    case Fn::LessEqual: return truth_of(a <= b);
    case Fn::Not:
    case Fn::And:
    case Fn::Or:
    case Fn::Xor:
    case Fn::ShiftLeft:
    case Fn::ShiftRight:
    case Fn::Select: break;
  }
  return std::nullopt;
}

MaybeSymbolicValue quotient(const Dim& a, const Dim& b, Sort sort) {
  const Dim rounded = floor_div(a, b);
  // Division of values does not round, and that of integers does so towards zero.
  const bool exact = !rounded.is_undefined() && rounded * b == a;
  const bool rounds_down =
      sort != Sort::Value && a.least().value_or(-1) >= 0 && b.least().value_or(-1) >= 0;
  if (exact || rounds_down) return known(rounded);
  if (sort == Sort::Value || !a.constant() || !b.constant() || rounded.is_undefined())
    return std::nullopt;
  return known(*a.constant() / *b.constant());
}

MaybeSymbolicValue power(const Dim& base, const Dim& exponent) {
  const auto times = exponent.constant();
  if (!times || *times < 0 || *times > 64) return std::nullopt;
  Dim result = 1;
  for (std::int64_t i = 0; i < *times; ++i) result = result * base;
  return known(result);
}

MaybeSymbolicValue on_bits(Fn fn, std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  if (!a || !b) return std::nullopt;
  switch (fn) {
    case Fn::And: return known(*a & *b);
    case Fn::Or: return known(*a | *b);
    case Fn::Xor: return known(*a ^ *b);
    case Fn::ShiftLeft:
    case Fn::ShiftRight: {
      if (*a < 0 || *b < 0 || *b > 62) return std::nullopt;
      const Dim factor = std::int64_t{1} << *b;
      return known(fn == Fn::ShiftLeft ? Dim(*a) * factor : floor_div(Dim(*a), factor));
    }
    default: return std::nullopt;
  }
}

MaybeSymbolicValue on_sizes(Fn fn, Sort sort, const Dim& a, const Dim& b) {
  switch (fn) {
    case Fn::Neg: return known(-a);
    case Fn::Abs:
      if (a.least().value_or(-1) >= 0) return known(a);
      return (-a).least().value_or(-1) >= 0 ? known(-a) : std::nullopt;
    case Fn::Floor:
    case Fn::Round: return known(a);
    case Fn::Not:
      if (sort == Sort::Bool) return known(1 - a);
      return sort == Sort::Integer ? known(-a - 1) : std::nullopt;
    case Fn::Add: return known(a + b);
    case Fn::Sub: return known(a - b);
    case Fn::Mul: return known(a * b);
    case Fn::Div: return quotient(a, b, sort);
    case Fn::FloorDiv: return known(floor_div(a, b));
    case Fn::Mod: return known(mod(a, b));
    case Fn::Pow: return power(a, b);
    case Fn::Max:
      if (const auto less = decided_less(a, b)) return known(*less ? b : a);
      return known(max(a, b));
    case Fn::Min:
      if (const auto less = decided_less(a, b)) return known(*less ? a : b);
      return known(min(a, b));
    case Fn::Equal: return truth_of(decided_equal(a, b));
    case Fn::Less: return truth_of(decided_less(a, b));
    case Fn::LessEqual: return truth_of(negated(decided_less(b, a)));
    case Fn::And:
    case Fn::Or:
    case Fn::Xor:
    case Fn::ShiftLeft:
    case Fn::ShiftRight:
      return sort == Sort::Value ? std::nullopt : on_bits(fn, a.constant(), b.constant());
    case Fn::Exp:
    case Fn::Log:
    case Fn::Sqrt:
    case Fn::Sin:
    case Fn::Cos:
    case Fn::Atan:
    case Fn::Tanh:
    case Fn::Erf:
    case Fn::Select: break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> decided_less(const Dim& a, const Dim& b) {
  if ((b - a).least().value_or(0) >= 1) return true;
  if ((a - b).least().value_or(-1) >= 0) return false;
  return std::nullopt;
}

MaybeSymbolicValue known(const Dim& dim) {
  if (dim.is_undefined()) return std::nullopt;
  return SymbolicValue(dim);
}

std::optional<std::int64_t> integer(const SymbolicValue& known) {
  const auto* dim = std::get_if<Dim>(&known);
  return dim != nullptr ? dim->constant() : std::nullopt;
}

std::optional<Dim> whole(const SymbolicValue& known) {
  if (const auto* dim = std::get_if<Dim>(&known)) return *dim;
  const double number = std::get<double>(known);
  if (!(std::fabs(number) <= kExact) || number != std::trunc(number)) return std::nullopt;
  return Dim(static_cast<std::int64_t>(number));
}

MaybeSymbolicValue joined(const SymbolicValue& value, Sort to) {
  const auto* dim = std::get_if<Dim>(&value);
  if (dim == nullptr) return value;
  if (to == Sort::Value && dim->constant()) return static_cast<double>(*dim->constant());
  // A negative integer would wrap.
  if (to == Sort::Unsigned && dim->least().value_or(-1) < 0) return std::nullopt;
  return value;
}

MaybeSymbolicValue converted(const SymbolicValue& value, DType to) {
  alignas(8) std::array<std::byte, 8> memory = {};
  const Sort sort = sort_of(to);
  const auto read_back = [&] {
    return Tensor{
        to, {}, Bytes::copy(std::span(memory).first(static_cast<std::size_t>(byte_width(to))))};
  };
  if (sort == Sort::Text) return std::nullopt;
  if (sort == Sort::Value) {
    MaybeSymbolicValue number = joined(value, Sort::Value);
    if (!number) return std::nullopt;
    if (std::holds_alternative<Dim>(*number)) return is_small(to) ? std::nullopt : number;
    store_number(to, memory.data(), 0, std::get<double>(*number));
    return number_at(read_back(), 0);
  }
  if (sort == Sort::Bool) {
    if (const auto* number = std::get_if<double>(&value)) return truth_of(*number != 0);
    return truth_of(negated(decided_equal(std::get<Dim>(value), 0)));
  }
  Dim dim;
  if (const auto* number = std::get_if<double>(&value)) {
    if (!(std::fabs(*number) < 0x1p63)) return std::nullopt;
    dim = static_cast<std::int64_t>(*number);
  } else {
    dim = std::get<Dim>(value);
  }
  if (to == DType::I64) return known(dim);
  if (to == DType::U64) return joined(dim, Sort::Unsigned);
  if (const auto constant = dim.constant()) {
    store_integer(to, memory.data(), 0, *constant);
    return known(integer_at(read_back(), 0));
  }
  if (byte_width(to) < 4) return std::nullopt;
  return to == DType::U32 ? joined(dim, Sort::Unsigned) : known(dim);
}

MaybeSymbolicValue applied(Fn fn, Sort sort, const std::vector<SymbolicValue>& args) {
  if (sort == Sort::Value) {
    bool numbers = true;
    for (const SymbolicValue& arg : args) numbers = numbers && std::holds_alternative<double>(arg);
    if (numbers) return on_numbers(fn, args);
  }
  std::vector<Dim> dims;
  for (const SymbolicValue& arg : args) {
    const std::optional<Dim> dim = whole(arg);
    if (!dim) return std::nullopt;
    dims.push_back(*dim);
  }
  const bool compares = fn == Fn::Equal || fn == Fn::Less || fn == Fn::LessEqual;
  const MaybeSymbolicValue result = on_sizes(fn, sort, dims[0], dims.size() > 1 ? dims[1] : Dim(0));
  return result && !compares ? joined(*result, sort) : result;
}

MaybeSymbolicValue element(const Argument& argument, std::int64_t position) {
  const auto place = static_cast<std::size_t>(position);
  const Sort sort = sort_of(argument.dtype());
  const bool listed = argument.value && place < argument.value->size();
  const bool stored = argument.content && argument.content->dtype == argument.dtype() &&
                      sort != Sort::Text && position < argument.content->count();
  if (stored && (sort == Sort::Value || !listed)) {
    if (sort == Sort::Value) return number_at(*argument.content, position);
    return joined(Dim(integer_at(*argument.content, position)), sort);
  }
  if (!listed || (*argument.value)[place].is_undefined()) return std::nullopt;
  return joined((*argument.value)[place], sort);
}

}  // namespace tessera::symbolic
