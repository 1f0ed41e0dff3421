#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/support/diagnostic.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Maximum number of elements that the static extents of a view may span; also the maximum stride.
constexpr std::int64_t kMostViewElements = std::int64_t{1} << 46;

/// Error message for an invalid type (extents, strides, number of elements, dtype); none if it is
/// valid.
std::optional<std::string> type_mistake(const Type& type);

/// Whether an integer or bool dtype can hold the number; a u64 is given as its 64 bits.
bool fits(DType dtype, std::int64_t integer);

/// Whether a Map of the function is defined on elements of the dtype; for Select, of the selected
/// operands.
bool takes(Function function, DType dtype);
/// Description of the dtypes that a function is defined on; empty where it is not a function of
/// Map.
std::string domain_text(Function function);
/// Whether the function is allowed in a Reduce or a Scan; in an Atomic.
bool folds(Function function);
bool is_atomic(Function function);

/// Location of a source line for diagnostics.
Diagnostic::Where place_of(const Source& source);

}  // namespace tessera::tile
