#pragma once

#include <map>
#include <string>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// What is said of operations, for people.
using Remarks = std::map<OpId, std::string>;

/// The kernel as text (text.h), with remarks as comments at the ends of lines: it parses all the
/// same.
std::string to_text(const Kernel& kernel, const Remarks& remarks);

}  // namespace tessera::tile
