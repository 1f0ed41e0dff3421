#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera::interp {

/// Hands out memory up to a limit on what is alive at one time.
class Memory {
 public:
  explicit Memory(std::int64_t limit)
      : limit_(limit), used_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

  /// Memory that is being filled in; what becomes of it counts until its last copy is gone.
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

  /// For a tensor of this shape; beyond the limit it is a diagnostic.
  Expected<Block> allocate(std::span<const std::int64_t> shape, std::int64_t width);

  /// Counts memory that came from elsewhere, for as long as the result is kept.
  std::shared_ptr<void> charge(std::int64_t bytes);

  std::int64_t left() const { return limit_ - *used_; }

 private:
  std::int64_t limit_;
  std::shared_ptr<std::atomic<std::int64_t>> used_;
};

}  // namespace tessera::interp
