#pragma once

#include <filesystem>
#include <string>

#include "cli/context.h"
#include "tessera/cost/model.h"

namespace tessera::cli {

/// Which measurements are used, and where new ones go.
struct StoreFlags {
  std::string store = "default", target = {};
};
void add_store_flags(CLI::App& command, StoreFlags& flags);

/// The file; empty for `none`, and where there is no default cache.
std::filesystem::path store_file(const StoreFlags& flags, const Context& context);

/// A cost model of what is compiled with these options.
cost::ModelOptions cost_options(const StoreFlags& flags, const program::CompileOptions& code,
                                const Context& context);

}  // namespace tessera::cli
