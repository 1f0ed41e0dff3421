#pragma once

#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"

namespace tessera::testing {

/// Whether all inputs and outputs are arrays of types that NumPy has, as `run_saved` exchanges
/// them.
bool can_be_emulated(const Graph& graph);

/// Runs a program for another machine in a process of its own: `command`, words that are separated
/// by spaces, begins with the path of a program and ends in that of `run_saved` (tests/engine) for
/// that machine.
Expected<std::vector<Datum>> emulated_run(const CompiledModel& compiled,
                                          const std::vector<Datum>& inputs,
                                          const std::string& command);

}  // namespace tessera::testing
