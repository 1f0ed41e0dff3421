#pragma once

#include <cstdint>

#include "tessera/program/assemble.h"

namespace tessera::program {

/// Plans the arena of a draft under a memory limit, by rematerialization and swapping.
///
/// While live values exceed the limit, one that is not in use is dropped and recomputed before its
/// next use, or swapped to the session's temporary file, whichever is cheaper. A value that does
/// not fit even while in use is stored in that file, which is memory-mapped. The report's notes
/// state the cost.
///
/// Needs:  steps without loops and jumps; other drafts that exceed the limit are rejected.
/// Keeps:  the results, bit for bit.
Expected<Done> limit_memory(Draft& draft, std::int64_t bytes);

}  // namespace tessera::program
