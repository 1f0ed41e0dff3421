#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tessera/expr/dim.h"
#include "tessera/support/expected.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// Condition on sizes: `left == right` or `left <= right`.
struct Condition {
  enum class Kind : std::uint8_t { Equal, AtMost };
  Kind kind = Kind::Equal;
  Dim left, right;

  bool operator==(const Condition&) const = default;
};

/// Conjunction of conditions; an empty guard always holds.
using Guard = std::vector<Condition>;

Condition equal(Dim left, Dim right);
Condition at_most(Dim left, Dim right);

/// Values of size symbols.
using SizeValues = std::map<std::string, std::int64_t, std::less<>>;

/// Evaluates a condition; an error where a symbol has no value.
Expected<bool> holds(const Condition& condition, const SizeValues& sizes);
Expected<bool> holds(const Guard& guard, const SizeValues& sizes);

/// Text form, as in `k == 2*r + 1`; several conditions are joined by a comma.
std::string to_text(const Condition& condition);
std::string to_text(const Guard& guard);
Expected<Condition> parse_condition(Lexer& lexer);

}  // namespace tessera
