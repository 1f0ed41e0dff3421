#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tessera {

/// Reference-counted, read-only memory: a heap block or a range of a mapped file. A slice keeps the
/// whole block alive.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> view)
      : owner_(std::move(owner)), view_(view) {}

  /// Copies `source` to the heap.
  static Bytes copy(std::span<const std::byte> source);

  const std::byte* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  std::span<const std::byte> view() const { return view_; }

  /// Sub-range of the memory. The caller has checked that it lies inside.
  Bytes slice(std::size_t offset, std::size_t size) const {
    return {owner_, view_.subspan(offset, size)};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> view_;
};

/// Zero-initialized writable memory, aligned for vector loads; `freeze` turns it into Bytes without
/// a copy.
class Buffer {
 public:
  explicit Buffer(std::size_t size);

  std::byte* data() { return memory_.get(); }
  std::size_t size() const { return size_; }
  Bytes freeze() &&;

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

}  // namespace tessera
