#pragma once

#include <limits>

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// Each row of x[rows, columns] made positive with sum 1. A tile holds a row, so the width is part
/// of the kernel; launching it on rows of another width is refused. Grid: rows.
inline Expected<Kernel> softmax(DType dtype, std::int64_t columns) {
  const Extents shape = {kDynamic, columns};
  return kernel("softmax", {view("x", dtype, shape), view("out", dtype, shape)},
                [&](const View& x, const View& out) {
                  const Val row = program_id(0);
                  const Val values = x.load({row, 0}, {1, columns}).to(accumulator(dtype));
                  // Without the greatest value no exponential overflows, and the result is equal.
                  const Val powers = exp(values - max(values, 1, Dims::Keep));
                  out.store({row, 0}, powers * (1.0 / sum(powers, 1, Dims::Keep)));
                });
}

/// The same for rows of any width, in two passes of tiles: the sum is kept relative to the greatest
/// value so far. Grid: rows.
inline Expected<Kernel> online_softmax(DType dtype, std::int64_t block) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const Extents shape = {kDynamic, kDynamic};
  return kernel(
      "online_softmax", {view("x", dtype, shape), view("out", dtype, shape)},
      [&](const View& x, const View& out) {
        const Val row = program_id(0), columns = x.dim(1);
        const auto values = [&](const Val& column) {
          return x.load({row, column}, {1, block}, kLowest).to(accumulator(dtype));
        };

        // Finite, so that a tile of nothing but -inf is no -inf - -inf.
        Val greatest = full({1, 1}, std::numeric_limits<float>::lowest(), accumulator(dtype));
        Val total = zeros({1, 1}, accumulator(dtype));
        for (const Val column : range(0, columns, block)) {
          const Val tile = values(column);
          const Val now = maximum(greatest, max(tile, 1, Dims::Keep));
          total = total * exp(greatest - now) + sum(exp(tile - now), 1, Dims::Keep);
          greatest = now;
        }
        const Val scale = 1.0 / total;
        for (const Val column : range(0, columns, block))
          out.store({row, column}, exp(values(column) - greatest) * scale);
      });
}

}  // namespace tessera::tile::examples
