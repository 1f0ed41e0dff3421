#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/shape.h"
#include "tessera/ir/graph.h"
#include "tessera/prove/verdict.h"
#include "tessera/support/expected.h"

namespace tessera::prove {

/// Two models over the same inputs: paired by their names where these are the same, else by
/// position.
struct Aligned {
  Graph source = {}, target = {};            // inputs and outputs in the order of the source
  std::vector<Type> inputs = {};             // with the names of sizes of the source
  std::vector<Assumption> assumptions = {};  // sizes that only one model fixes
};

struct AlignOptions {
  std::vector<std::string> source_outputs = {}, target_outputs = {};  // their names; may be empty
};

/// A diagnostic where the inputs or outputs cannot be the same.
Expected<Aligned> align(const Graph& source, const Graph& target, const AlignOptions& options);

/// The type with sizes put in for symbols.
Type with_sizes(Type type, const Sizes& sizes);

/// The types with a number for every size: those that are named get `size`; nothing where a rank is
/// not known or a type is not one of tensors of numbers.
std::optional<std::vector<Type>> concrete(const std::vector<Type>& types, std::int64_t size);

}  // namespace tessera::prove
