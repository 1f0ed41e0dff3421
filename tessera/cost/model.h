#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/boundary.h"
#include "tessera/program/compile.h"
#include "tessera/support/expected.h"

namespace tessera::cost {

/// Cost of a unit of execution: a fused group, a layout change, a copy, or a host step.
struct Kernel {
  std::string key;                        // hash of the work, 32 hexadecimal digits
  std::size_t first_step = 0, steps = 1;  // range of program steps
  std::string what = {};                  // operators: conv+add+relu
  std::string strategy = {};              // lowering strategy
  double trip_count = 1;                  // of the enclosing loops
  double seconds = 0;                     // time of all iterations
  double modelled = 0;                    // the same by the roofline model alone
  bool measured = false;
};

/// Cost estimate of one run of a compiled graph.
struct Estimate {
  double seconds = 0;
  bool measured = true;              // all kernels were measured
  std::vector<Kernel> kernels = {};  // in the order of the program
};

/// Layout of a graph's inputs and outputs. Caller: row-major, so that layout changes are copies,
/// which count. Inside: the graph is a part of a larger one, and the layouts are those that its
/// kernels prefer.
using program::Boundary;

/// Cost model of graphs on one target. Fusion groups and layouts are those of the compiler; work on
/// weights is free (constant folding), copies of activations are not. The same store gives the same
/// estimates, bit for bit: measurements of other processes are not seen meanwhile. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// Estimates a graph: measured kernels by their times, the rest by the roofline model. Generates
  /// no code; takes some milliseconds. Operators of unknown sizes count as host steps.
  virtual Expected<Estimate> estimate(const Graph& graph, Boundary boundary = Boundary::Caller) = 0;

  /// Estimates a program that was compiled with the model's options.
  virtual Estimate estimate(const runtime::Program& program,
                            const program::CompileReport& report) const = 0;

  /// Estimates with all kernels measured: compiles and times those that the store does not have,
  /// interleaved, and stores the times. On a target other than this computer it is estimate().
  virtual Expected<Estimate> measure(const Graph& graph, Boundary boundary = Boundary::Caller) = 0;

  /// Whether measure() can measure, because the target is this computer.
  virtual bool can_measure() const = 0;
};

/// Options of a cost model.
struct ModelOptions {
  program::CompileOptions code = {};  // options of program::compile()
  /// File of measurements; in memory if empty.
  std::filesystem::path store = {};
  /// Target whose measurements are used, by its name in the store. Empty: code.machine with
  /// code.threads.
  std::string target = {};
  double seconds_per_kernel = 0.02;  // approximate time to measure one kernel
};

/// Opens the store and creates the cost model of a target.
Expected<std::unique_ptr<Model>> open_model(ModelOptions options);

/// Interleaved timing of two graphs with the same inputs, as whole programs on this computer.
struct Comparison {
  double a_seconds = 0, b_seconds = 0;  // medians
  double ratio = 0;                     // b over a: below 1, b is faster
  double low = 0, high = 0;             // 95 % confidence interval of the ratio
};
/// Options of compare() and time_program().
struct CompareOptions {
  program::CompileOptions code = {};
  int blocks = 30;
  double block_seconds = 0;  // approximate length of a block, which has at least one run
  const std::atomic<bool>* stop = nullptr;
  /// Schedules of b's fusion groups; null: those of `code`.
  std::shared_ptr<const program::ScheduleBook> b_schedules = {};
};
Expected<Comparison> compare(const Graph& a, const Graph& b, const CompareOptions& options);

/// Seconds of a whole program on this computer: the least block median, as for kernels.
Expected<double> time_program(const Graph& graph, const CompareOptions& options);

}  // namespace tessera::cost
