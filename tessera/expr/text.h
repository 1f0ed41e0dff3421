#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// Text form of definitions. The printed text parses back to the same definition.
///
///   define(image: f32[#n, 2*#c, #h], weight: f32[2*#f, #c, #r], bias: f32[2*#f]) {
///     out: f32[n, (g: 2, f), y: #h - #r + 3] =
///       sum(c, r) { (image[n, g*#c + c, y + r - 1] else 0.0) * weight[g*#f + f, c, r] } +
///       bias[g*#f + f]
///   }
///
/// - `#n` is the size of axis n. An axis runs to its size unless it says how far: `y: 10`, and for
///   the axis of a fold `j: i + 1`. Several axes that run through one are in parentheses. Other
///   sizes as integers are `size(2*#c + batch)`.
/// - `1.0` is a value, `1` an integer, `1u` an unsigned one, `true` a truth value. `f16(x[i])` is a
///   cast. Scalar functions are called by name (`max(a, b)`, `select(c, a, b)`), or written with
///   `|| && == != < <= > >= + - * / !`.
/// - `x[i] else 0.0` states the value of an access out of range.
/// - `sum prod max_of min_of any_of` take all that follows, or what is in braces. Other folds are
///   `fold(k) { from 0.0, 0  take x[k], k  by left.0 + right.0, max(left.1, right.1) }.1`.
/// - Shared subexpressions are named before the outputs, `let %0 = ...` or, for the components
///   of one fold, `let (%0, %1) = fold...`; such a name stands for its text, and the axes in it are
///   those of the place where it is used.
/// - A forward write follows its output: `scatter(i, j) at [index[i], j] add update[i, j]`, or with
///   `set` in place of the function.
std::string to_text(const Definition& definition);
std::string to_text(const Scalar& scalar);

/// Parses and checks a definition: names, ranks and sorts fit, the operands determine every size,
/// and the nesting is limited so that recursive readings cannot overflow the stack.
Expected<Definition> parse_definition(std::string_view text);
Expected<Definition> parse_definition(Lexer& lexer);

/// Parses an expression over these operands and any axes.
Expected<Scalar> parse_scalar(std::string_view text, const std::vector<Operand>& operands = {});

/// Parses the text form of Dim::to_string.
Expected<Dim> parse_dim(std::string_view text);
Expected<Dim> parse_dim(Lexer& lexer);

}  // namespace tessera
