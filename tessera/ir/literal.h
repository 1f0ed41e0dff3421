#pragma once

#include <functional>
#include <string>

#include "tessera/ir/type.h"
#include "tessera/support/attrs.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// `f32[2, 2] [1.0, -0.5, inf, 4.0]`, `i64[] 3`, `string[1] ["a"]`: type and elements, row-major.
/// What no list of numbers gives back, such as a NaN with a payload, is written as its bytes in
/// hexadecimal: `f32[1] hex("0100c07f")`.
std::string to_text(const Tensor& tensor);

/// An integer, a float (with a point or an exponent), a string, a list of these, a tensor, or
/// `$name`.
std::string to_text(const Attr& attr);

/// Where `data("file", offset, length)` finds its bytes.
using DataSource = std::function<Expected<Bytes>(const std::string& file, std::int64_t offset,
                                                 std::int64_t length)>;

Expected<Tensor> parse_tensor(Lexer& lexer, const DataSource& data);
/// `3`, `1.5`, `[2, 3]`: a number is a scalar, a list has one axis; integers are i64, floats f32.
Expected<Tensor> parse_plain_tensor(Lexer& lexer);
Expected<Attr> parse_attr(Lexer& lexer);
/// A size in a type: not negative, and not named like an axis of a definition.
Expected<Dim> parse_size(Lexer& lexer);
/// The form of to_string(Type).
Expected<Type> parse_type(Lexer& lexer);

/// Whether a tensor with its type comes next.
bool at_tensor(const Lexer& lexer);

}  // namespace tessera
