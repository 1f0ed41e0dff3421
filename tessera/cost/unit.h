#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tessera/program/compile.h"

namespace tessera::cost {

/// How much is to be done, whatever with.
struct Work {
  std::string kind = {};  // how: dot, winograd, elements, copy, …
  double operations = 0;  // scalar ones, about
  double bytes = 0;       // read and written
  double launches = 0;
};

/// Steps of a program that are timed together: the kernels of a group, a copy, a step of the host.
struct Unit {
  std::size_t first = 0, count = 1;  // steps
  std::string key = {}, code = {};   // as measurements have them
  std::string what = {}, strategy = {};
  double rounds = 1;  // of the loops that it is in
  double flops = 0;
  Work work = {};
};

/// All that a program does, in order.
std::vector<Unit> units_of(const runtime::Program& program, const program::CompileReport& report);

/// The first word of a strategy: what units are alike in.
std::string kind_of(const std::string& strategy);

}  // namespace tessera::cost
