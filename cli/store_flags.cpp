#include "cli/store_flags.h"

#include <CLI/CLI.hpp>

#include "cli/model_flags.h"
#include "tessera/runtime/object_cache.h"

namespace tessera::cli {

void add_store_flags(CLI::App& command, StoreFlags& flags) {
  command.add_option("--store", flags.store, "the file of measured kernels, or none")
      ->capture_default_str();
  command.add_option("--measured-on", flags.target,
                     "a target of the store in place of this computer (tessera costs lists them)");
}

Expected<std::filesystem::path> store_file(const StoreFlags& flags) {
  if (flags.store == "none") return std::filesystem::path();
  if (flags.store != "default") return std::filesystem::path(flags.store);
  const std::filesystem::path folder = default_cache();
  if (folder.empty()) return folder;
  TESSERA_TRY(const runtime::ObjectCache cache, runtime::ObjectCache::open(folder));
  return cache.folder() / "costs.sqlite";
}

Expected<cost::ModelOptions> cost_options(const StoreFlags& flags,
                                          const program::CompileOptions& code) {
  cost::ModelOptions options{.code = code, .target = flags.target};
  TESSERA_TRY(options.store, store_file(flags));
  return options;
}

}  // namespace tessera::cli
