#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tessera {

/// Order-dependent 64-bit hash that is identical on every machine and in every run.
class Hasher {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ull;
    state_ ^= state_ >> 29;
  }

  void add_bytes(std::span<const std::byte> bytes) {
    add(bytes.size());
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      add(word);
    }
    std::uint64_t tail = 0;
    if (i < bytes.size()) std::memcpy(&tail, bytes.data() + i, bytes.size() - i);
    add(tail);
  }

  void add_text(std::string_view text) { add_bytes(std::as_bytes(std::span(text))); }

  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace tessera
