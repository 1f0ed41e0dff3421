#include "tessera/support/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tessera {
namespace {

constexpr std::size_t kAlignment = 64;

std::shared_ptr<std::byte> zeroed(std::size_t size) {
  // Large blocks come as untouched zero pages from calloc's mmap; over-allocate to align.
  if (size > static_cast<std::size_t>(-1) - kAlignment) throw std::bad_alloc();
  void* raw = std::calloc(size + kAlignment, 1);
  if (raw == nullptr) throw std::bad_alloc();
  std::shared_ptr<void> owner(raw, [](void* memory) { std::free(memory); });
  void* aligned = raw;
  std::size_t space = size + kAlignment;
  std::align(kAlignment, size, aligned, space);
  return {owner, static_cast<std::byte*>(aligned)};
}

}  // namespace

Bytes Bytes::copy(std::span<const std::byte> source) {
  Buffer buffer(source.size());
  if (!source.empty()) std::memcpy(buffer.data(), source.data(), source.size());
  return std::move(buffer).freeze();
}

Buffer::Buffer(std::size_t size) : memory_(zeroed(size)), size_(size) {}

Bytes Buffer::freeze() && {
  const std::span<const std::byte> view{memory_.get(), size_};
  return {std::move(memory_), view};
}

}  // namespace tessera
