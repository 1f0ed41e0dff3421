#include "tessera/runtime/host/utf8.h"

#include <cstdint>
#include <iterator>

namespace tessera::host {
namespace {

/// Range of capital letters; each has its small letter at `distance`.
struct Capitals {
  std::int32_t first, last, distance, step;
};

constexpr Capitals kCapitals[] = {
    // Latin
    {'A', 'Z', 32, 1},
    {0x0C0, 0x0D6, 32, 1},
    {0x0D8, 0x0DE, 32, 1},
    {0x100, 0x12E, 1, 2},
    {0x132, 0x136, 1, 2},
    {0x139, 0x147, 1, 2},
    {0x14A, 0x176, 1, 2},
    {0x178, 0x178, -121, 1},
    {0x179, 0x17D, 1, 2},
    {0x1A0, 0x1A4, 1, 2},
    {0x1AF, 0x1AF, 1, 1},
    {0x1CD, 0x1DB, 1, 2},
    {0x1DE, 0x1EE, 1, 2},
    {0x1F8, 0x21E, 1, 2},
    {0x222, 0x232, 1, 2},
    // Greek
    {0x386, 0x386, 38, 1},
    {0x388, 0x38A, 37, 1},
    {0x38C, 0x38C, 64, 1},
    {0x38E, 0x38F, 63, 1},
    {0x391, 0x3A1, 32, 1},
    {0x3A3, 0x3AB, 32, 1},
    // Cyrillic
    {0x400, 0x40F, 80, 1},
    {0x410, 0x42F, 32, 1},
    {0x460, 0x480, 1, 2},
    {0x48A, 0x4BE, 1, 2},
    {0x4C1, 0x4CD, 1, 2},
    {0x4D0, 0x52E, 1, 2},
    // Armenian
    {0x531, 0x556, 48, 1},
};

char32_t moved(char32_t point, bool to_lower) {
  for (const Capitals& row : kCapitals) {
    const auto found = static_cast<std::int64_t>(point);
    const std::int64_t capital = to_lower ? found : found - row.distance;
    if (capital >= row.first && capital <= row.last && (capital - row.first) % row.step == 0)
      return static_cast<char32_t>(to_lower ? capital + row.distance : capital);
  }
  return point;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const Character malformed{kLastPoint + 1 + lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return malformed;
  char32_t point = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return malformed;
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length: no longer forms
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  if (point < kSmallest[length] || point > kLastPoint || surrogate) return malformed;
  return {point, length};
}

char32_t lower_case(char32_t point) {
  return moved(point, true);
}
char32_t upper_case(char32_t point) {
  return moved(point, false);
}

std::string changed_case(std::string_view text, char32_t (*change)(char32_t)) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character from = first_character(text);
    const char32_t to = change(from.point);
    if (to == from.point) {
      out.append(text, 0, from.length);
    } else if (to < 0x80) {
      out.push_back(static_cast<char>(to));
    } else {  // the table holds characters of one and two bytes
      out.push_back(static_cast<char>(0xC0 | (to >> 6)));
      out.push_back(static_cast<char>(0x80 | (to & 0x3F)));
    }
    text.remove_prefix(from.length);
  }
  return out;
}

}  // namespace tessera::host
