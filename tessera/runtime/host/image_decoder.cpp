#include <fmt/format.h>

#include <algorithm>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"
#include "tessera/runtime/host/image/image.h"

namespace tessera::host {
namespace image {

Diagnostic damaged(std::string_view format, std::string message) {
  return {.id = "host-image_decoder",
          .message = fmt::format("the {} image is damaged: {}", format, message)};
}

Diagnostic not_read(std::string_view format, std::string message, std::string help) {
  return {.id = "image-unsupported",
          .message = fmt::format("the {} image cannot be read: {}", format, message),
          .help = std::move(help)};
}

namespace {

struct Format {
  std::string_view name;
  std::string_view magic;
  std::size_t at = 0;        // offset of the magic number
  Decoder decode = nullptr;  // none: known, but not supported
};

constexpr Format kFormats[] = {
    {"JPEG", "\xFF\xD8\xFF", 0, decode_jpeg},
    {"PNG", "\x89PNG\r\n\x1A\n", 0, decode_png},
    {"BMP", "BM", 0, decode_bmp},
    {"PNM", "P1", 0, decode_pnm},
    {"PNM", "P2", 0, decode_pnm},
    {"PNM", "P3", 0, decode_pnm},
    {"PNM", "P4", 0, decode_pnm},
    {"PNM", "P5", 0, decode_pnm},
    {"PNM", "P6", 0, decode_pnm},
    {"PAM", "P7"},
    {"TIFF", std::string_view("II*\0", 4)},
    {"TIFF", std::string_view("MM\0*", 4)},
    {"WebP", "WEBP", 8},
    {"JPEG 2000", "jP  ", 4},
    {"JPEG 2000", "\xFF\x4F\xFF\x51"},
    {"GIF", "GIF8"},
};

const Format* format_of(Encoded encoded) {
  for (const Format& format : kFormats) {
    if (encoded.size() < format.at + format.magic.size()) continue;
    const auto same = [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); };
    if (std::ranges::equal(encoded.subspan(format.at, format.magic.size()), format.magic, same))
      return &format;
  }
  return nullptr;
}

/// Luminance by ITU-R 601-2, in 16-bit fixed point.
std::uint8_t luminance(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >>
                                   16);
}

}  // namespace
}  // namespace image

Results image_decoder(const Call& call) {
  using image::Image;
  const Arguments in(call, "image_decoder");
  TESSERA_TRY(const Tensor stream, in.integer_tensor(0));
  if (stream.dtype != DType::U8 || stream.shape.size() != 1)
    return in.fault(
        fmt::format("the stream is {}{}", to_string(stream.dtype), shape_text(stream.shape)),
        "it must be a list of bytes");
  const std::string& pixel_format = in.attrs().s("pixel_format");
  const bool gray = pixel_format == "Grayscale";
  if (!gray && pixel_format != "RGB" && pixel_format != "BGR")
    return in.fault(fmt::format("pixel_format is {}", pixel_format),
                    "it must be RGB, BGR or Grayscale");
  const image::Encoded encoded = stream.as<std::uint8_t>();
  const image::Format* format = image::format_of(encoded);
  constexpr const char* kRead = "JPEG, PNG, BMP and PNM images are read";
  if (format == nullptr) return in.fault("the stream begins like no image format", kRead);
  if (format->decode == nullptr)
    return Diagnostic{.id = "image-unsupported",
                      .message = fmt::format("{} images are not supported", format->name),
                      .note = kRead};

  // No format packs more than 1032 bytes, of eight pixels each, into one.
  constexpr std::int64_t kSmallImage = std::int64_t{1} << 26, kMostPerByte = 1032 * 24;
  const std::int64_t most = kSmallImage + std::ssize(encoded) * kMostPerByte;
  const auto allocate = [&](std::int64_t height, std::int64_t width) -> Expected<Image> {
    if (height < 1 || width < 1 || height > most / 3 / width)
      return in.fault(
          fmt::format("an image of {} x {} pixels in {} bytes", width, height, encoded.size()),
          "that is more than the format can hold");
    TESSERA_TRY_DONE(in.fits(height * width, 3));
    return Image{height, width,
                 std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  };
  TESSERA_TRY(const Image decoded, format->decode(encoded, allocate));

  const std::int64_t channels = gray ? 1 : 3;
  TESSERA_TRY(Draft out, in.allocate(DType::U8, {decoded.height, decoded.width, channels}));
  for (std::int64_t i = 0; i < decoded.height * decoded.width; ++i) {
    const std::uint8_t* rgb = &decoded.pixels[static_cast<std::size_t>(i * 3)];
    for (std::int64_t c = 0; c < channels; ++c)
      out.set_integer(i * channels + c, gray                    ? image::luminance(rgb)
                                        : pixel_format == "BGR" ? rgb[2 - c]
                                                                : rgb[c]);
  }
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
