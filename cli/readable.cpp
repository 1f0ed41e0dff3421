#include "cli/readable.h"

#include <fmt/format.h>

namespace tessera::cli {

std::string readable(std::int64_t number, std::string_view unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  double value = static_cast<double>(number);
  int prefix = 0;
  while (value >= 1000 && prefix < 6) {
    value /= 1000;
    ++prefix;
  }
  return prefix == 0 ? fmt::format("{} {}", number, unit)
                     : fmt::format("{:.2f} {}{}", value, prefixes[prefix], unit);
}

}  // namespace tessera::cli
