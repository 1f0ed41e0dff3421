#include "tessera/support/digest.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tessera {

// MurmurHash3_x64_128 (Appleby); both halves depend on the whole text.
std::string digest(std::string_view text) {
  constexpr std::uint64_t c1 = 0x87c37b91114253d5ull, c2 = 0x4cf5ad432745937full;
  const auto first = [](std::uint64_t k) { return std::rotl(k * c1, 31) * c2; };
  const auto second = [](std::uint64_t k) { return std::rotl(k * c2, 33) * c1; };
  const auto finish = [](std::uint64_t k) {
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdull;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return k ^ (k >> 33);
  };
  std::uint64_t a = 0, b = 0;
  const std::size_t size = text.size();
  for (; text.size() >= 16; text.remove_prefix(16)) {
    std::uint64_t words[2];
    std::memcpy(words, text.data(), 16);
    a = (std::rotl(a ^ first(words[0]), 27) + b) * 5 + 0x52dce729;
    b = (std::rotl(b ^ second(words[1]), 31) + a) * 5 + 0x38495ab5;
  }
  std::uint64_t tail[2] = {0, 0};
  if (!text.empty()) std::memcpy(tail, text.data(), text.size());
  a ^= first(tail[0]);
  b ^= second(tail[1]);
  a ^= size;
  b ^= size;
  a += b;
  b += a;
  a = finish(a);
  b = finish(b);
  a += b;
  b += a;
  return fmt::format("{:016x}{:016x}", a, b);
}

}  // namespace tessera
