#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tessera/support/lexer.h"

/// Naming rules shared by the writer and the parser of the text form of graphs.
namespace tessera::grammar {

inline constexpr std::string_view kAbsent = "_";  // an input left out
inline constexpr std::array<std::string_view, 3> kWords = {kAbsent, "return", "const"};

/// Whether a word is the number of an unnamed value: `%7`.
inline bool is_number(std::string_view word) {
  return word.size() > 1 && word[0] == '%' &&
         word.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// Name of a value in text form, quoted where it would read as something else.
inline std::string value_text(const std::string& name) {
  const bool taken = is_number(name) || std::ranges::find(kWords, name) != kWords.end();
  return taken ? quoted_text(name, '\'') : name_text(name);
}

}  // namespace tessera::grammar
