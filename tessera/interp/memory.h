#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera::interp {

/// Allocator with a limit on the memory alive at one time.
class Memory {
 public:
  explicit Memory(std::int64_t limit)
      : limit_(limit), used_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

  /// Writable memory; it counts until the last copy of the frozen bytes is gone.
  class Block {
   public:
    std::byte* data() { return buffer_.data(); }
    Bytes freeze() &&;

   private:
    friend class Memory;
    Block(Buffer buffer, std::shared_ptr<void> charge)
        : buffer_(std::move(buffer)), charge_(std::move(charge)) {}
    Buffer buffer_;
    std::shared_ptr<void> charge_;
  };

  /// Allocates memory for a tensor of this shape; exceeding the limit is a diagnostic.
  Expected<Block> allocate(std::span<const std::int64_t> shape, std::int64_t width);

  /// Accounts for memory that was allocated elsewhere, for as long as the result is kept.
  std::shared_ptr<void> charge(std::int64_t bytes);

  std::int64_t left() const { return limit_ - *used_; }

 private:
  std::int64_t limit_;
  std::shared_ptr<std::atomic<std::int64_t>> used_;
};

}  // namespace tessera::interp
