#pragma once

#include <map>
#include <string>

#include "tessera/lower/group.h"

namespace tessera::program {

/// Fusion group with canonical names of tensors and axes, so that equal groups of a graph have one
/// key and are lowered once.
struct CanonicalGroup {
  lower::Group group = {};
  std::map<std::string, std::string, std::less<>> name_of = {};  // tensor of the graph -> here
  std::string key = {};
};
CanonicalGroup canonical(const lower::Group& group);

}  // namespace tessera::program
