#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/programs/random_program.h"

namespace tessera::testing {

/// How a program is compiled and run.
struct RunConfig {
  int threads = 1;
  bool exact = false;
  bool bf16 = false;
  bool gpu = false;  // a program for a GPU, whose tile programs are interpreted
  std::string disabled_pass = {};
  /// Another CPU that programs are compiled for, and the command that runs them there; this
  /// computer if empty.
  std::string machine = {}, emulator = {};
};
std::string to_string(const RunConfig& config);

/// Compiles and runs a program as `tessera run` does, and says how its results differ from the
/// interpreter's by more than rounding explains; empty if they do not.
///
/// What rounding explains is estimated by running the interpreter again with every operand and
/// result that is not a short binary fraction moved by about a unit in the last place: an element
/// may differ by a multiple of what it moved by.
std::string difference(const RandomProgram& program, const RunConfig& config);

/// Compiles and runs a program under `--numerics exact` with all passes, and with every pass
/// disabled that is not needed to compile it, and says where the results differ in a bit; empty if
/// they do not. All NaN are alike; programs whose definitions leave the order of a sum open are
/// not looked at.
std::string bit_difference(const RandomProgram& program, const RunConfig& config);

/// An output by the interpreter, and how far each element may be from it because of rounding: all
/// elements of the tensors of a sequence in a row, infinity where anything may come out. Nothing:
/// so of the whole output.
struct ToleratedOutput {
  Datum value;
  std::optional<std::vector<double>> tolerance;
};
/// Nothing where rounding makes a program fail.
std::optional<std::vector<ToleratedOutput>> tolerated_outputs(const RandomProgram& program);

/// The smallest program found that still fails: fewer outputs, and results of nodes given as
/// inputs.
RandomProgram shrunk(RandomProgram program, const std::function<bool(const RandomProgram&)>& fails);

/// The graph and its inputs, to be read.
std::string to_text(const RandomProgram& program);

}  // namespace tessera::testing
