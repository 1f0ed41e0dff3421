#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Unnamed temporary file for swapped activations; it disappears with the process.
class SwapFile {
 public:
  /// Creates a file of so many bytes in the folder; a diagnostic where there is no room.
  static Expected<SwapFile> create(const std::filesystem::path& folder, std::int64_t bytes);
  ~SwapFile();
  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&&) = delete;
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  /// The whole file, mapped; valid as long as this object lives.
  std::byte* memory() const { return memory_.get(); }

  Expected<Done> write(std::span<const std::byte> memory, std::int64_t offset);
  Expected<Done> read(std::span<std::byte> memory, std::int64_t offset);

 private:
  explicit SwapFile(int file) : file_(file) {}
  int file_ = -1;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace tessera::runtime
