#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera::testing {

/// A command line flag of a test program: a switch, or one with a value.
struct Flag {
  std::string_view name;
  std::variant<bool*, int*, double*, std::uint64_t*, std::string*> value;  // an int is at least 1
};

/// Reads a command line. An exit code if the program is done: after --help, or on a wrong usage.
inline std::optional<int> read_flags(int argc, char** argv, const std::vector<Flag>& flags,
                                     std::string_view usage) {
  const auto done = [&](int code) {
    fmt::print("{}", usage);
    return code;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--help" || name == "-h") return done(0);
    const auto flag = std::ranges::find(flags, name, &Flag::name);
    if (flag == flags.end()) return done(2);
    if (auto* const* on = std::get_if<bool*>(&flag->value)) {
      **on = true;
      continue;
    }
    if (++i == argc) return done(2);
    const char* text = argv[i];
    if (auto* const* number = std::get_if<int*>(&flag->value))
      **number = std::max(1, std::atoi(text));
    else if (auto* const* real = std::get_if<double*>(&flag->value))
      **real = std::atof(text);
    else if (auto* const* large = std::get_if<std::uint64_t*>(&flag->value))
      **large = std::strtoull(text, nullptr, 10);
    else
      *std::get<std::string*>(flag->value) = text;
  }
  return std::nullopt;
}

}  // namespace tessera::testing
