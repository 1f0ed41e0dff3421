#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/runtime/host/regex_syntax.h"
#include "tessera/support/expected.h"

namespace tessera::host {

/// Regular expression matcher in time linear in the text length times the size of the compiled
/// pattern: all states of the automaton are simulated at once (Thompson, "Regular Expression Search
/// Algorithm", 1968).
class Regex {
 public:
  /// Compiles a pattern; a bad pattern, and one that compiles to too many states, is a diagnostic.
  static Expected<Regex> parse(std::string_view text);

  /// Whether the whole text, which is UTF-8, matches.
  bool matches(std::string_view text) const;

  /// State of the automaton.
  struct Step {
    enum class Kind : std::uint8_t { Test, Fork, Accept };
    Kind kind = Kind::Accept;
    Atom atom = Atom::Read;  // Test: the condition
    std::size_t next = 0;
    std::size_t other = 0;  // Fork: the second successor; Read: index of the character set
  };

 private:
  Regex() = default;

  std::vector<PointRanges> sets_;
  std::vector<Step> steps_;  // the last one is the initial state
};

}  // namespace tessera::host
