#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/prove/verdict.h"
#include "tessera/support/expected.h"

namespace tessera::prove {

/// Normalized graph, ready to be compared with another one: composites expanded, identities left
/// out, what only depends on constants computed, types inferred again.
struct Prepared {
  Graph graph = {};
  std::vector<bool> live = {};      // by value: an output depends on it
  std::vector<bool> computed = {};  // by value: a constant that follows from those of the file
  /// By value: the rounded result of a computation over constants that was left in the graph.
  std::vector<std::optional<Tensor>> rounded = {};
  /// By value: an integer tensor as arithmetic over the sizes of the inputs.
  std::vector<std::optional<std::vector<Dim>>> sizes = {};
  std::vector<Assumption> assumptions = {};
};

/// Treatment of values that are computed of scales and of quantized constants.
enum class ScaleReading : std::uint8_t {
  Rounded,   // computed, and rounded to its type
  Products,  // left in the graph: rounded, a product of scales is no product any more
  Integers,  // as products, but constants that are quantized again are the integers that this
             // gives, and tables are looked up before they are converted
};

struct PrepareOptions {
  std::vector<Type> inputs;                         // what the graph's inputs are taken to be
  std::string scope;                                // sizes that are made up are called by it
  std::int64_t most_bytes = std::int64_t{1} << 29;  // of constants that are computed
  ScaleReading scales = ScaleReading::Rounded;
  const std::atomic<bool>* stop = nullptr;
};

/// Whether a graph has quantized tensors.
bool is_quantized(const Graph& graph);

/// Keeps: the meaning, inputs and outputs in order, names of values that stay.
Expected<Prepared> prepare(const Graph& graph, const PrepareOptions& options);

/// By value: whether an output depends on it.
std::vector<bool> live_values(const Graph& graph);

}  // namespace tessera::prove
