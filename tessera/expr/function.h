#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Properties of a scalar function.
struct FnInfo {
  Fn fn;
  std::string_view name;
  int arity;
  /// Computed by a polynomial, not by an instruction: it costs as much as a dozen additions, and
  /// its constants occupy vector registers.
  bool is_transcendental = false;
};

/// All scalar functions, in the order of Fn.
inline constexpr std::array kFnInfos = {
    FnInfo{Fn::Neg, "neg", 1},
    FnInfo{Fn::Abs, "abs", 1},
    FnInfo{Fn::Exp, "exp", 1, true},
    FnInfo{Fn::Log, "log", 1, true},
    FnInfo{Fn::Sqrt, "sqrt", 1},
    FnInfo{Fn::Sin, "sin", 1, true},
    FnInfo{Fn::Cos, "cos", 1, true},
    FnInfo{Fn::Atan, "atan", 1, true},
    FnInfo{Fn::Tanh, "tanh", 1, true},
    FnInfo{Fn::Erf, "erf", 1, true},
    FnInfo{Fn::Floor, "floor", 1},
    FnInfo{Fn::Round, "round", 1},
    FnInfo{Fn::Not, "not", 1},
    FnInfo{Fn::Add, "add", 2},
    FnInfo{Fn::Sub, "sub", 2},
    FnInfo{Fn::Mul, "mul", 2},
    FnInfo{Fn::Div, "div", 2},
    FnInfo{Fn::FloorDiv, "floor_div", 2},
    FnInfo{Fn::Mod, "mod", 2},
    FnInfo{Fn::Pow, "pow", 2, true},
    FnInfo{Fn::Max, "max", 2},
    FnInfo{Fn::Min, "min", 2},
    FnInfo{Fn::Equal, "equal", 2},
    FnInfo{Fn::Less, "less", 2},
    FnInfo{Fn::LessEqual, "less_equal", 2},
    FnInfo{Fn::And, "and", 2},
    FnInfo{Fn::Or, "or", 2},
    FnInfo{Fn::Xor, "xor", 2},
    FnInfo{Fn::ShiftLeft, "shift_left", 2},
    FnInfo{Fn::ShiftRight, "shift_right", 2},
    FnInfo{Fn::Select, "select", 3},
};

constexpr const FnInfo& info_of(Fn fn) {
  return kFnInfos[static_cast<std::size_t>(fn)];
}

}  // namespace tessera
