#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "tessera/superopt/generate/decide.h"

namespace tessera::superopt {

/// Append-only log of decisions with checksums, to resume an interrupted generation. A truncated
/// last line is dropped; any other damage is a diagnostic.
class Checkpoint {
 public:
  /// Opens a log; `run` is a hash of what the decisions are about. Without `resume` the file is
  /// truncated.
  static Expected<std::unique_ptr<Checkpoint>> open(const std::filesystem::path& path,
                                                    std::uint64_t run, bool resume);

  std::optional<Decision> find(std::uint64_t candidate) const;
  void add(std::uint64_t candidate, const Decision& decision);

 private:
  std::map<std::uint64_t, Decision> known_;
  std::ofstream file_;
  std::mutex mutex_;
};

}  // namespace tessera::superopt
