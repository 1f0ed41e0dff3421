#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/ready.h"

namespace tessera {

/// The result of running a program step by step.
struct StepCheckReport {
  std::size_t launches = 0;  // that were compared
  bool interpreted = false;  // there is no GPU to run the program on
  struct Difference {
    std::size_t step = 0;  // of the program; kWhole: of all of it
    std::string what = {};
  };
  static constexpr std::size_t kWhole = ~std::size_t{0};
  std::vector<Difference> differences = {};  // the first ones
  std::vector<Datum> outputs = {};           // of the run step by step
};

struct StepCheckOptions {
  ReadyOptions run = {};
  double tolerance = 1e-4;  // of an element, relative to the largest of its tensor
  int runs = 3;             // that have to give the same bits
  std::function<void(std::size_t done, std::size_t all, const std::string& what)> progress = {};
};

/// Runs a compiled program in every way that may show a mistake of a launch or of the order of
/// launches:
///
/// - step by step, in an arena full of NaN, each launch compared with its tile program, which is
///   interpreted on the memory that the launch found;
/// - several times as usual, and once in an arena full of NaN: all results have the same bits.
///
/// A program for a GPU is interpreted as a whole where there is none: that shows mistakes of its
/// steps and memory, and none of its kernels.
Expected<StepCheckReport> check_steps(const CompiledModel& compiled, std::span<const Datum> inputs,
                                      const StepCheckOptions& options);

}  // namespace tessera
