#pragma once

#include <string>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"
#include "tests/codegen/arguments.h"

namespace tessera {

/// A kernel that is compared with the interpreter.
struct Case {
  std::string name;
  Expected<tile::Kernel> kernel;
  codegen::TestArguments arguments;
  tile::Grid grid;
  double tolerance = 0;
  codegen::PtxOptions options = {};
  bool is_plain = false;  // as what timed kernels are compared with is compiled
};

std::vector<Case> cases();

}  // namespace tessera
