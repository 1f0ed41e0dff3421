#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Attribute of an operation in the text form, in braces after it: `reduce(x) {fn = max, axis =
/// 1}`.
struct Attribute {
  /// Field of Operation that holds the attribute.
  enum class Field : std::uint8_t {
    Function,
    First,   // ints[0]; 0 where it is left out
    Second,  // ints[1]; 0 where it is left out
    Ints,    // a list
    Hint,    // a list; the name is the text
    Number,  // the literal; 0 where it is left out
    Text,    // a string
  };
  Code code;
  std::string_view name;
  Field field;
};

/// Table of all attributes, shared by the printer and the parser.
inline constexpr std::array kAttributes = {
    Attribute{Code::Pid, "axis", Attribute::Field::First},
    Attribute{Code::Npid, "axis", Attribute::Field::First},
    Attribute{Code::Const, "value", Attribute::Field::Number},
    Attribute{Code::Permute, "order", Attribute::Field::Ints},
    Attribute{Code::Concat, "axis", Attribute::Field::First},
    Attribute{Code::Slice, "from", Attribute::Field::Ints},
    Attribute{Code::Reduce, "fn", Attribute::Field::Function},
    Attribute{Code::Reduce, "axis", Attribute::Field::First},
    Attribute{Code::Scan, "fn", Attribute::Field::Function},
    Attribute{Code::Scan, "axis", Attribute::Field::First},
    Attribute{Code::Scan, "reverse", Attribute::Field::Second},
    Attribute{Code::Gather, "axis", Attribute::Field::First},
    Attribute{Code::Dim, "axis", Attribute::Field::First},
    Attribute{Code::Stride, "axis", Attribute::Field::First},
    Attribute{Code::Vload, "pad", Attribute::Field::Number},
    Attribute{Code::Vload, "inside", Attribute::Field::Ints},
    Attribute{Code::Vstore, "inside", Attribute::Field::Ints},
    Attribute{Code::Atomic, "fn", Attribute::Field::Function},
    Attribute{Code::Hint, "multiple_of", Attribute::Field::Hint},
    Attribute{Code::Hint, "max_contiguous", Attribute::Field::Hint},
    Attribute{Code::Hint, "max_constancy", Attribute::Field::Hint},
    Attribute{Code::Assert, "message", Attribute::Field::Text},
    Attribute{Code::Print, "message", Attribute::Field::Text},
};

}  // namespace tessera::tile
