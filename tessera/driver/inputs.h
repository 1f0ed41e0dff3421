#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tessera/driver/model.h"
#include "tessera/support/datum.h"

namespace tessera {

/// Source of the inputs of a run: files, or generated data.
struct InputOptions {
  enum class Fill { None, Sin, Random };

  std::map<std::string, std::filesystem::path> files = {};  // input -> .npy
  Fill fill = Fill::None;                                   // generator for inputs without a file
  std::uint64_t seed = 0;
  std::map<std::string, std::int64_t> dims = {};                 // symbolic dimension -> size
  std::map<std::string, std::vector<std::int64_t>> shapes = {};  // input -> shape
  /// Upper bounds of generated integers per input, besides those that the graph implies.
  std::map<std::string, std::int64_t> index_limits = {};
  std::int64_t memory_limit = std::int64_t{4} << 30;  // bytes of generated inputs
};

/// Symbolic dimensions of the inputs, whose sizes InputOptions::dims may set.
std::set<std::string> symbolic_dimensions(const Graph& graph);

/// Reads or generates the inputs of a graph, in order. `Fill::Sin`: a float is sin(i) of its flat
/// index i, an integer i % 1000, a boolean i % 2. Integers that are used as indices are in range. A
/// file that does not fit the declared type is a diagnostic, as is a dimension without a size.
Expected<std::vector<Datum>> make_inputs(const Graph& graph, InputOptions options);

/// Shapes of the inputs; nullopt for those that are not tensors.
Expected<std::vector<std::optional<std::vector<std::int64_t>>>> input_shapes(
    const Graph& graph, const InputOptions& options);

/// Whether the inputs of a graph may have these shapes: sizes that it declares are those, and a
/// symbol is one size wherever it is declared.
Expected<Done> check_shapes(const Graph& graph,
                            std::span<const std::optional<std::vector<std::int64_t>>> shapes);

}  // namespace tessera
