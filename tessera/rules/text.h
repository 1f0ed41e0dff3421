#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/support/lexer.h"

namespace tessera::rules {

/// Rules as text. What is printed parses back to the same rule and prints the same.
///
///   rule sum_into_matmul {
///     about    "x·(y + z) = x·y + x·z"
///     numerics reals
///     found    "by hand"
///     both ways
///     helps    everywhere
///     where    m <= n, k == 2*r
///     source (x: f32[m, k], y: f32[k, n], z: const f32[k, n]) { return matmul(x, add(y, z)) }
///     target { return add(matmul(x, y), matmul(x, z)) }
///   }
///
/// - `helps everywhere`: the target is no slower than the source, whatever the machine;
///   `helps smaller`: where it computes fewer elements.
/// - `numerics` is `exact`, `reals` or `error 1e-6`; `as op` is how op associates (`Laws`).
/// - `const` before the type: the input stands for constants only.
/// - `f32[*s]` is any shape, the same wherever `*s` is; `*s` may stand among other sizes.
/// - `where *b <= *s`: the shape broadcasts to the other one.
/// - `wrong [_, w - r : w]`: a mutant, which differs from the source in these boxes of the output
///   (`1[…]`: of the second output). The rule's target is the correction of it.
/// - `for op in add, mul`, before all else: one rule NAME_add with add for op, one NAME_mul;
///   `for op in associative` is for the operators on floats that are declared to be.
/// - Bodies are those of graphs (docs/ir.md); `{group=$g}` names an attribute.
std::string to_text(const Rule& rule);

/// A body, `{ return … }` with calls in calls and one statement for what is used several times.
std::string body_text(const Graph& graph, int indent);

/// `x: f32[m, k], c: const f32[*s]`
std::string inputs_text(const Rule& rule);
/// A constant as briefly as it can be read again.
std::string constant_text(const Tensor& tensor);
/// `exact`, `reals` or `error 1e-6`.
std::string to_text(const Numerics& numerics);

/// Operators that `for op in associative` stands for: declared to be associative, and on floats.
std::vector<const OpDef*> associative_operators();

Expected<std::vector<Rule>> parse_rules(std::string_view text, const std::string& file = {});

/// The rules of a file, or of all files `*.rules` in a folder, by name of the file. No name is used
/// twice.
Expected<std::vector<Rule>> load_rules(const std::filesystem::path& path);

}  // namespace tessera::rules
