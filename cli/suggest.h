#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tessera::cli {

/// Spelling suggestion for the first unknown argument: the subcommand or option of least edit
/// distance; empty if none is near.
std::string suggestion(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace tessera::cli
