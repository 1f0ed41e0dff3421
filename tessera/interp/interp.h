#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/datum.h"

/// Reference interpreter of graphs: evaluates every operator by its definition.
namespace tessera::interp {

/// Progress of a run, reported before each node.
struct Progress {
  std::size_t done = 0, nodes = 0;
  std::string_view op;  // about to run
};

struct Value;

/// Options of a run.
struct Options {
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;  // bytes of results alive at one time
  std::int64_t max_iterations = 100'000;              // limit on the iterations of all loops
  const std::atomic<bool>* stop = nullptr;            // cancellation flag
  bool in_order = false;                              // see EvalOptions
  bool traces_rounding = false;  // records that results are rounded, where operations are traced
  std::function<void(const Progress&)> progress = {};
  /// Callback for each result of the outermost graph's nodes.
  std::function<void(ValueId, const Value&)> observe = {};
};

/// Run-time value. Elements of float dtypes are stored as such or, `lifted`, in the number type of
/// the run.
struct Value {
  Datum datum = {};
  bool lifted = false;
  std::shared_ptr<const void> charge =
      {};  // accounts for memory that the run itself did not allocate
};

/// Interprets a graph by the definitions of its operators: slow and trusted, the oracle for every
/// optimization. Values are computed in T (see expr/eval.h) and, for float and double, rounded to
/// their dtype when stored. A result is freed after its last use.
template <class T>
Expected<std::vector<Value>> run_as(const Graph& graph, std::span<const Value> inputs,
                                    const Options& options);

/// Interprets a graph in double precision, on plain tensors.
Expected<std::vector<Datum>> run(const Graph& graph, std::span<const Datum> inputs,
                                 const Options& options);

/// Interprets one operator.
template <class T>
Expected<std::vector<Value>> run_op(const OpDef& op, const Attrs& attrs,
                                    std::span<const Value> inputs, int outputs,
                                    const Options& options);

/// Converts the float elements of a tensor to the number type T.
template <class T>
Tensor lift(const Tensor& tensor);

}  // namespace tessera::interp
