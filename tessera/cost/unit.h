#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/program/compile.h"

namespace tessera::cost {

/// Amount of work of a unit, independent of the target.
struct Work {
  std::string kind = {};  // kind of kernel: dot, winograd, elements, copy, …
  double operations = 0;  // approximate number of scalar operations
  double bytes = 0;       // read and written
  double launches = 0;
};

/// Unit of measurement: program steps that are timed together (the kernels of a group, a copy, a
/// host step).
struct Unit {
  std::size_t first = 0, count = 1;  // range of program steps
  std::string key = {}, code = {};   // hashes, as in Measurement
  std::string what = {}, strategy = {};
  double trip_count = 1;  // of the enclosing loops
  double flops = 0;
  Work work = {};
};

/// All units of a program, in order.
std::vector<Unit> units_of(const runtime::Program& program, const program::CompileReport& report);

/// Kind of a unit: the first word of its strategy.
std::string kind_of(const std::string& strategy);

}  // namespace tessera::cost
