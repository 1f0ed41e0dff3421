#include <csetjmp>
#include <cstring>

#include "tessera/runtime/host/image/image.h"

#ifdef TESSERA_PNG
#include <png.h>
#endif

namespace tessera::host::image {

#ifdef TESSERA_PNG
namespace {

constexpr std::string_view kPng = "PNG";

/// libpng reports errors by longjmp, which runs no destructors: there are none between setjmp and
/// the end of a step.
struct PngReading {
  Encoded rest;
  std::jmp_buf place;
  char message[128];
  png_structp png = nullptr;
  png_infop info = nullptr;
};

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
  std::strncpy(reading->message, message, sizeof(reading->message) - 1);
  std::longjmp(reading->place, 1);
}

void ignore(png_structp, png_const_charp) {}

void copy_bytes(png_structp png, png_bytep into, png_size_t count) {
  auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
  if (count > reading->rest.size()) png_error(png, "the file ends too early");
  std::memcpy(into, reading->rest.data(), count);
  reading->rest = reading->rest.subspan(count);
}

/// Reads the header and requests three channels of 8 bits.
bool read_header(PngReading& reading) {
  if (setjmp(reading.place) != 0) return false;
  png_set_read_fn(reading.png, &reading, copy_bytes);
  png_read_info(reading.png, reading.info);
  png_set_expand(reading.png);  // palettes, fewer bits, transparent colours
  png_set_scale_16(reading.png);
  png_set_gray_to_rgb(reading.png);
  png_set_strip_alpha(reading.png);
  png_set_interlace_handling(reading.png);
  png_read_update_info(reading.png, reading.info);
  return true;
}

bool read_pixels(PngReading& reading, png_bytepp rows) {
  if (setjmp(reading.place) != 0) return false;
  png_read_image(reading.png, rows);
  png_read_end(reading.png, nullptr);
  return true;
}

}  // namespace

Expected<Image> decode_png(Encoded encoded, const Allocate& allocate) {
  PngReading reading = {.rest = encoded, .place = {}, .message = {}};
  struct Cleanup {
    PngReading& reading;
    ~Cleanup() { png_destroy_read_struct(&reading.png, &reading.info, nullptr); }
  } cleanup{reading};
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, ignore);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) return damaged(kPng, "libpng does not start");
  if (!read_header(reading)) return damaged(kPng, reading.message);
  const std::int64_t height = png_get_image_height(reading.png, reading.info);
  const std::int64_t width = png_get_image_width(reading.png, reading.info);
  if (png_get_rowbytes(reading.png, reading.info) != static_cast<std::size_t>(width) * 3)
    return not_read(kPng, "the pixels are of a kind that is not known");
  TESSERA_TRY(Image image, allocate(height, width));
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < height; ++y)
    rows.push_back(image.pixels.data() + static_cast<std::size_t>(y * width) * 3);
  if (!read_pixels(reading, rows.data())) return damaged(kPng, reading.message);
  return image;
}

#else

Expected<Image> decode_png(Encoded, const Allocate&) {
  return not_read("PNG", "tessera was built without libpng", "install libpng-dev and build again");
}

#endif

}  // namespace tessera::host::image
