#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera {

/// SHA-256 (FIPS 180-4), for content addressing: equal digests have to mean equal content.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// Digest as 64 hexadecimal digits; nothing may be added afterwards.
  std::string digits();

 private:
  void mix();

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_ = {};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;  // in bytes
};

}  // namespace tessera
