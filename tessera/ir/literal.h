#pragma once

#include <functional>
#include <string>

#include "tessera/ir/type.h"
#include "tessera/support/attrs.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// Text form of a tensor, type and elements in row-major order: `f32[2, 2] [1.0, -0.5, inf, 4.0]`,
/// `i64[] 3`, `string[1] ["a"]`. Elements that have no exact decimal form, such as a NaN with a
/// payload, are written as bytes in hexadecimal: `f32[1] hex("0100c07f")`.
std::string to_text(const Tensor& tensor);

/// Text form of an attribute: an integer, a float (with a point or an exponent), a string, a list
/// of these, a tensor, or `$name` for a symbol.
std::string to_text(const Attr& attr);

/// Provider of the bytes of `data("file", offset, length)`.
using DataSource = std::function<Expected<Bytes>(const std::string& file, std::int64_t offset,
                                                 std::int64_t length)>;

Expected<Tensor> parse_tensor(Lexer& lexer, const DataSource& data);
/// Parses a tensor without a type, `3`, `1.5` or `[2, 3]`: a number is a scalar, a list has one
/// axis; integers are i64, floats f32.
Expected<Tensor> parse_plain_tensor(Lexer& lexer);
Expected<Attr> parse_attr(Lexer& lexer);
/// Parses a size of a type: not negative, and not named like an axis of a definition.
Expected<Dim> parse_size(Lexer& lexer);
/// Parses the text form of a type (see to_string).
Expected<Type> parse_type(Lexer& lexer);

/// Whether the next tokens start a tensor with its type.
bool at_tensor(const Lexer& lexer);

}  // namespace tessera
