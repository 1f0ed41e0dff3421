#pragma once

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// Each row of x[rows, columns] with mean 0 and variance 1, times a weight, plus a bias. The width
/// is part of the kernel. Grid: rows.
///
/// Mean and variance come from one pass over the row, as sums of d and d², where d is the distance
/// to the row's first element: that is of the size of the spread, however large the elements are,
/// so the difference of the two sums loses nothing.
inline Expected<Kernel> layer_norm(DType dtype, std::int64_t columns) {
  const Extents rows = {kDynamic, columns}, row = {columns};
  const double count = static_cast<double>(columns);
  return kernel(
      "layer_norm",
      {view("x", dtype, rows), view("weight", dtype, row), view("bias", dtype, row),
       view("out", dtype, rows), number("eps", DType::F32)},
      [&](const View& x, const View& weight, const View& bias, const View& out, const Val& eps) {
        const Val at = program_id(0);
        const Val shift = x.load({at, 0}, {1, 1}).to(accumulator(dtype));
        const Val values = x.load({at, 0}, {1, columns}).to(accumulator(dtype));
        const Val d = values - shift;

        const Val mean = sum(d, 1, Dims::Keep) * (1 / count);
        const Val square = sum(d * d, 1, Dims::Keep) * (1 / count);
        const Val scale = rsqrt(maximum(square - mean * mean, 0.0) + eps);

        const Val normal = (values - (shift + mean)) * scale;
        out.store({at, 0}, fma(normal, weight.load({0}, {columns}), bias.load({0}, {columns})));
      });
}

}  // namespace tessera::tile::examples
