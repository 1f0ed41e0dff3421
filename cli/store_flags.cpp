#include "cli/store_flags.h"

#include <CLI/CLI.hpp>

namespace tessera::cli {

void add_store_flag(CLI::App& command, StoreFlags& flags) {
  command
      .add_option("--store", flags.store,
                  "file of kernel measurements and tuned schedules, or none")
      ->capture_default_str();
}

void add_measured_on_flag(CLI::App& command, StoreFlags& flags) {
  command.add_option("--measured-on", flags.target,
                     "target of the store in place of this computer (tessera costs lists them)");
}

std::filesystem::path store_file(const StoreFlags& flags, const Context& context) {
  if (flags.store == "none") return {};
  if (flags.store != "default") return flags.store;
  const std::filesystem::path& folder = context.default_cache();
  return folder.empty() ? folder : folder / "costs.sqlite";
}

std::filesystem::path existing_store(const StoreFlags& flags, const Context& context) {
  std::error_code error;
  std::filesystem::path file = store_file(flags, context);
  return std::filesystem::exists(file, error) ? file : std::filesystem::path();
}

cost::ModelOptions cost_options(const StoreFlags& flags, const program::CompileOptions& code,
                                const Context& context) {
  return {.code = code, .store = store_file(flags, context), .target = flags.target};
}

}  // namespace tessera::cli
