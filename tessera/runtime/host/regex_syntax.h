#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::host {

/// Code points: ranges with both ends, in order and apart from each other.
using PointRanges = std::vector<std::pair<char32_t, char32_t>>;

bool contains(const PointRanges& ranges, char32_t point);
bool is_word_character(char32_t point);

/// What a pattern asks at one place of the text: a character, or something of the surroundings.
enum class Atom : std::uint8_t { Read, TextStart, TextEnd, WordEdge, WordInside };

/// A part of a pattern, as a tree: repeated parts are not yet unfolded.
struct Part {
  enum class Kind : std::uint8_t { Leaf, Sequence, Choice, Repeat };
  Kind kind = Kind::Sequence;
  Atom atom = Atom::Read;
  std::size_t set = 0;  // of Pattern::sets, for Read
  std::vector<Part> parts = {};
  int least = 0;
  std::optional<int> most = {};  // none: without end
};

struct Pattern {
  Part root;
  std::vector<PointRanges> sets;
};

/// Reads the syntax of RE2, without \p, \Q and the flag m. The depth of the tree is bounded.
Expected<Pattern> parse_pattern(std::string_view text);

}  // namespace tessera::host
