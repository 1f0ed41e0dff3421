#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/runtime/host/regex_syntax.h"
#include "tessera/support/expected.h"

namespace tessera::host {

/// A regular expression. The time of a match is bounded by the length of the text times the size of
/// the unfolded pattern: all places where the pattern may stand are followed at once (Thompson,
/// "Regular Expression Search Algorithm", 1968).
class Regex {
 public:
  /// A bad pattern, and one that unfolds to too many steps, is a diagnostic.
  static Expected<Regex> parse(std::string_view text);

  /// Whether the whole text, which is UTF-8, matches.
  bool matches(std::string_view text) const;

  /// A place in the unfolded pattern.
  struct Step {
    enum class Kind : std::uint8_t { Test, Fork, Accept };
    Kind kind = Kind::Accept;
    Atom atom = Atom::Read;  // Test: what must hold
    std::size_t next = 0;
    std::size_t other = 0;  // Fork: the second way on; Read: which set of characters
  };

 private:
  Regex() = default;

  std::vector<PointRanges> sets_;
  std::vector<Step> steps_;  // begins at the last
};

}  // namespace tessera::host
