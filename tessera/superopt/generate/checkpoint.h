#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "tessera/superopt/generate/decide.h"

namespace tessera::superopt {

/// Decisions that survive the process: a file to which each is appended, with a checksum, as it is
/// made. A last line that was cut off is taken back; any other damage is a diagnostic.
class Checkpoint {
 public:
  /// `run` says what the decisions are about. Without `resume` the file begins anew.
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
