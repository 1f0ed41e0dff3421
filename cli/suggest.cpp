#include "cli/suggest.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace tessera::cli {
namespace {

/// Levenshtein distance: insertions, deletions and substitutions.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Nearest name, if fewer than half of its letters differ.
std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 2);
  for (const std::string& candidate : names)
    if (const std::size_t distance = edit_distance(name, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

}  // namespace

std::string suggestion(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(0, argument.find('='));
      std::vector<std::string> names;
      for (const CLI::Option* option : command->get_options())
        for (const std::string& long_name : option->get_lnames())
          if (option->get_group() != "") names.push_back("--" + long_name);
      if (command->get_option_no_throw(name) != nullptr) continue;
      return nearest(name, names);
    }
    const auto subcommands = command->get_subcommands([](const CLI::App*) { return true; });
    if (argument.starts_with('-') || subcommands.empty()) continue;
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* subcommand : subcommands) {
      names.push_back(subcommand->get_name());
      if (names.back() == argument) found = subcommand;
    }
    if (found == nullptr) return nearest(argument, names);
    command = found;
  }
  return {};
}

}  // namespace tessera::cli
