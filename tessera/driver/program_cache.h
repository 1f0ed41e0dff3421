#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tessera/driver/compile_model.h"
#include "tessera/runtime/object_cache.h"

namespace tessera {

/// Everything that the program of a model depends on: the build of the compiler, the target
/// machine, the options, the shapes of the inputs and the graph, as text; the content of constants
/// by digest. Programs with equal keys are the same but for the time at which they were compiled.
///
/// None where a program depends on more (a search measures), where an option observes the
/// compilation, and for programs that are not cached: those of GPUs, and those whose weights alone
/// exceed an entry of the cache.
std::optional<std::string> program_key(const Model& model, const InputShapes& shapes,
                                       const CompileModelOptions& options);

/// Compiled programs with their packed weights, in a folder of the user. The least recently used
/// ones are removed where there are more than kLimits says.
class ProgramCache {
 public:
  /// The number of entries bounds the time to look for the least recently used one.
  static constexpr runtime::ObjectCache::Limits kLimits = {.bytes = std::uint64_t{4} << 30,
                                                           .entries = 1024};

  /// None where the folder cannot be used: see ObjectCache::open.
  static std::optional<ProgramCache> open(const std::filesystem::path& folder);

  /// Program of a key; none where it is missing or damaged.
  std::optional<runtime::Program> find(const std::string& key) const;
  void store(const std::string& key, const runtime::Program& program) const;

 private:
  explicit ProgramCache(runtime::ObjectCache files) : files_(std::move(files)) {}
  runtime::ObjectCache files_;
};

}  // namespace tessera
