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

/// What nodes that are computed together take: a fused group, a reordering of axes, a copy, a step
/// of the host.
struct Kernel {
  std::string key;                        // equal keys are the same work: 32 hexadecimal digits
  std::size_t first_step = 0, steps = 1;  // of the program
  std::string what = {};                  // the operators: conv+add+relu
  std::string strategy = {};              // how they are computed
  double rounds = 1;                      // of the loops that it is in
  double seconds = 0;                     // of all rounds
  double modelled = 0;                    // the same by the roofline model alone
  bool measured = false;
};

/// What a graph takes when it is compiled and run once.
struct Estimate {
  double seconds = 0;
  bool measured = true;              // every kernel was
  std::vector<Kernel> kernels = {};  // in the order of the program
};

/// Caller: inputs and outputs lie row by row, other orders of axes are copies, which count. Inside:
/// the graph is a part of a larger one, and its inputs and outputs lie as the kernels like them.
using program::Boundary;

/// What graphs cost on one target. Groups and layouts are those of the compiler; work on weights
/// alone is free, copies of activations are not. The same store gives the same estimates, bit for
/// bit: what other processes measure meanwhile is not seen. Not to be used by two threads at a
/// time.
class Model {
 public:
  virtual ~Model() = default;

  /// What is measured by its measurement, the rest by the roofline model. Makes no code; some
  /// milliseconds. What has sizes that are not known is the host's.
  virtual Expected<Estimate> estimate(const Graph& graph, Boundary boundary = Boundary::Caller) = 0;

  /// The same of a program that was compiled as the model says.
  virtual Estimate estimate(const runtime::Program& program,
                            const program::CompileReport& report) const = 0;

  /// The same with all kernels measured: compiles and times those that the store does not know, all
  /// in turns, and keeps the times there. On a target that is not this computer, estimate().
  virtual Expected<Estimate> measure(const Graph& graph, Boundary boundary = Boundary::Caller) = 0;

  /// Whether measure() can measure: the target is this computer.
  virtual bool can_measure() const = 0;
};

struct ModelOptions {
  program::CompileOptions code = {};  // as program::compile() gets them
  /// The file of measurements; in memory alone, if empty.
  std::filesystem::path store = {};
  /// The target whose measurements count: a name that the store holds. Empty: code.machine with
  /// code.threads.
  std::string target = {};
  double seconds_per_kernel = 0.02;  // to measure it, about
};

Expected<std::unique_ptr<Model>> open_model(ModelOptions options);

/// Two graphs of the same inputs timed in turns as whole programs on this computer.
struct Comparison {
  double a_seconds = 0, b_seconds = 0;  // medians
  double ratio = 0;                     // of b over a: below 1, b is faster
  double low = 0, high = 0;             // a 95 % interval of it
};
/// Of compare() and time_program().
struct CompareOptions {
  program::CompileOptions code = {};
  int blocks = 30;
  double block_seconds = 0;  // of each of the two, about; at least one run
  const std::atomic<bool>* stop = nullptr;
};
Expected<Comparison> compare(const Graph& a, const Graph& b, const CompareOptions& options);

/// Seconds of a whole program on this computer: the least median of a block of runs, as kernels are
/// timed.
Expected<double> time_program(const Graph& graph, const CompareOptions& options);

}  // namespace tessera::cost
