#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "tessera/expr/scalar.h"

/// Grammar tables shared by the writer and the parser of the text form of definitions.
namespace tessera::grammar {

/// Operator precedence, from loosest to tightest.
enum Level : int { kLoose, kOr, kAnd, kCompare, kSum, kProduct, kUnary, kAtom };

/// Infix operators by precedence.
struct Infix {
  std::string_view sign;
  Fn fn;
  Level level;
};
inline constexpr std::array<Infix, 9> kInfix = {{{"||", Fn::Or, kOr},
                                                 {"&&", Fn::And, kAnd},
                                                 {"==", Fn::Equal, kCompare},
                                                 {"<", Fn::Less, kCompare},
                                                 {"<=", Fn::LessEqual, kCompare},
                                                 {"+", Fn::Add, kSum},
                                                 {"-", Fn::Sub, kSum},
                                                 {"*", Fn::Mul, kProduct},
                                                 {"/", Fn::Div, kProduct}}};

/// Folds that have a name in the text form.
struct NamedFold {
  std::string_view name;
  Scalar (*make)(std::vector<Bound>, const Scalar&);
};
inline constexpr std::array<NamedFold, 5> kNamedFolds = {
    {{"sum", sum}, {"prod", prod}, {"max_of", max_of}, {"min_of", min_of}, {"any_of", any_of}}};

/// Suffix that states the sort of `left.0` outside of a fold, as in `left.0i`.
struct SortSuffix {
  std::string_view text;
  Sort sort;
};
inline constexpr std::array<SortSuffix, 4> kSortSuffixes = {
    {{"", Sort::Value}, {"i", Sort::Integer}, {"u", Sort::Unsigned}, {"b", Sort::Bool}}};

inline constexpr std::array<std::string_view, 9> kReserved = {
    "true", "false", "let", "in", "else", "from", "take", "by", "scatter"};

inline constexpr std::string_view kSides[] = {"left.", "right."};
inline constexpr std::string_view kAssign = "set";  // a forward write that does not combine

}  // namespace tessera::grammar
