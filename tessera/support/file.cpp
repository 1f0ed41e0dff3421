#include "tessera/support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <streambuf>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

Diagnostic unreadable(const std::filesystem::path& path, const std::string& why) {
  return {.id = "file-unreadable", .where = {.file = path.string()}, .message = why};
}

Diagnostic unwritable(const std::filesystem::path& path, const std::string& why) {
  return {.id = "file-unwritable", .where = {.file = path.string()}, .message = why};
}

/// RAII file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
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

/// Output stream buffer over a file descriptor that keeps the errno of a failed write.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int file) : file_(file) { setp(buffer_.data(), std::end(buffer_)); }
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (size < epptr() - pptr()) return std::streambuf::xsputn(text, size);
    return sync() == 0 && write({text, static_cast<std::size_t>(size)}) ? size : 0;
  }
  int sync() override {
    const std::string_view waiting(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(buffer_.data(), std::end(buffer_));
    return write(waiting) ? 0 : -1;
  }

 private:
  bool write(std::string_view text) {
    while (error_ == 0 && !text.empty()) {
      const ssize_t count = ::write(file_, text.data(), text.size());
      if (count > 0)
        text.remove_prefix(static_cast<std::size_t>(count));
      else if (count == 0 || errno != EINTR)
        error_ = count == 0 ? EIO : errno;
    }
    return error_ == 0;
  }

  int file_, error_ = 0;
  std::array<char, 1 << 14> buffer_;
};

/// Writes the content; 0 or an errno.
int write_content(int file, const std::function<void(std::ostream&)>& content) {
  DescriptorBuffer buffer(file);
  std::ostream out(&buffer);
  content(out);
  out.flush();
  return buffer.error() == 0 && !out ? EIO : buffer.error();
}

/// Writes into a device or pipe without replacing it: `-o /dev/null`, `-o /dev/stdout`.
Expected<Done> write_into(const std::filesystem::path& path, mode_t mode,
                          const std::function<void(std::ostream&)>& content) {
  if (S_ISDIR(mode)) return unwritable(path, std::strerror(EISDIR));
  if (!S_ISCHR(mode) && !S_ISFIFO(mode)) return unwritable(path, "not a regular file");
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  const int error = *file < 0 ? errno : write_content(*file, content);
  if (error != 0) return unwritable(path, std::strerror(error));
  return Done{};
}

/// Target of a chain of symbolic links, whether it exists or not.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux; more of them are a cycle
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

/// Temporary file in a folder, removed on destruction unless it is kept.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~Temporary() {
    if (exists_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Creates the file under an unused name; returns the result of `make`, negative with errno set
  /// on failure.
  template <class Make>
  int take(Make make) {
    constexpr int kMostNames = 1000;  // of threads at the same time, and of killed processes
    for (int i = 0; i < kMostNames; ++i) {
      path_ = folder_ / fmt::format(".tessera-{}-{}", static_cast<long>(::getpid()), i);
      const int made = make(path_.c_str());
      exists_ = made >= 0;
      if (exists_ || errno != EEXIST) return made;
    }
    return -1;
  }

  const std::filesystem::path& path() const { return path_; }
  void keep() { exists_ = false; }

 private:
  std::filesystem::path folder_, path_;
  bool exists_ = false;
};

/// Flushes a folder's entries to disk; 0 or an errno. Some file systems do not support it, which is
/// not an error.
int sync_folder(const std::filesystem::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*file < 0 || ::fsync(*file) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
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
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) return write_into(path, info.st_mode, content);
  const std::filesystem::path target = behind_links(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const auto fail = [&](int error) { return unwritable(path, std::strerror(error)); };

  // Creates an unnamed file (O_TMPFILE) where the file system supports it: a process that is killed
  // leaves nothing behind.
  Temporary temporary(folder);
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  const std::string by_number = fmt::format("/proc/self/fd/{}", *file);
  const bool unnamed = ::access(by_number.c_str(), W_OK) == 0;
  if (!unnamed) {
    file = Descriptor(temporary.take([](const char* name) {
      return ::open(name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0666);
    }));
    if (*file < 0) return fail(errno);
  }
  if (exists && ::fchmod(*file, info.st_mode & 0777) != 0) return fail(errno);
  if (const int error = write_content(*file, content); error != 0) return fail(error);
  if (::fsync(*file) != 0) return fail(errno);
  if (unnamed && temporary.take([&](const char* name) {
        return ::linkat(AT_FDCWD, by_number.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
      }) < 0)
    return fail(errno);
  if (::rename(temporary.path().c_str(), target.c_str()) != 0) return fail(errno);
  temporary.keep();
  if (const int error = sync_folder(folder); error != 0) return fail(error);
  return Done{};
}

std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return name.empty() || name.starts_with('.') ? "_" + name : name;
}

}  // namespace tessera
