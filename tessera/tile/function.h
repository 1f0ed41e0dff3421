#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Sets of element kinds.
enum ElementKinds : unsigned {
  kFloats = 1,
  kIntegers = 2,
  kBools = 4,
  kNumbers = kFloats | kIntegers,
  kAnyElement = kNumbers | kBools,
};

/// Sets of properties of functions.
enum FunctionTraits : unsigned {
  kTranscendental = 1,  // computed by a polynomial on a CPU, whose constants take registers
  kFold = 2,            // can be the function of a Reduce or a Scan
  kAtomic = 4,          // can be the function of an Atomic
};

/// Properties of a function of elements.
struct FunctionInfo {
  Function function;
  std::string_view name;
  int arity;        // how many operands a Map of it has
  unsigned domain;  // ElementKinds that a Map of it is defined on; 0: it is no function of a Map
  unsigned traits = 0;
};

/// All functions, in the order of Function.
inline constexpr std::array kFunctionInfos = {
    FunctionInfo{Function::None, "none", 0, 0},
    FunctionInfo{Function::Neg, "neg", 1, kNumbers},
    FunctionInfo{Function::Abs, "abs", 1, kNumbers},
    FunctionInfo{Function::Exp, "exp", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Exp2, "exp2", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Log, "log", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Log2, "log2", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Sin, "sin", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Cos, "cos", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Tanh, "tanh", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Erf, "erf", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Sqrt, "sqrt", 1, kFloats},
    FunctionInfo{Function::Rsqrt, "rsqrt", 1, kFloats},
    FunctionInfo{Function::Sigmoid, "sigmoid", 1, kFloats, kTranscendental},
    FunctionInfo{Function::Floor, "floor", 1, kFloats},
    FunctionInfo{Function::Ceil, "ceil", 1, kFloats},
    FunctionInfo{Function::Round, "round", 1, kFloats},
    FunctionInfo{Function::Not, "not", 1, kIntegers | kBools},
    FunctionInfo{Function::Add, "add", 2, kNumbers, kFold | kAtomic},
    FunctionInfo{Function::Sub, "sub", 2, kNumbers},
    FunctionInfo{Function::Mul, "mul", 2, kNumbers, kFold},
    FunctionInfo{Function::Div, "div", 2, kNumbers},
    FunctionInfo{Function::Rem, "rem", 2, kNumbers},
    FunctionInfo{Function::Min, "min", 2, kNumbers, kFold | kAtomic},
    FunctionInfo{Function::Max, "max", 2, kNumbers, kFold | kAtomic},
    FunctionInfo{Function::Minimum, "minimum", 2, kNumbers, kFold},
    FunctionInfo{Function::Maximum, "maximum", 2, kNumbers, kFold},
    FunctionInfo{Function::And, "and", 2, kIntegers | kBools, kFold | kAtomic},
    FunctionInfo{Function::Or, "or", 2, kIntegers | kBools, kFold | kAtomic},
    FunctionInfo{Function::Xor, "xor", 2, kIntegers | kBools, kFold | kAtomic},
    FunctionInfo{Function::Shl, "shl", 2, kIntegers},
    FunctionInfo{Function::Shr, "shr", 2, kIntegers},
    FunctionInfo{Function::Pow, "pow", 2, kFloats, kTranscendental},
    FunctionInfo{Function::MulHi, "mulhi", 2, kIntegers},
    FunctionInfo{Function::Equal, "eq", 2, kAnyElement},
    FunctionInfo{Function::NotEqual, "ne", 2, kAnyElement},
    FunctionInfo{Function::Less, "lt", 2, kNumbers},
    FunctionInfo{Function::LessEqual, "le", 2, kNumbers},
    FunctionInfo{Function::Greater, "gt", 2, kNumbers},
    FunctionInfo{Function::GreaterEqual, "ge", 2, kNumbers},
    FunctionInfo{Function::Fma, "fma", 3, kFloats},
    FunctionInfo{Function::Select, "select", 3, kAnyElement},
    FunctionInfo{Function::Exchange, "exchange", 2, 0, kAtomic},
};

constexpr const FunctionInfo& info_of(Function function) {
  return kFunctionInfos[static_cast<std::size_t>(function)];
}
constexpr bool is_transcendental(Function function) {
  return (info_of(function).traits & kTranscendental) != 0;
}

}  // namespace tessera::tile
