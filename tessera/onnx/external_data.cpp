#include "tessera/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

/// Whether a file lies below the folder of the model, or below that of the file that the model is a
/// link to.
bool is_beside(const std::filesystem::path& file, const std::filesystem::path& model) {
  std::error_code error;
  const auto is_below = [&](const std::filesystem::path& folder) {
    return !error && std::ranges::mismatch(folder, file).in1 == folder.end();
  };
  if (is_below(
          std::filesystem::canonical(model.has_parent_path() ? model.parent_path() : ".", error)))
    return true;
  return is_below(std::filesystem::canonical(model, error).parent_path());
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
          fmt::format("external data has {} bytes, but its shape requires {}", length, size));
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

  const auto cannot = [&](int error) {
    return refused(
        fmt::format("external data at \"{}\" cannot be opened: {}", location, std::strerror(error)),
        "keep the files of weights beside the model");
  };
  // Opens the file first and then resolves its path, so that no link can be exchanged between check
  // and use.
  const Descriptor file(::open((model_.parent_path() / location).c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0) return cannot(errno);
  const std::string by_number = fmt::format("/proc/self/fd/{}", file.number());
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(by_number, error);
  if (error) return cannot(error.value());
  if (!is_beside(target, model_))
    return refused(fmt::format("external data at \"{}\" is a symbolic link that leads to \"{}\"",
                               location, target.string()),
                   "replace the link by the file");
  if (!S_ISREG(info.st_mode))
    return refused(fmt::format("external data at \"{}\" is not a regular file", location));
  TESSERA_TRY(Bytes bytes, map_file(by_number));
  return files_.emplace(location, std::move(bytes)).first->second;
}

}  // namespace tessera::onnx
