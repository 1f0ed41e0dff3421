#pragma once

#include <string>

#include "tessera/support/expected.h"

namespace tessera::report {

/// Output of Graphviz's program `dot` for a graph in its language, in one of its formats: "svg",
/// "plain". `picture-graphviz` where it is not installed, fails or exceeds the time limit.
struct DotOptions {
  std::string format = "svg";
  double seconds = 60;
};
Expected<std::string> run_dot(const std::string& dot, const DotOptions& options);

}  // namespace tessera::report
