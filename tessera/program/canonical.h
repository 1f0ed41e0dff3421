#pragma once

#include <map>
#include <string>

#include "tessera/lower/group.h"

namespace tessera::program {

/// A group over tensors and axes whose names do not tell where in the graph it is, so that equal
/// groups are equal.
struct Canonical {
  lower::Group group = {};
  std::map<std::string, std::string, std::less<>> name_of = {};  // tensor of the graph -> here
  std::string key = {};
};
Canonical canonical(const lower::Group& group);

}  // namespace tessera::program
