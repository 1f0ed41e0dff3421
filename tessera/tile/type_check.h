#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/support/diagnostic.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Most elements that the extents which a view states may span; its strides are at most this too.
constexpr std::int64_t kMostViewElements = std::int64_t{1} << 46;

/// What a type should be like, if it is not: extents, strides, number of elements, dtype.
std::optional<std::string> type_mistake(const Type& type);

/// Whether an integer or bool dtype can hold the number; a u64 is held as its 64 bits.
bool fits(DType dtype, std::int64_t integer);

/// Whether a map of the function is defined on elements of the dtype; Select is asked about what it
/// selects.
bool takes(Function function, DType dtype);
/// What it is defined on, in words; empty where it is no function of a map.
std::string domain_text(Function function);
/// Whether it can be the function of a Reduce or a Scan; of an Atomic.
bool folds(Function function);
bool is_atomic(Function function);

/// The place of a line of source, for diagnostics.
Diagnostic::Where place_of(const Source& source);

}  // namespace tessera::tile
