#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "tessera/support/expected.h"

namespace tessera::runtime {

/// A file without a name, which is gone with the process however that ends.
class SwapFile {
 public:
  /// In the folder, which has room for so many bytes.
  static Expected<SwapFile> create(const std::filesystem::path& folder, std::int64_t bytes);
  ~SwapFile();
  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&&) = delete;
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  /// The whole file as memory, as long as this is there.
  std::byte* memory() const { return memory_.get(); }

  Expected<Done> write(std::span<const std::byte> memory, std::int64_t offset);
  Expected<Done> read(std::span<std::byte> memory, std::int64_t offset);

 private:
  explicit SwapFile(int file) : file_(file) {}
  int file_ = -1;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace tessera::runtime
