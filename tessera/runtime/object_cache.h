#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Object code on disk, found by what it was made from. The key is stored in the entry and
/// compared, so that neither a collision nor a damaged file is ever run. The folder belongs to the
/// user alone (0700, no links); entries are written beside their place and renamed, so that writers
/// at the same time and a process that is killed leave nothing half.
class ObjectCache {
 public:
  /// Makes the folder if it is not there; a folder that is a link, that others may write to or that
  /// belongs to another user is a diagnostic (`cache-unsafe`).
  static Expected<ObjectCache> open(std::filesystem::path folder);
  /// Nothing where no folder is named: then nothing is kept.
  static Expected<std::optional<ObjectCache>> open_unless_empty(
      const std::filesystem::path& folder);

  /// What was stored under this key; nothing where there is none or it is damaged.
  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  /// Stores it; a disk that is full or read-only is not an error, only slower next time.
  void store(std::string_view key, std::span<const std::byte> object) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit ObjectCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace tessera::runtime
