#pragma once

#include <cstdint>
#include <vector>

#include "tessera/program/assemble.h"

namespace tessera::program {

/// The values that a step touches, each once.
std::vector<runtime::ValueIndex> touched(const runtime::Step& step);

/// Has a step touch another value of the same form instead.
void retarget(runtime::Step& step, runtime::ValueIndex from, runtime::ValueIndex to);

/// Gives every value of the arena its offset.
void plan_arena(Draft& draft);
/// The same for the values in the temporary file; returns how many bytes they take together.
std::int64_t plan_file(Draft& draft);

}  // namespace tessera::program
