#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera::passes {

/// Change that a pass made to a graph.
struct Change {
  // NOLINTNEXTLINE(google-explicit-constructor): `changes.push_back("…")` where no place is known
  Change(std::string text, std::string value = {})
      : what(std::move(text)), where(std::move(value)) {}

  std::string what;   // one line: the rule, or what was done
  std::string where;  // name of the first result that was rewritten; empty if it has none
};
using Changes = std::vector<Change>;

}  // namespace tessera::passes
