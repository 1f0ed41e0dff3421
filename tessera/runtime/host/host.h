#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/support/attrs.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

/// The opaque operators: meanings that do not fit index notation (sorting, sequences, text, random
/// numbers, data-dependent shapes), as functions over plain buffers. A saved program calls them
/// too, so they know nothing of the compiler.
namespace tessera::host {

struct Call {
  /// A left-out optional input is a Datum that is not present, or is missing at the end.
  std::span<const Datum> inputs;
  /// Defaults are filled in. An attribute without a default may be absent. A dtype is a string
  /// such as "f32".
  const Attrs& attrs;
  /// How many results are asked for, counted from the first.
  int outputs = 1;
  /// The largest tensor, result or temporary, that the function may make, in bytes.
  std::int64_t memory_limit = std::int64_t{1} << 34;
};

using Results = Expected<std::vector<Datum>>;

/// Pure but for the random functions, which depend on their seed alone: the same call has the same
/// results. Data that the operator does not allow is a diagnostic with the id "host-<name>".
using Function = Results (*)(const Call&);

struct Entry {
  std::string_view name;
  Function function;
};

/// The function of this name, or null.
Function find(std::string_view name);

/// Every function, sorted by name.
std::span<const Entry> all();

}  // namespace tessera::host
