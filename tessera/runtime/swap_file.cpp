#include "tessera/runtime/swap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace tessera::runtime {
namespace {

Diagnostic failed(const char* why, const std::filesystem::path& folder = {}) {
  return {.id = "program-swap",
          .where = {.file = folder.string()},
          .message = why,
          .note = "a program with a memory limit keeps a part of its memory in a temporary file",
          .help = "give it room there, or compile the model without the limit"};
}

int open_unnamed(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = (folder / "tessera-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

/// Repeats a system call that may transfer fewer bytes than requested.
template <class Memory, class Move>
Expected<Done> move_all(Memory memory, std::int64_t offset, Move move) {
  while (!memory.empty()) {
    const ssize_t moved = move(memory.data(), memory.size(), offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return failed(moved < 0 ? std::strerror(errno) : "the file ends");
    memory = memory.subspan(static_cast<std::size_t>(moved));
    offset += moved;
  }
  return Done{};
}

}  // namespace

Expected<SwapFile> SwapFile::create(const std::filesystem::path& folder, std::int64_t bytes) {
  SwapFile swap(open_unnamed(folder));
  if (swap.file_ < 0) return failed(std::strerror(errno), folder);
  // Preallocates where the file system can, so that a full disk is detected now.
  if (::fallocate(swap.file_, 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    return failed(std::strerror(errno), folder);
  const auto size = static_cast<std::size_t>(bytes);
  if (::ftruncate(swap.file_, bytes) != 0) return failed(std::strerror(errno), folder);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, swap.file_, 0);
  if (memory == MAP_FAILED) return failed(std::strerror(errno), folder);
  swap.memory_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                            [size](std::byte* at) { ::munmap(at, size); });
  return swap;
}

SwapFile::SwapFile(SwapFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), memory_(std::move(other.memory_)) {}

SwapFile::~SwapFile() {
  if (file_ >= 0) ::close(file_);
}

Expected<Done> SwapFile::write(std::span<const std::byte> memory, std::int64_t offset) {
  return move_all(memory, offset, [&](const std::byte* data, std::size_t size, std::int64_t at) {
    return ::pwrite(file_, data, size, at);
  });
}

Expected<Done> SwapFile::read(std::span<std::byte> memory, std::int64_t offset) {
  return move_all(memory, offset, [&](std::byte* data, std::size_t size, std::int64_t at) {
    return ::pread(file_, data, size, at);
  });
}

}  // namespace tessera::runtime
