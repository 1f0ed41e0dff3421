#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/support/expected.h"

/// Decoders of image files (BMP, JPEG, PNG, PNM). Errors in a file are diagnostics.
namespace tessera::host::image {

using Encoded = std::span<const std::uint8_t>;

/// RGB pixels, row by row from the top.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

/// Allocator of a black image; a diagnostic where it is too large.
using Allocate = std::function<Expected<Image>(std::int64_t height, std::int64_t width)>;

using Decoder = Expected<Image> (*)(Encoded encoded, const Allocate& allocate);

Expected<Image> decode_bmp(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_jpeg(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_png(Encoded encoded, const Allocate& allocate);
Expected<Image> decode_pnm(Encoded encoded, const Allocate& allocate);

/// Diagnostic for a file that violates its format.
Diagnostic damaged(std::string_view format, std::string message);
/// Diagnostic for a valid file of an unsupported variant.
Diagnostic not_read(std::string_view format, std::string message, std::string help = {});

}  // namespace tessera::host::image
