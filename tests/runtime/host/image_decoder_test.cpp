#include <algorithm>

#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

// Files that Pillow wrote. 3 x 2 pixels: red, green, blue; (10, 20, 30), white, black.
constexpr const char* kPng =
    "89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d0000001849444154789c63"
    "f8cfc0c000c15c2272ffffff67606000003da40637be5c53850000000049454e44ae426082";
// The same with an alpha of 128.
constexpr const char* kTransparentPng =
    "89504e470d0a1a0a0000000d49484452000000030000000208060000009d74661a0000002049444154789c05"
    "c1a10100200c03b0148b45efd67d5e92944d913af78d2ae20357b705bfd317f64a0000000049454e44ae4260"
    "82";
// 8 x 8 pixels of (200, 100, 50).
constexpr const char* kJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb00430003020203020203030303040303040508050504"
    "04050a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f1718161418121415"
    "14ffdb00430103040405040509050509140d0b0d141414141414141414141414141414141414141414141414"
    "1414141414141414141414141414141414141414141414141414ffc000110800080008030122000211010311"
    "01ffc4001500010100000000000000000000000000000004ffc4001410010000000000000000000000000000"
    "0000ffc4001501010100000000000000000000000000000708ffc40014110100000000000000000000000000"
    "000000ffda000c03010002110311003f0090007a907fffd9";

using Bytes8 = std::vector<std::uint8_t>;

Bytes8 from_hex(std::string_view text) {
  Bytes8 bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Bytes8 from_text(std::string_view text) {
  return {text.begin(), text.end()};
}

Tensor stream(const Bytes8& bytes) {
  return Tensor::of<std::uint8_t>(DType::U8, {std::ssize(bytes)}, bytes);
}

Tensor pixels(std::vector<std::int64_t> shape, const Bytes8& bytes) {
  return Tensor::of<std::uint8_t>(DType::U8, std::move(shape), bytes);
}

Request decoding(const Bytes8& bytes, std::string format = "RGB") {
  return {"image_decoder", {stream(bytes)}, {{"pixel_format", std::move(format)}}};
}

/// Whether the build has the library that decodes this format; if not, the image is refused by
/// name.
bool is_supported(const std::string& format, const Bytes8& image) {
  const Results result = result_of(decoding(image));
  if (result || result.error().id != "image-unsupported") return true;
  EXPECT_TRUE(result.error().message.starts_with("the " + format + " image cannot be read"));
  return false;
}

const Bytes8 kColors = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 255, 255, 255, 0, 0, 0};

/// A bitmap of 2 x 2 pixels of 24 bits, bottom row first, rows padded to 8 bytes.
Bytes8 small_bmp() {
  Bytes8 file = from_text("BM");
  const auto word = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  for (const std::uint32_t value :
       {70u, 0u, 54u, 40u, 2u, 2u, 1u | 24u << 16, 0u, 16u, 0u, 0u, 0u, 0u})
    word(value);
  for (const std::uint8_t byte : {1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0})
    file.push_back(byte);
  return file;
}

TEST(ImageDecoder, ReadsPng) {
  if (!is_supported("PNG", from_hex(kPng))) return;
  expect_result(decoding(from_hex(kPng)), pixels({2, 3, 3}, kColors));
  expect_result(decoding(from_hex(kTransparentPng)), pixels({2, 3, 3}, kColors));
}

TEST(ImageDecoder, ReadsJpegInEachPixelFormat) {
  if (!is_supported("JPEG", from_hex(kJpeg))) return;
  const auto flat = [](Bytes8 color) {
    Bytes8 all;
    for (int i = 0; i < 64; ++i) all.insert(all.end(), color.begin(), color.end());
    return all;
  };
  expect_result(decoding(from_hex(kJpeg)), pixels({8, 8, 3}, flat({200, 100, 50})));
  expect_result(decoding(from_hex(kJpeg), "BGR"), pixels({8, 8, 3}, flat({50, 100, 200})));
  expect_result(decoding(from_hex(kJpeg), "Grayscale"), pixels({8, 8, 1}, flat({124})));
}

TEST(ImageDecoder, ReadsBmp) {
  expect_result(decoding(small_bmp()), pixels({2, 2, 3}, {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4}));
  Bytes8 upside_down = small_bmp();
  for (std::size_t i = 22; i < 26; ++i) upside_down[i] = i == 22 ? 0xFE : 0xFF;  // height -2
  expect_result(decoding(upside_down), pixels({2, 2, 3}, {3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
}

TEST(ImageDecoder, ReadsPnm) {
  expect_result(decoding(from_text("P2 # gray\n3 1\n4\n0 2 4")),
                pixels({1, 3, 3}, {0, 0, 0, 128, 128, 128, 255, 255, 255}));
  expect_result(decoding(from_text("P6\n1 1\n255\nabc")), pixels({1, 1, 3}, {'a', 'b', 'c'}));
  expect_result(decoding(from_text("P1\n2 1\n10"), "Grayscale"), pixels({1, 2, 1}, {0, 255}));
  expect_result(decoding(from_text("P4\n2 1\n\x40"), "Grayscale"), pixels({1, 2, 1}, {255, 0}));
}

TEST(ImageDecoder, NamesFormatsThatItDoesNotRead) {
  const auto webp = result_of(decoding(from_text("RIFF....WEBPVP8 ")));
  ASSERT_FALSE(webp);
  EXPECT_EQ(webp.error().id, "image-unsupported");
  EXPECT_EQ(webp.error().message, "WebP images are not supported");
  expect_refused(decoding(from_text("hello")), "the stream begins like no image format");
  expect_refused(decoding({}), "the stream begins like no image format");
  expect_refused(decoding(from_hex(kPng), "YUV"), "pixel_format is YUV");
}

TEST(ImageDecoder, RefusesImagesThatAreTooLargeForTheirFile) {
  expect_refused(decoding(from_text("P6\n99999 99999\n255\nabc")),
                 "an image of 99999 x 99999 pixels in 22 bytes");
}

TEST(ImageDecoder, EndsOnDamagedFiles) {
  for (const Bytes8& file :
       {from_hex(kPng), from_hex(kTransparentPng), from_hex(kJpeg), small_bmp(),
        from_text("P3\n2 2\n255\n1 2 3 4 5 6 7 8 9 10 11 12\n")}) {
    for (std::size_t length = 0; length + 2 < file.size(); ++length)
      EXPECT_FALSE(
          result_of(decoding({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)})))
          << length;
    std::uint32_t state = 1;
    for (int round = 0; round < 3000; ++round) {
      Bytes8 damaged = file;
      for (int change = 0; change <= round % 4; ++change) {
        state = state * 1664525 + 1013904223;
        damaged[(state >> 8) % damaged.size()] = static_cast<std::uint8_t>(state >> 24);
      }
      const auto result = result_of(decoding(damaged));
      if (!result) {
        EXPECT_FALSE(result.error().message.empty());
      }
    }
  }
  const Bytes8 png = from_hex(kPng);
  EXPECT_FALSE(result_of(decoding({png.begin(), png.end() - 20})));
  const Bytes8 jpeg = from_hex(kJpeg);
  EXPECT_FALSE(result_of(decoding({jpeg.begin(), jpeg.end() - 10})));
}

}  // namespace
}  // namespace tessera::host
