#include <fmt/format.h>

#include <optional>

#include "tessera/runtime/host/image/image.h"

namespace tessera::host::image {
namespace {

constexpr std::string_view kPnm = "PNM";

class Reader {
 public:
  explicit Reader(Encoded bytes) : bytes_(bytes) {}

  /// Next number, after blanks and comments; it has up to 9 digits.
  std::optional<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_, ++digits)
      if (digits < 9) value = value * 10 + (bytes_[at_] - '0');
    if (digits == 0 || digits > 9) return std::nullopt;
    return value;
  }
  /// Next digit, 0 or 1; digits need not be separated.
  std::optional<std::int64_t> bit() {
    skip_blanks();
    if (at_ == bytes_.size() || (bytes_[at_] != '0' && bytes_[at_] != '1')) return std::nullopt;
    return bytes_[at_++] - '0';
  }
  std::optional<std::int64_t> byte() {
    if (at_ == bytes_.size()) return std::nullopt;
    return bytes_[at_++];
  }

 private:
  static bool is_blank(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  void skip_blanks() {
    while (at_ < bytes_.size() && (is_blank(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#')
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }

  Encoded bytes_;
  std::size_t at_ = 2;  // after the magic number
};

}  // namespace

Expected<Image> decode_pnm(Encoded encoded, const Allocate& allocate) {
  const int kind = encoded[1] - '0';
  const bool binary = kind > 3, bitmap = kind == 1 || kind == 4, colored = kind == 3 || kind == 6;
  Reader file(encoded);
  const auto width = file.number(), height = file.number();
  const auto most = bitmap ? std::optional<std::int64_t>(1) : file.number();
  if (!width || !height || !most || *width < 1 || *height < 1 || *most < 1 || *most > 65535)
    return damaged(kPnm, "the header is not one");
  TESSERA_TRY(Image image, allocate(*height, *width));
  if (binary) file.byte();  // one blank ends the header

  const auto sample = [&]() -> std::optional<std::int64_t> {
    if (!binary) return bitmap ? file.bit() : file.number();
    const auto high = file.byte();
    if (!high || *most < 256) return high;
    const auto low = file.byte();
    return low ? std::optional(*high * 256 + *low) : std::nullopt;
  };
  const auto scaled = [&](std::int64_t value) {
    return static_cast<std::uint8_t>((value * 255 + *most / 2) / *most);
  };
  std::size_t at = 0;
  for (std::int64_t y = 0; y < *height; ++y) {
    std::int64_t bits = 0;
    for (std::int64_t x = 0; x < *width; ++x) {
      std::int64_t value = 0;
      for (int c = 0; c < 3; ++c) {
        if (c == 0 || colored) {
          std::optional<std::int64_t> next;
          if (bitmap && binary) {
            if (x % 8 == 0) {
              const auto byte = file.byte();
              if (!byte) return damaged(kPnm, "pixels are missing");
              bits = *byte;
            }
            next = (bits >> (7 - x % 8)) & 1;
          } else {
            next = sample();
          }
          if (!next || *next > *most) return damaged(kPnm, "a pixel is missing or out of range");
          value = bitmap ? 1 - *next : *next;  // a bit that is set is black
        }
        image.pixels[at++] = scaled(value);
      }
    }
  }
  return image;
}

}  // namespace tessera::host::image
