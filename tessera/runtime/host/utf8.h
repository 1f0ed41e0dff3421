#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::host {

/// The last code point of Unicode; what is no UTF-8 decodes to something beyond.
constexpr char32_t kLastPoint = 0x10FFFF;

/// White space, as far as it is ASCII.
constexpr std::string_view kBlanks = " \t\n\v\f\r";

struct Character {
  char32_t point = 0;
  std::size_t length = 1;  // in bytes
};

/// The first character of a text that is not empty. A byte that starts no well-formed character is
/// one of its own, beyond kLastPoint.
Character first_character(std::string_view text);

char32_t lower_case(char32_t point);
char32_t upper_case(char32_t point);

/// The text with `change`, which is lower_case or upper_case, applied to each character.
std::string changed_case(std::string_view text, char32_t (*change)(char32_t));

}  // namespace tessera::host
