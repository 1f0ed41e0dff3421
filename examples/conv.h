#pragma once

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// The pixels and filters that one program computes: a box of images, rows and columns, which are
/// the rows of a product. All are powers of two.
struct ConvTiles {
  std::int64_t images = 2, rows = 8, columns = 8, filters = 128, channels = 64;
  std::int64_t pixels() const { return images * rows * columns; }
};

struct ConvWindow {
  std::int64_t height = 3, width = 3, stride = 1, pad = 1;
  std::int64_t channels = 64, filters = 64;
};

enum class AfterConv : std::uint8_t { Nothing, BiasRelu };

/// Programs of a launch, for a result of so many images, rows, columns and filters.
inline std::int64_t conv_programs(const Extents& result, const ConvTiles& tiles) {
  return cdiv(result[0], tiles.images) * cdiv(result[1], tiles.rows) *
         cdiv(result[2], tiles.columns) * cdiv(result[3], tiles.filters);
}

/// The box of so many pixels that leaves least of its last boxes empty.
inline ConvTiles conv_tiles(const Extents& result, std::int64_t pixels, std::int64_t filters,
                            std::int64_t channels) {
  ConvTiles best;
  std::int64_t least = 0;
  for (std::int64_t columns = pixels; columns > 0; columns /= 2) {
    for (std::int64_t rows = pixels / columns; rows > 0; rows /= 2) {
      const ConvTiles tiles = {pixels / columns / rows, rows, columns, filters, channels};
      const std::int64_t programs = conv_programs(result, tiles);
      if (least == 0 || programs < least) {
        best = tiles;
        least = programs;
      }
    }
  }
  return best;
}

/// How an image of n h w c is read, for a result of n rows columns filters: a row of the stride's
/// columns is one, so that a box of pixels has five axes, as copy engines know them; unless a tile
/// of channels would end among those of the next column.
inline Extents conv_image(const Extents& result, const ConvWindow& window, const ConvTiles& tiles) {
  const std::int64_t stride = window.stride;
  if (window.channels % tiles.channels != 0)
    return {result[0], result[1], stride, result[2], stride, window.channels};
  return {result[0], result[1], stride, result[2], stride * window.channels};
}

/// A convolution as a product that never unfolds its image: each round takes the channels of one
/// tap of the window, for all pixels of the box, and what lies outside of the image reads as 0.
///
///   image    [n, h/stride, stride, w/stride, stride · c]   as conv_image says
///   weight   [taps, c, filters], bias [filters]
///   out      [n, rows, columns, filters]
///
/// How many channels and filters there are is part of the kernel: which tap a round takes is then
/// found without a division. Grid: conv_programs.
inline Expected<Kernel> conv(DType dtype, const ConvWindow& window, const ConvTiles& tiles,
                             AfterConv after) {
  const std::int64_t stride = window.stride, taps = window.height * window.width;
  const Extents image_shape = conv_image({kDynamic, kDynamic, kDynamic}, window, tiles);
  const bool one_row = image_shape.size() == 5;
  return kernel(
      "conv",
      {view("image", dtype, image_shape),
       view("weight", dtype, {taps, window.channels, window.filters}),
       view("bias", dtype, {window.filters}),
       view("out", dtype, {kDynamic, kDynamic, kDynamic, window.filters})},
      [&](const View& image, const View& weight, const View& bias, const View& out) {
        // Neighbouring programs share pixels: filters go first.
        const std::int64_t filter_tiles = cdiv(window.filters, tiles.filters);
        const Val box = program_id(0) / filter_tiles;
        const Val filter = program_id(0) % filter_tiles * tiles.filters;
        const Val across = cdiv(out.dim(2), tiles.columns), down = cdiv(out.dim(1), tiles.rows);
        const Val column = box % across * tiles.columns;
        const Val row = box / across % down * tiles.rows;
        const Val first = box / (across * down) * tiles.images;

        // A tap `t` of the window reads row y·stride + t - pad: with a lead that makes it positive,
        // the quotient and the remainder by the stride are places along two axes.
        const std::int64_t lead = (stride - window.pad % stride) % stride;
        const std::int64_t before = (window.pad + lead) / stride;
        const std::int64_t blocks = cdiv(window.channels, tiles.channels);
        const auto pixels_at = [&](const Val& tap, const Val& channel) {
          const Val y = tap / window.width + lead, x = tap % window.width + lead;
          const Val top = row + y / stride - before, left = column + x / stride - before;
          if (one_row)
            return image.load(
                {first, top, y % stride, left, x % stride * window.channels + channel},
                {tiles.images, tiles.rows, 1, tiles.columns, tiles.channels});
          return image.load({first, top, y % stride, left, x % stride, channel},
                            {tiles.images, tiles.rows, 1, tiles.columns, 1, tiles.channels});
        };
        Val sum = zeros({tiles.pixels(), tiles.filters}, accumulator(dtype));
        for (const Val step : range(0, blocks * taps, 1)) {
          // One tap: channels go by in a line, which is easily seen to stay inside of the image.
          const Val tap = taps == 1 ? step * 0 : step / blocks;
          const Val channel = (taps == 1 ? step : step % blocks) * tiles.channels;
          const Val filters =
              weight.load({tap, channel, filter}, {1, tiles.channels, tiles.filters});
          sum = dot(reshape(pixels_at(tap, channel), {tiles.pixels(), tiles.channels}),
                    reshape(filters, {tiles.channels, tiles.filters}), sum);
        }
        if (after == AfterConv::BiasRelu)
          sum = maximum(sum + bias.load({filter}, {tiles.filters}), 0.0);
        out.store({first, row, column, filter},
                  reshape(sum, {tiles.images, tiles.rows, tiles.columns, tiles.filters}));
      });
}

}  // namespace tessera::tile::examples
