#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Cache of object code on disk, keyed by everything that the code depends on. The key is stored in
/// the entry and compared, so that neither a collision nor a damaged file is ever executed. The
/// folder belongs to the user alone (0700, no links); entries are written to a temporary file and
/// renamed, so that concurrent writers and killed processes leave no partial entry.
class ObjectCache {
 public:
  /// Opens the folder, creating it if needed; a folder that is a link, is writable by others or
  /// belongs to another user is a diagnostic (`cache-unsafe`).
  static Expected<ObjectCache> open(std::filesystem::path folder);
  /// No cache where no folder is named.
  static Expected<std::optional<ObjectCache>> open_unless_empty(
      const std::filesystem::path& folder);

  /// Entry of a key; none where it is missing or damaged.
  std::optional<std::vector<std::byte>> find(std::string_view key) const;
  /// The same entry without a copy, aligned to kAlignment; it becomes the most recently used one.
  std::optional<Bytes> find_bytes(std::string_view key) const;
  /// Stores an entry; a full or read-only disk is not an error: the entry is not cached.
  void store(std::string_view key, std::span<const std::byte> object) const;
  /// Largest size of a cache.
  struct Limits {
    std::uint64_t bytes = 0, entries = 0;
  };
  /// Removes the least recently used entries until the others are within the limits.
  void trim(const Limits& limits) const;

  static constexpr std::size_t kAlignment = 64;
  /// Larger entries are neither stored nor read.
  static constexpr std::size_t kMostEntryBytes = std::size_t{1} << 30;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit ObjectCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace tessera::runtime
