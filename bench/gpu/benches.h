#pragma once

#include <string>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera {

/// A kernel that is timed. Its name begins with what bars.py knows; what follows tells tiles apart,
/// of which the best count. Rows count as they are compiled for everyone: ways that are not chosen
/// have names that bars.py does not know.
struct Bench {
  std::string name;
  Expected<tile::Kernel> kernel;
  std::vector<tile::Argument> arguments;  // without memory
  tile::Grid grid;
  double amount;     // bytes, or operations
  const char* unit;  // of amount per second: GB/s or TFLOP/s
  codegen::PtxOptions options = {};
};

std::vector<Bench> benches();

}  // namespace tessera
