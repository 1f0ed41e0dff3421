#include <cstdio>

#include <csetjmp>

#include "tessera/runtime/host/image/image.h"

#ifdef TESSERA_JPEG
#include <jpeglib.h>
#endif

namespace tessera::host::image {

#ifdef TESSERA_JPEG
namespace {

constexpr std::string_view kJpeg = "JPEG";

/// libjpeg reports errors by longjmp, which runs no destructors: there are none between setjmp and
/// the end of a step.
struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf place;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->place, 1);
}

/// A warning, which has a negative level, means damaged data.
void on_message(j_common_ptr info, int level) {
  if (level < 0) leave(info);
}

bool read_header(jpeg_decompress_struct& info, JpegFailure& failure, Encoded encoded) {
  if (setjmp(failure.place) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, encoded.data(), static_cast<unsigned long>(encoded.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_calc_output_dimensions(&info);
  return true;
}

bool read_pixels(jpeg_decompress_struct& info, JpegFailure& failure, std::uint8_t* pixels) {
  if (setjmp(failure.place) != 0) return false;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + std::size_t{info.output_scanline} * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

Expected<Image> decode_jpeg(Encoded encoded, const Allocate& allocate) {
  JpegFailure failure = {};
  jpeg_decompress_struct info = {};
  info.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = leave;
  failure.manager.emit_message = on_message;
  struct Cleanup {
    jpeg_decompress_struct& info;
    ~Cleanup() { jpeg_destroy_decompress(&info); }
  } cleanup{info};
  if (!read_header(info, failure, encoded)) return damaged(kJpeg, failure.message);
  TESSERA_TRY(Image image, allocate(info.output_height, info.output_width));
  if (!read_pixels(info, failure, image.pixels.data())) return damaged(kJpeg, failure.message);
  return image;
}

#else

Expected<Image> decode_jpeg(Encoded, const Allocate&) {
  return not_read("JPEG", "tessera was built without libjpeg",
                  "install libjpeg62-turbo-dev and build again");
}

#endif

}  // namespace tessera::host::image
