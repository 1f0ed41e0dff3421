#pragma once

#include <map>
#include <string>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Remarks on operations, such as decisions of a compiler pass, printed beside them.
using Remarks = std::map<OpId, std::string>;

/// Prints the kernel as text (text.h) with remarks as trailing comments; the text still parses.
std::string to_text(const Kernel& kernel, const Remarks& remarks);

}  // namespace tessera::tile
