#include "tessera/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "tessera/support/file.h"

namespace tessera::onnx {
namespace {

Diagnostic refused(std::string message, std::string help = {}) {
  return {.id = "onnx-external-data", .message = std::move(message), .help = std::move(help)};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }

 private:
  int number_;
};

Expected<std::uint64_t> number_of(const std::string& key, const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end)
    return refused(
        fmt::format("the {} of external data is \"{}\", not a number of bytes", key, text));
  return number;
}

Expected<Done> check_location(const std::string& location) {
  if (location.empty()) return refused("external data has no location");
  if (location.find('\0') != std::string::npos)
    return refused("the location of external data contains a zero byte");
  const std::filesystem::path path(location);
  bool inside = !path.is_absolute();
  for (const auto& component : path) inside = inside && component != "..";
  if (inside) return Done{};
  return refused(
      fmt::format("external data at \"{}\" lies outside of the model's folder", location),
      "move the file into the model's folder and name it without \"..\"");
}

}  // namespace

Expected<Bytes> ExternalData::read(const ExternalRange& range, std::uint64_t size) {
  TESSERA_TRY_DONE(check_location(range.location));
  std::uint64_t offset = 0;
  if (range.offset) {
    TESSERA_TRY(offset, number_of("offset", *range.offset));
  }
  if (range.length) {
    TESSERA_TRY(const std::uint64_t length, number_of("length", *range.length));
    if (length != size)
      return refused(
          fmt::format("external data has {} bytes, but its shape asks for {}", length, size));
  }
  TESSERA_TRY(const Bytes file, map(range.location));
  if (offset > file.size() || size > file.size() - offset)
    return refused(fmt::format("{} bytes at offset {} exceed \"{}\", which has {}", size, offset,
                               range.location, file.size()),
                   "the file may have been cut off while it was copied");
  return file.slice(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

Expected<Bytes> ExternalData::map(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;

  // Each component is opened relative to the one before, so that no link can be slipped in between
  // looking and opening.
  constexpr int look = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  Descriptor at(::open(folder_.empty() ? "." : folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  for (const auto& component : std::filesystem::path(location)) {
    if (component.empty()) continue;
    if (at.number() >= 0) at = Descriptor(::openat(at.number(), component.c_str(), look));
    if (at.number() < 0 || ::fstat(at.number(), &info) != 0)
      return refused(fmt::format("external data at \"{}\" cannot be opened: {}", location,
                                 std::strerror(errno)),
                     "keep the files of weights beside the model");
    if (S_ISLNK(info.st_mode))
      return refused(
          fmt::format("external data at \"{}\" is reached through the symbolic link \"{}\"",
                      location, component.string()),
          "replace the link by the file");
  }
  if (!S_ISREG(info.st_mode))
    return refused(fmt::format("external data at \"{}\" is not a regular file", location));
  // The name that the system gives to what was just looked at.
  TESSERA_TRY(Bytes bytes, map_file(fmt::format("/proc/self/fd/{}", at.number())));
  return files_.emplace(location, std::move(bytes)).first->second;
}

}  // namespace tessera::onnx
