#include "tessera/runtime/object_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "tessera/support/bytes.h"
#include "tessera/support/hash.h"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;

/// RAII file descriptor.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&&) = delete;

  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

  std::optional<struct stat> status() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return std::nullopt;
    return status;
  }

 private:
  int descriptor_;
};

File open_folder(const fs::path& folder) {
  return File(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_private(const std::optional<struct stat>& status) {
  return status && status->st_uid == geteuid() && (status->st_mode & 07777) == 0700;
}

/// Opens the folder after checking that only this user can write to it.
File open_private(const fs::path& folder) {
  File file = open_folder(folder);
  if (file && is_private(file.status())) return file;
  return File(-1);
}

// An entry is this head, the key, zeros up to a multiple of kAlignment, the object, and a hash of
// all of these.
struct Head {
  char magic[8] = {'T', 'E', 'S', 'S', 'O', 'B', 'J', '2'};
  std::uint64_t key_bytes = 0, object_bytes = 0;
};

std::size_t object_offset(std::string_view key) {
  constexpr std::size_t kUnit = ObjectCache::kAlignment;
  return (sizeof(Head) + key.size() + kUnit - 1) / kUnit * kUnit;
}

std::string name_of(std::string_view key) {
  Hasher hasher;
  hasher.add_text(key);
  return fmt::format("{:016x}.o", hasher.value());
}

/// Head and key of an entry, which precede the object.
std::vector<std::byte> prefix_of(std::string_view key, std::size_t object_bytes) {
  Head head;
  head.key_bytes = key.size();
  head.object_bytes = object_bytes;
  std::vector<std::byte> prefix(object_offset(key));
  std::memcpy(prefix.data(), &head, sizeof head);
  std::memcpy(prefix.data() + sizeof head, key.data(), key.size());
  return prefix;
}

std::uint64_t checksum(std::span<const std::byte> prefix, std::span<const std::byte> object) {
  Hasher hasher;
  hasher.add_bytes(prefix);
  hasher.add_bytes(object);
  return hasher.value();
}

/// Object of an entry that is complete and has this key.
std::optional<Bytes> object_in(const Bytes& entry, std::string_view key) {
  std::uint64_t sum = 0;
  const std::size_t offset = object_offset(key);
  if (entry.size() < offset + sizeof sum) return std::nullopt;
  Bytes object = entry.slice(offset, entry.size() - offset - sizeof sum);
  const std::vector<std::byte> prefix = prefix_of(key, object.size());
  if (std::memcmp(entry.data(), prefix.data(), offset) != 0) return std::nullopt;
  std::memcpy(&sum, entry.data() + offset + object.size(), sizeof sum);
  if (sum != checksum(prefix, object.view())) return std::nullopt;
  return object;
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<Bytes> read_all(int descriptor, std::size_t size) {
  Buffer bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(descriptor, bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<std::size_t>(count);
  }
  return std::move(bytes).freeze();
}

/// Entries of a folder, drafts included, with the times of their last use.
struct UsedEntry {
  std::int64_t seconds = 0, nanoseconds = 0;
  std::string name;
  std::uint64_t bytes = 0;
  auto operator<=>(const UsedEntry&) const = default;
};

std::vector<UsedEntry> entries_of(const fs::path& path, const File& folder) {
  std::vector<UsedEntry> entries;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    struct stat status {};
    std::string name = at->path().filename().string();
    if (fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    entries.push_back({.seconds = status.st_mtim.tv_sec,
                       .nanoseconds = status.st_mtim.tv_nsec,
                       .name = std::move(name),
                       .bytes = static_cast<std::uint64_t>(status.st_size)});
  }
  return entries;
}

Diagnostic unsafe(const fs::path& folder, std::string message) {
  return {.id = "cache-unsafe",
          .where = {.file = folder.string()},
          .message = std::move(message),
          .note = "the code in a cache is run: only its owner may be able to write there",
          .help = "choose another folder, or make it yours alone: chmod 700"};
}

}  // namespace

Expected<std::optional<ObjectCache>> ObjectCache::open_unless_empty(const fs::path& folder) {
  if (folder.empty()) return std::optional<ObjectCache>();
  TESSERA_TRY(ObjectCache cache, open(folder));
  return std::optional(std::move(cache));
}

Expected<ObjectCache> ObjectCache::open(fs::path folder) {
  folder = folder.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // `cache/`: a link would be followed
  std::error_code error;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  const bool made = ::mkdir(folder.c_str(), 0700) == 0;
  const int why_not = errno;
  if (!made && why_not == EEXIST && fs::is_symlink(folder, error))
    return unsafe(folder, "the folder of the cache is a link");
  const File file = open_folder(folder);
  if (!file)
    return Diagnostic{.id = "cache-unusable",
                      .where = {.file = folder.string()},
                      .message = fmt::format("this is no folder for a cache: {}",
                                             std::system_category().message(
                                                 made || why_not == EEXIST ? errno : why_not)),
                      .help = "choose a folder that can be made or is yours"};
  const auto status = file.status();
  if (!status || status->st_uid != geteuid())
    return unsafe(folder, "the folder of the cache belongs to another user");
  if (!is_private(status))
    return unsafe(folder, fmt::format("the folder of the cache has mode {:04o}, not 0700",
                                      status->st_mode & 07777));
  return ObjectCache(std::move(folder));
}

std::optional<std::vector<std::byte>> ObjectCache::find(std::string_view key) const {
  const std::optional<Bytes> object = find_bytes(key);
  if (!object) return std::nullopt;
  return std::vector<std::byte>(object->view().begin(), object->view().end());
}

std::optional<Bytes> ObjectCache::find_bytes(std::string_view key) const {
  const File folder = open_private(folder_);
  if (!folder) return std::nullopt;
  const std::string name = name_of(key);
  const File file(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return std::nullopt;
  const auto status = file.status();
  if (!status || !S_ISREG(status->st_mode) || status->st_uid != geteuid()) return std::nullopt;
  const auto size = static_cast<std::size_t>(status->st_size);
  if (size > kMostEntryBytes) return std::nullopt;
  const auto entry = read_all(file.get(), size);
  std::optional<Bytes> object = entry ? object_in(*entry, key) : std::nullopt;
  // The time of the last change is that of the last use, for trim(); a read-only disk keeps it.
  if (object) futimens(file.get(), nullptr);
  return object;
}

void ObjectCache::store(std::string_view key, std::span<const std::byte> object) const {
  const std::vector<std::byte> prefix = prefix_of(key, object.size());
  const std::uint64_t sum = checksum(prefix, object);
  const File folder = open_private(folder_);
  if (!folder || prefix.size() + object.size() + sizeof sum > kMostEntryBytes) return;

  // No fsync: an entry damaged by a power failure is detected by its checksum and rebuilt. One
  // temporary file per entry: the holder of its lock writes it, concurrent writers skip. A killed
  // process releases the lock, and its temporary file is overwritten.
  const std::string name = name_of(key), draft_name = name + ".draft";
  const File draft(::openat(folder.get(), draft_name.c_str(),
                            O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!draft || flock(draft.get(), LOCK_EX | LOCK_NB) != 0) return;
  // Between opening and locking, the temporary file may have been renamed to an entry by another
  // process.
  struct stat now {};
  const auto locked = draft.status();
  if (!locked || fstatat(folder.get(), draft_name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 ||
      now.st_ino != locked->st_ino || !S_ISREG(locked->st_mode) || locked->st_nlink != 1)
    return;
  if (ftruncate(draft.get(), 0) != 0 || !write_all(draft.get(), prefix) ||
      !write_all(draft.get(), object) ||
      !write_all(draft.get(), std::as_bytes(std::span(&sum, 1))) ||
      renameat(folder.get(), draft_name.c_str(), folder.get(), name.c_str()) != 0)
    unlinkat(folder.get(), draft_name.c_str(), 0);
}

void ObjectCache::trim(const Limits& limits) const {
  const File folder = open_private(folder_);
  if (!folder) return;
  std::vector<UsedEntry> entries = entries_of(folder_, folder);
  std::uint64_t bytes = 0, count = entries.size();
  for (const UsedEntry& entry : entries) bytes += entry.bytes;
  std::ranges::sort(entries);
  for (const UsedEntry& entry : entries) {
    if (bytes <= limits.bytes && count <= limits.entries) return;
    if (unlinkat(folder.get(), entry.name.c_str(), 0) != 0) continue;
    bytes -= entry.bytes;
    --count;
  }
}

}  // namespace tessera::runtime
