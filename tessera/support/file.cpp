#include "tessera/support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace tessera {
namespace {

Diagnostic unreadable(const std::filesystem::path& path, const std::string& why) {
  return {.id = "file-unreadable", .where = {.file = path.string()}, .message = why};
}

Diagnostic unwritable(const std::filesystem::path& path, const std::string& why) {
  return {.id = "file-unwritable", .where = {.file = path.string()}, .message = why};
}

/// An open file, or none.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int operator*() const { return file_; }

 private:
  int file_;
};

Expected<Bytes> map(const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (file < 0) return unreadable(path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    return unreadable(path, "not a regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    ::close(file);
    return Bytes{};
  }
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  if (memory == MAP_FAILED) return unreadable(path, std::strerror(error));
  std::shared_ptr<const void> owner(
      memory, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
  return Bytes{std::move(owner), {static_cast<const std::byte*>(memory), size}};
}

}  // namespace

Expected<Bytes> map_file(const std::filesystem::path& path) {
  return map(path, 0);
}

Expected<Bytes> map_file_itself(const std::filesystem::path& path) {
  return map(path, O_NOFOLLOW);
}

Expected<std::string> read_text(const std::filesystem::path& path, std::size_t limit) {
  TESSERA_TRY(const Bytes bytes, map_file(path));
  if (bytes.size() > limit)
    return unreadable(path,
                      fmt::format("{} bytes are more than the {} read here", bytes.size(), limit));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Expected<Done> write_file(const std::filesystem::path& path,
                          const std::function<void(std::ostream&)>& content) {
  // Where the file system can, the file has no name before it is whole: a process that is killed
  // leaves nothing behind.
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  const std::string temporary =
      fmt::format("{}.tmp-{}-{}", path.string(), static_cast<long>(::getpid()), *file);
  const std::string by_number = fmt::format("/proc/self/fd/{}", *file);
  const bool unnamed = ::access(by_number.c_str(), W_OK) == 0;
  const std::string& written = unnamed ? by_number : temporary;
  const auto fail = [&](int error) {
    std::remove(temporary.c_str());
    return unwritable(path, std::strerror(error));
  };
  {
    std::ofstream out(written, std::ios::binary | std::ios::trunc);
    if (!out) return fail(errno);
    content(out);
    out.flush();
    if (!out) return fail(errno);
  }
  if (unnamed) {
    std::remove(temporary.c_str());  // of an earlier process of this number
    if (::linkat(AT_FDCWD, written.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return fail(errno);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail(errno);
  return Done{};
}

std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return name.empty() || name.starts_with('.') ? "_" + name : name;
}

}  // namespace tessera
