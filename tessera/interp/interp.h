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

namespace tessera::interp {

struct Progress {
  std::size_t done = 0, nodes = 0;
  std::string_view op;  // about to run
};

struct Value;

struct Options {
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;  // bytes of results alive at one time
  std::int64_t most_rounds = 100'000;                 // of all loops together
  const std::atomic<bool>* stop = nullptr;            // set from elsewhere: give up soon
  bool in_order = false;                              // see EvalOptions
  std::function<void(const Progress&)> progress = {};
  /// Is shown the results of the outermost graph's nodes as they are made.
  std::function<void(ValueId, const Value&)> observe = {};
};

/// A value of a run. Elements of float dtypes are stored as such or, `lifted`, in the number type
/// of the run.
struct Value {
  Datum datum = {};
  bool lifted = false;
  std::shared_ptr<const void> charge = {};  // counts memory that the run itself did not allocate
};

/// Runs a graph by the definitions of its operators: slow and trusted, what every optimization is
/// checked against. Values are computed in T (see expr/eval.h) and, for float and double, rounded
/// to their dtype when stored. A result is freed after its last use.
template <class T>
Expected<std::vector<Value>> run_as(const Graph& graph, std::span<const Value> inputs,
                                    const Options& options);

/// In double, with plain tensors.
Expected<std::vector<Datum>> run(const Graph& graph, std::span<const Datum> inputs,
                                 const Options& options);

/// Runs one operator.
template <class T>
Expected<std::vector<Value>> run_op(const OpDef& op, const Attrs& attrs,
                                    std::span<const Value> inputs, int outputs,
                                    const Options& options);

/// A tensor with its float elements as T.
template <class T>
Tensor lift(const Tensor& tensor);

}  // namespace tessera::interp
