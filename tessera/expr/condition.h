#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tessera/expr/dim.h"
#include "tessera/support/expected.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// What has to hold between sizes: `left == right` or `left <= right`.
struct Condition {
  enum class Kind : std::uint8_t { Equal, AtMost };
  Kind kind = Kind::Equal;
  Dim left, right;

  bool operator==(const Condition&) const = default;
};

/// All of them hold; none means always.
using Guard = std::vector<Condition>;

Condition equal(Dim left, Dim right);
Condition at_most(Dim left, Dim right);

/// What symbols stand for.
using SizeValues = std::map<std::string, std::int64_t, std::less<>>;

/// Whether it holds; an error where a symbol has no value.
Expected<bool> holds(const Condition& condition, const SizeValues& sizes);
Expected<bool> holds(const Guard& guard, const SizeValues& sizes);

/// `k == 2*r + 1`; several are joined by a comma.
std::string to_text(const Condition& condition);
std::string to_text(const Guard& guard);
Expected<Condition> parse_condition(Lexer& lexer);

}  // namespace tessera
