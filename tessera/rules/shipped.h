#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/rules/rule.h"

namespace tessera::rules {

/// A file of `rules/`, as it was when this library was built.
struct ShippedFile {
  std::string_view name, text;
};
std::span<const ShippedFile> shipped_files();

/// The rules that come with Tessera: by hand, then by enumeration (`rules/generated`), then
/// corrected mutants (`rules/mutants`).
Expected<std::vector<Rule>> shipped();

/// Those written by hand alone, which are few and chosen for what they are good for.
Expected<std::vector<Rule>> shipped_by_hand();
/// Those found by machine alone.
Expected<std::vector<Rule>> shipped_by_enumeration();
/// Partially equivalent rewrites, corrected.
Expected<std::vector<Rule>> shipped_mutants();

}  // namespace tessera::rules
