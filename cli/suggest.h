#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tessera::cli {

/// The subcommand or option whose name is nearest to the first argument that is neither; empty
/// where all are known or none is near. By the edit distance.
std::string suggestion(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace tessera::cli
