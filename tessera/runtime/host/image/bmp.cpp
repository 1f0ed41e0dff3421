#include <fmt/format.h>

#include <array>
#include <bit>

#include "tessera/runtime/host/image/image.h"

namespace tessera::host::image {
namespace {

constexpr std::string_view kBmp = "BMP";

/// Little-endian reader; bytes beyond the end of the file are 0.
class Fields {
 public:
  explicit Fields(Encoded bytes) : bytes_(bytes) {}

  std::uint32_t byte(std::uint64_t at) const { return at < bytes_.size() ? bytes_[at] : 0; }
  std::uint32_t half(std::uint64_t at) const { return byte(at) | byte(at + 1) << 8; }
  std::uint32_t word(std::uint64_t at) const { return half(at) | half(at + 2) << 16; }

 private:
  Encoded bytes_;
};

/// Bit field of one colour of a pixel.
struct Channel {
  int shift = 0, width = 0;

  static Channel of(std::uint32_t mask) {
    if (mask == 0) return {};
    const int shift = std::countr_zero(mask);
    return {shift, static_cast<int>(std::bit_width(mask)) - shift};
  }
  std::uint8_t operator()(std::uint32_t pixel) const {
    if (width == 0) return 0;
    const std::uint64_t most = (std::uint64_t{1} << width) - 1;
    const std::uint64_t value = (std::uint64_t{pixel} >> shift) & most;
    return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
  }
};

}  // namespace

Expected<Image> decode_bmp(Encoded encoded, const Allocate& allocate) {
  const Fields file(encoded);
  const std::uint64_t data = file.word(10), header = file.word(14);
  const bool core = header == 12;  // of OS/2
  if (!core && (header < 40 || header > 124))
    return not_read(kBmp, fmt::format("the header has {} bytes", header));
  const auto size = [&](std::uint64_t short_at, std::uint64_t at) -> std::int64_t {
    if (core) return file.half(short_at);
    return static_cast<std::int32_t>(file.word(at));
  };
  const std::int64_t width = size(18, 18), stated = size(20, 22);
  const std::uint32_t bits = core ? file.half(24) : file.half(28);
  const std::uint32_t compression = core ? 0 : file.word(30);
  const bool masked = compression == 3 && (bits == 16 || bits == 32);
  if (compression != 0 && !masked)
    return not_read(kBmp, fmt::format("compression {} is not supported", compression));
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return damaged(kBmp, fmt::format("a pixel has {} bits", bits));
  const std::int64_t height = stated < 0 ? -stated : stated;
  if (width <= 0 || height <= 0)
    return damaged(kBmp, fmt::format("the size is {} x {}", width, stated));
  TESSERA_TRY(Image image, allocate(height, width));

  const std::uint64_t stride = (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  if (data > encoded.size() ||
      (encoded.size() - data) / stride < static_cast<std::uint64_t>(height))
    return damaged(kBmp, "pixels are missing");
  std::array<Channel, 3> channels;
  const std::uint32_t usual = bits == 16 ? 0x7C00 : 0xFF0000;
  for (std::uint32_t c = 0; c < 3; ++c)
    channels[c] = Channel::of(masked ? file.word(54 + 4 * c) : usual >> (bits == 16 ? 5 : 8) * c);
  const std::uint64_t palette = 14 + header, entry = core ? 3 : 4;
  const std::uint64_t stated_colors = core ? 0 : file.word(46);
  const std::uint64_t colors = stated_colors == 0 || stated_colors > 256
                                   ? std::uint64_t{1} << std::min(bits, 8u)
                                   : stated_colors;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t from = stated < 0 ? y : height - 1 - y;
    const std::uint64_t row = data + stride * static_cast<std::uint64_t>(from);
    for (std::int64_t x = 0; x < width; ++x) {
      std::uint8_t* pixel = &image.pixels[static_cast<std::size_t>((y * width + x) * 3)];
      const std::uint64_t bit = static_cast<std::uint64_t>(x) * bits;
      if (bits <= 8) {
        const std::uint32_t shift = 8 - bits - static_cast<std::uint32_t>(bit % 8);
        const std::uint64_t index = (file.byte(row + bit / 8) >> shift) & ((1u << bits) - 1);
        if (index >= colors) return damaged(kBmp, fmt::format("there is no colour {}", index));
        for (std::uint64_t c = 0; c < 3; ++c)
          pixel[c] = static_cast<std::uint8_t>(file.byte(palette + index * entry + 2 - c));
      } else {
        std::uint32_t value = file.word(row + bit / 8);
        if (bits == 16) value &= 0xFFFF;
        for (std::size_t c = 0; c < 3; ++c) pixel[c] = channels[c](value);
      }
    }
  }
  return image;
}

}  // namespace tessera::host::image
