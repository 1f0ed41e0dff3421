#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tessera/support/lexer.h"

/// What the writer and the reader of graphs share.
namespace tessera::grammar {

inline constexpr std::string_view kAbsent = "_";  // an input left out
inline constexpr std::array<std::string_view, 3> kWords = {kAbsent, "return", "const"};

/// `%7`: a value without a name.
inline bool is_number(std::string_view word) {
  return word.size() > 1 && word[0] == '%' &&
         word.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

/// A name in quotes where it would mean something else.
inline std::string value_text(const std::string& name) {
  const bool taken = is_number(name) || std::ranges::find(kWords, name) != kWords.end();
  return taken ? quoted_text(name, '\'') : name_text(name);
}

}  // namespace tessera::grammar
