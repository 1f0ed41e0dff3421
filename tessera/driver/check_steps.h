#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/runnable_program.h"

namespace tessera {

/// Result of check_steps.
struct StepCheckReport {
  std::size_t launches = 0;  // kernel launches that were compared
  bool interpreted = false;  // interpreted, as there is no GPU to run the program on
  struct Difference {
    std::size_t step = 0;  // step of the program, or kWhole for the whole program
    std::string what = {};
  };
  static constexpr std::size_t kWhole = ~std::size_t{0};
  std::vector<Difference> differences = {};  // the first ones
  std::vector<Datum> outputs = {};           // outputs of the step-by-step run
};

/// Options of check_steps.
struct StepCheckOptions {
  ExecutionOptions run = {};
  double tolerance = 1e-4;  // of an element, relative to the largest of its tensor
  int runs = 3;             // ordinary runs, which have to agree bit for bit
  std::function<void(std::size_t done, std::size_t all, const std::string& what)> progress = {};
};

/// Checks a compiled program for wrong kernels, and for races between launches:
///
/// - step by step, in an arena full of NaN, each launch compared with its tile program, which is
///   interpreted on the memory that the launch found;
/// - several ordinary runs, and one in an arena full of NaN: all outputs have the same bits.
///
/// Without a GPU, a program for one is interpreted as a whole: that checks its steps and memory,
/// but not its kernels.
Expected<StepCheckReport> check_steps(const CompiledModel& compiled, std::span<const Datum> inputs,
                                      const StepCheckOptions& options);

}  // namespace tessera
