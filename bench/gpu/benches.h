#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera {

/// Memory that is timed with others in its place, one after the other; what one kernel leaves to
/// the next stays where it is, as in a program's arena.
struct Room {
  DType dtype = DType::F32;
  std::int64_t bytes = 0;
  bool temporary = false;
  bool operator==(const Room&) const = default;
};

/// A kernel that is launched.
struct Step {
  Expected<tile::Kernel> kernel;
  std::vector<tile::Argument> arguments;  // without memory
  tile::Grid grid;
  codegen::PtxOptions options = {};
  std::vector<std::size_t> rooms = {};  // of each argument that is no number
};

/// What is timed: kernels one after the other. Its name begins with what bars.py knows; what
/// follows tells tiles apart, of which the best count. Rows and convolutions count as they are
/// compiled for everyone: ways that are not chosen have names that bars.py does not know.
struct Bench {
  std::string name;
  std::vector<Room> rooms;
  std::vector<Step> steps;
  double amount;     // bytes, or operations
  const char* unit;  // of amount per second: GB/s or TFLOP/s
  /// Equal where results are: those of one list are neighbours.
  std::string computes = name;
};

/// Those whose names are wanted.
using Wants = std::function<bool(const std::string& name)>;
std::vector<Bench> benches(const Wants& wants);

}  // namespace tessera
