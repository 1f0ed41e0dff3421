#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

bool is_aligned(const void* memory);

/// Whether a caller gives as many arguments as the program has.
Expected<Done> check_count(std::size_t given, std::size_t expected);

/// Whether memory of a caller is there and aligned, for values that have a size before a run.
Expected<Done> check_memory(std::span<const std::byte* const> given, const Program& program,
                            const std::vector<ValueIndex>& values);

/// The memory of a tensor that is what the value says.
Expected<Bytes> bytes_of(const Datum& datum, const Value& value);

}  // namespace tessera::runtime
