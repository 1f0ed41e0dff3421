#include "tessera/tile/type_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

/// Sets of element kinds.
enum Kinds : unsigned { kFloats = 1, kIntegers = 2, kBools = 4 };

unsigned dtype_mask(DType dtype) {
  if (dtype == DType::Bool) return kBools;
  return is_float(dtype) ? kFloats : kIntegers;
}

/// What a function is defined on; 0 where it is no function of a map.
unsigned domain(Function function) {
  switch (function) {
    case Function::None:
    case Function::Exchange: return 0;
    case Function::Exp:
    case Function::Exp2:
    case Function::Log:
    case Function::Log2:
    case Function::Sin:
    case Function::Cos:
    case Function::Tanh:
    case Function::Erf:
    case Function::Sqrt:
    case Function::Rsqrt:
    case Function::Sigmoid:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
    case Function::Pow:
    case Function::Fma: return kFloats;
    case Function::Shl:
    case Function::Shr:
    case Function::MulHi: return kIntegers;
    case Function::Not:
    case Function::And:
    case Function::Or:
    case Function::Xor: return kIntegers | kBools;
    case Function::Equal:
    case Function::NotEqual:
    case Function::Select: return kFloats | kIntegers | kBools;
    case Function::Neg:
    case Function::Abs:
    case Function::Add:
    case Function::Sub:
    case Function::Mul:
    case Function::Div:
    case Function::Rem:
    case Function::Min:
    case Function::Max:
    case Function::Minimum:
    case Function::Maximum:
    case Function::Less:
    case Function::LessEqual:
    case Function::Greater:
    case Function::GreaterEqual: return kFloats | kIntegers;
  }
  return 0;
}

bool is_one_of(Function function, std::initializer_list<Function> functions) {
  return std::find(functions.begin(), functions.end(), function) != functions.end();
}

}  // namespace

bool takes(Function function, DType dtype) {
  return (domain(function) & dtype_mask(dtype)) != 0;
}

std::string domain_text(Function function) {
  std::string text;
  for (const auto& [kind, name] : {std::pair{kFloats, "floats"}, std::pair{kIntegers, "integers"},
                                   std::pair{kBools, "bools"}}) {
    if ((domain(function) & kind) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " or ", name);
  }
  return text;
}

bool folds(Function function) {
  return is_one_of(function,
                   {Function::Add, Function::Mul, Function::Min, Function::Max, Function::Minimum,
                    Function::Maximum, Function::And, Function::Or, Function::Xor});
}

bool is_atomic(Function function) {
  return is_one_of(function, {Function::Add, Function::Min, Function::Max, Function::And,
                              Function::Or, Function::Xor, Function::Exchange});
}

bool fits(DType dtype, std::int64_t integer) {
  if (dtype == DType::Bool) return integer == 0 || integer == 1;
  const int bits = 8 * byte_width(dtype);
  if (bits == 64) return true;
  const std::int64_t high = (std::int64_t{1} << (is_signed(dtype) ? bits - 1 : bits)) - 1;
  return integer >= (is_signed(dtype) ? -high - 1 : 0) && integer <= high;
}

std::optional<std::string> type_mistake(const Type& type) {
  if (type.dtype == DType::String) return "a dtype other than string";
  if (is_small(type.dtype)) return "a dtype to compute with: small types are stored in i8 or u8";
  if (type.rank() > kMostAxes) return fmt::format("{} axes at most", kMostAxes);
  const bool view = type.is_view();
  if (view && type.rank() == 0) return "a view has axes";
  if (type.strides.size() != (view ? type.shape.size() : 0))
    return "a stride for each axis of a view";
  const std::int64_t most = view ? kMostViewElements : kMostElements;
  std::int64_t count = 1;
  for (const std::int64_t extent : type.shape) {
    if (view && (extent == kDynamic || extent == 0)) continue;
    if (extent < 1) return view ? "extents of at least 0" : "extents of at least 1";
    if (extent > most / count) return fmt::format("{} elements at most", most);
    count *= extent;
  }
  for (const std::int64_t stride : type.strides) {
    if (stride != kDynamic && (stride < 0 || stride > kMostViewElements)) {
      return fmt::format("strides of 0 to {}", kMostViewElements);
    }
  }
  return {};
}

Diagnostic::Where place_of(const Source& source) {
  return {.file = source.file,
          .item = source.line > 0 ? fmt::format("line {}", source.line) : std::string{}};
}

}  // namespace tessera::tile
