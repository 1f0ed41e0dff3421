#pragma once

#include <filesystem>
#include <string>

#include "cli/context.h"
#include "tessera/cost/model.h"

namespace tessera::cli {

/// Flags of the store of kernel measurements.
struct StoreFlags {
  std::string store = "default", target = {};
};
void add_store_flag(CLI::App& command, StoreFlags& flags);
void add_measured_on_flag(CLI::App& command, StoreFlags& flags);

/// File of the store; empty for `none`, and where there is no default cache.
std::filesystem::path store_file(const StoreFlags& flags, const Context& context);

/// The same for commands that only read it: empty if the file does not exist.
std::filesystem::path existing_store(const StoreFlags& flags, const Context& context);

/// Options of a cost model for these compile options.
cost::ModelOptions cost_options(const StoreFlags& flags, const program::CompileOptions& code,
                                const Context& context);

}  // namespace tessera::cli
