#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::host {

/// Set of code points: inclusive ranges, sorted and disjoint.
using PointRanges = std::vector<std::pair<char32_t, char32_t>>;

bool contains(const PointRanges& ranges, char32_t point);
bool is_word_character(char32_t point);

/// Condition at a position of the text: a character, or an assertion about its surroundings.
enum class Atom : std::uint8_t { Read, TextStart, TextEnd, WordEdge, WordInside };

/// Syntax tree of a pattern; repetitions are not expanded yet.
struct Part {
  enum class Kind : std::uint8_t { Leaf, Sequence, Choice, Repeat };
  Kind kind = Kind::Sequence;
  Atom atom = Atom::Read;
  std::size_t set = 0;  // index in Pattern::sets, for Read
  std::vector<Part> parts = {};
  int least = 0;
  std::optional<int> most = {};  // none: unbounded
};

struct Pattern {
  Part root;
  std::vector<PointRanges> sets;
};

/// Parser of RE2 syntax, without \p, \Q and the flag m. The depth of the tree is bounded.
Expected<Pattern> parse_pattern(std::string_view text);

}  // namespace tessera::host
