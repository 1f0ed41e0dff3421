#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Whether memory is aligned to kAlignment.
bool is_aligned(const void* memory);

/// Checks the number of arguments of a caller against the program.
Expected<Done> check_count(std::size_t given, std::size_t expected);

/// Checks that a caller's memory is present and aligned, for values with a static size.
Expected<Done> check_memory(std::span<const std::byte* const> given, const Program& program,
                            const std::vector<ValueIndex>& values,
                            std::size_t alignment = kAlignment);

/// Checks that an argument has the type and shape of the value.
Expected<Done> check_type(DType dtype, std::span<const std::int64_t> shape, const Value& value);

/// Memory of a tensor, after a check that its type and shape are those of the value.
Expected<Bytes> bytes_of(const Datum& datum, const Value& value);

}  // namespace tessera::runtime
