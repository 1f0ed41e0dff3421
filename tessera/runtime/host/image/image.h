#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/support/expected.h"

/// Decoders of image files. Whatever is wrong with a file is a diagnostic.
namespace tessera::host::image {

using Encoded = std::span<const std::uint8_t>;

/// Red, green and blue of each pixel, row by row from the top.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

/// Makes an image of black pixels, or a diagnostic where it is too large.
using Allocate = std::function<Expected<Image>(std::int64_t height, std::int64_t width)>;

using Decoder = Expected<Image> (*)(Encoded encoded, const Allocate& allocate);

Expected<Image> decode_bmp(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_jpeg(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_png(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_pnm(Encoded encoded, const Allocate& allocate);

/// The file is not what its format says.
Diagnostic damaged(std::string_view format, std::string message);
/// The file is well-formed as far as one can tell, but of a kind that is not read.
Diagnostic not_read(std::string_view format, std::string message, std::string help = {});

}  // namespace tessera::host::image
