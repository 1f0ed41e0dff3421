#include "tessera/support/bytes.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tessera {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::uintptr_t kHuge = 2 << 20;

/// Requests huge pages, which reduce TLB misses on weights; small pages are used if there are none.
void prefer_large_pages(void* memory, std::size_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (first + kHuge - 1) / kHuge * kHuge,
                       to = (first + size) / kHuge * kHuge;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}

std::shared_ptr<std::byte> zeroed(std::size_t size) {
  // Large blocks come as untouched zero pages from calloc's mmap; over-allocate to align.
  if (size > static_cast<std::size_t>(-1) - kAlignment) throw std::bad_alloc();
  void* raw = std::calloc(size + kAlignment, 1);
  if (raw == nullptr) throw std::bad_alloc();
  std::shared_ptr<void> owner(raw, [](void* memory) { std::free(memory); });
  void* aligned = raw;
  std::size_t space = size + kAlignment;
  std::align(kAlignment, size, aligned, space);
  prefer_large_pages(aligned, size);
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
