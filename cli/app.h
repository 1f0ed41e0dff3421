#pragma once

namespace tessera::cli {

/// Command line entry point: parses the arguments, runs the command, returns the exit code of the
/// process.
int run_app(int argc, char** argv);

}  // namespace tessera::cli
