#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/support/attrs.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

/// Host functions of the opaque operators: operators without index notation (sorting, sequences,
/// text, random numbers, data-dependent shapes), as functions over plain buffers. Saved programs
/// call them too, so they do not depend on the compiler.
namespace tessera::host {

/// Arguments of a host function.
struct Call {
  /// Inputs; an omitted optional one is a Datum that is not present, or is missing at the end.
  std::span<const Datum> inputs;
  /// Attributes, with defaults filled in. An attribute without a default may be absent. A dtype is
  /// a string such as "f32".
  const Attrs& attrs;
  /// Number of results, counted from the first.
  int outputs = 1;
  /// Maximum size in bytes of a tensor, result or temporary, that the function may allocate.
  std::int64_t memory_limit = std::int64_t{1} << 34;
};

using Results = Expected<std::vector<Datum>>;

/// A host function. Pure but for the random functions, which depend on their seed alone: the same
/// call has the same results. Data that the operator does not allow is a diagnostic with the id
/// "host-<name>".
using Function = Results (*)(const Call&);

struct Entry {
  std::string_view name;
  Function function;
};

/// Host function by name, or null.
Function find(std::string_view name);

/// All host functions, sorted by name.
std::span<const Entry> all();

}  // namespace tessera::host
