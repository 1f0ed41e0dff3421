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

/// The rules that come with Tessera.
Expected<std::vector<Rule>> shipped();

}  // namespace tessera::rules
