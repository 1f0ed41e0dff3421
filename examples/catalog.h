#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"

namespace tessera::tile::examples {

/// An example as the command line offers it: a kernel, and a launch to try it on.
struct Example {
  std::string name, summary;
  std::function<Expected<Kernel>()> make;
  std::vector<std::string> arguments;  // `x=f32[128, 64]`, `n=1000`
  Grid grid = {1, 1, 1};
};

const std::vector<Example>& catalog();
const Example* find_example(std::string_view name);

}  // namespace tessera::tile::examples
