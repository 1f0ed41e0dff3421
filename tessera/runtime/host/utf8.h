#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::host {

/// Last code point of Unicode; invalid UTF-8 decodes to numbers beyond it.
constexpr char32_t kLastPoint = 0x10FFFF;

/// ASCII white space.
constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// A decoded character.
struct Character {
  char32_t point = 0;
  std::size_t length = 1;  // in bytes
};

/// First character of a text that is not empty. A byte that starts no well-formed character is a
/// character of its own, beyond kLastPoint.
Character first_character(std::string_view text);

char32_t lower_case(char32_t point);
char32_t upper_case(char32_t point);

/// Text with `change`, which is lower_case or upper_case, applied to each character.
std::string changed_case(std::string_view text, char32_t (*change)(char32_t));

}  // namespace tessera::host
