#pragma once

#include <cstdint>

#include "tessera/program/assemble.h"

namespace tessera::program {

/// Makes the arena of a draft fit into so many bytes, and plans it.
///
/// Where too much is alive, a value that waits is given up and computed again before its next use,
/// or is moved to the session's temporary file and back, whichever is cheaper; what does not fit
/// even while it is used lies in that file, which is mapped. The report's notes say what it costs.
///
/// Needs:  steps without loops and jumps; a draft that has them and does not fit is refused.
/// Keeps:  the results, bit for bit.
Expected<Done> limit_memory(Draft& draft, std::int64_t bytes);

}  // namespace tessera::program
