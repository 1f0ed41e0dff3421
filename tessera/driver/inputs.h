#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/driver/model.h"
#include "tessera/support/datum.h"

namespace tessera {

/// Where the inputs of a run come from.
struct InputOptions {
  enum class Fill { None, Sin, Random };

  std::map<std::string, std::filesystem::path> files = {};  // input -> .npy
  Fill fill = Fill::None;                                   // for the inputs without a file
  std::uint64_t seed = 0;
  std::map<std::string, std::int64_t> dims = {};                 // symbolic dimension -> size
  std::map<std::string, std::vector<std::int64_t>> shapes = {};  // input -> shape
  /// Per input what its integers are filled below, besides what the graph says.
  std::map<std::string, std::int64_t> index_limits = {};
  std::int64_t memory_limit = std::int64_t{4} << 30;  // bytes of inputs that are filled
};

/// The named dimensions of the inputs, to which InputOptions::dims may give sizes.
std::set<std::string> symbolic_dimensions(const Graph& graph);

/// The inputs of a graph, in order. `Fill::Sin`: a float is sin(i) of its flat index i, an integer
/// i % 1000, a truth value i % 2. Integers that are indices are less than what they index. A file
/// that does not fit the declared type is a diagnostic, as is a dimension without a size.
Expected<std::vector<Datum>> make_inputs(const Graph& graph, InputOptions options);

/// The shapes alone; nothing for what is no tensor.
Expected<std::vector<std::optional<std::vector<std::int64_t>>>> input_shapes(
    const Graph& graph, const InputOptions& options);

}  // namespace tessera
