#pragma once

#include <cstdint>
#include <vector>

#include "tessera/program/assemble.h"
#include "tessera/program/memory.h"

namespace tessera::program {

/// Values that a step reads or writes, without duplicates.
std::vector<runtime::ValueIndex> touched(const runtime::Step& step);

/// First step of the lifetime of a value that no step uses.
inline constexpr int kNeverUsed = -1;
/// Live ranges of the values of a program, by value, wherever they are stored.
std::vector<Lifetime> lifetimes_of(const runtime::Program& program);

/// Replaces a value of a step by another one of the same shape and dtype.
void retarget(runtime::Step& step, runtime::ValueIndex from, runtime::ValueIndex to);

/// Memory planning: assigns an offset in the arena to every value that is stored there.
void plan_arena(Draft& draft);
/// The same for the values in the temporary file; returns its size in bytes.
std::int64_t plan_file(Draft& draft);

}  // namespace tessera::program
