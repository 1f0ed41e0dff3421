#pragma once

#include <fmt/format.h>

#include <vector>

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// The part of the result that one program computes, and how it walks along k.
struct MatmulTiles {
  std::int64_t m = 64, n = 64, k = 64;
  std::int64_t group = 8;  // rows of tiles that neighbouring programs share
};

enum class Activation : std::uint8_t { Identity, Relu, Gelu, Silu };

inline Val activate(const Val& x, Activation activation) {
  switch (activation) {
    case Activation::Identity: return x;
    case Activation::Relu: return maximum(x, 0.0);
    case Activation::Gelu: return 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
    case Activation::Silu: return x * sigmoid(x);
  }
  return x;
}

/// Products of bytes are added up in i32.
inline DType sum_dtype(DType dtype) {
  return is_integer(dtype) ? DType::I32 : accumulator(dtype);
}

/// Programs of a launch: matmul_programs(m, n, tiles).
inline std::int64_t matmul_programs(std::int64_t m, std::int64_t n, const MatmulTiles& tiles) {
  return cdiv(m, tiles.m) * cdiv(n, tiles.n);
}

/// One tile of a[m, k] · b[k, n], from row `m` and column `n` on.
inline Val product(const View& a, const View& b, const Val& m, const Val& n,
                   const MatmulTiles& tiles) {
  Val sum = zeros({tiles.m, tiles.n}, sum_dtype(a.dtype()));
  for (const Val k : range(0, a.dim(1), tiles.k)) {
    const Val left = a.load({m, k}, {tiles.m, tiles.k});
    sum = dot(left, b.load({k, n}, {tiles.k, tiles.n}), sum);
  }
  return sum;
}

/// c = a · b.
inline Expected<Kernel> matmul(DType dtype, DType result, const MatmulTiles& tiles) {
  const Extents any = {kDynamic, kDynamic};
  return kernel("matmul", {view("a", dtype, any), view("b", dtype, any), view("c", result, any)},
                [&](const View& a, const View& b, const View& c) {
                  const auto [row, column] = swizzle2d(program_id(0), cdiv(c.dim(0), tiles.m),
                                                       cdiv(c.dim(1), tiles.n), tiles.group);
                  const Val m = row * tiles.m, n = column * tiles.n;
                  c.store({m, n}, product(a, b, m, n, tiles));
                });
}

/// c = activation(a · b + bias): what follows the product is done on the tile before it is stored.
inline Expected<Kernel> matmul_bias(DType dtype, const MatmulTiles& tiles, Activation activation) {
  const Extents any = {kDynamic, kDynamic};
  return kernel("matmul_bias",
                {view("a", dtype, any), view("b", dtype, any), view("bias", dtype, {kDynamic}),
                 view("c", dtype, any)},
                [&](const View& a, const View& b, const View& bias, const View& c) {
                  const auto [row, column] = swizzle2d(program_id(0), cdiv(c.dim(0), tiles.m),
                                                       cdiv(c.dim(1), tiles.n), tiles.group);
                  const Val m = row * tiles.m, n = column * tiles.n;
                  const Val sum = product(a, b, m, n, tiles) + bias.load({n}, {tiles.n});
                  c.store({m, n}, activate(sum, activation));
                });
}

/// The same product through pointers and masks, with strides of its own for each matrix.
inline Expected<Kernel> matmul_pointers(DType dtype, const MatmulTiles& tiles) {
  return kernel(
      "matmul_pointers",
      {pointer("a", dtype), pointer("b", dtype), pointer("c", dtype), number("m"), number("n"),
       number("k"), number("a_m"), number("a_k"), number("b_k"), number("b_n"), number("c_m"),
       number("c_n")},
      [&](const Val& a, const Val& b, const Val& c, const Val& m, const Val& n, const Val& k,
          const Val& a_m, const Val& a_k, const Val& b_k, const Val& b_n, const Val& c_m,
          const Val& c_n) {
        const auto [row, column] =
            swizzle2d(program_id(0), cdiv(m, tiles.m), cdiv(n, tiles.n), tiles.group);
        const Val rows = row * tiles.m + arange(0, tiles.m);
        const Val columns = column * tiles.n + arange(0, tiles.n);
        const Val depth = arange(0, tiles.k);

        Val a_at = a + (rows[{All, None}] * a_m + depth[{None, All}] * a_k);
        Val b_at = b + (depth[{All, None}] * b_k + columns[{None, All}] * b_n);
        Val sum = zeros({tiles.m, tiles.n}, sum_dtype(dtype));
        for (const Val first : range(0, k, tiles.k)) {
          const Val inside = depth < k - first;
          const Val left = load(a_at, rows[{All, None}] < m && inside[{None, All}], 0);
          const Val right = load(b_at, inside[{All, None}] && columns[{None, All}] < n, 0);
          sum = dot(left, right, sum);
          a_at += tiles.k * a_k;
          b_at += tiles.k * b_k;
        }
        const Val c_at = c + (rows[{All, None}] * c_m + columns[{None, All}] * c_n);
        store(c_at, sum, rows[{All, None}] < m && columns[{None, All}] < n);
      });
}

/// c = a · b with b packed ahead in panels of `panel` columns: b[n / panel, k, panel]. What a tile
/// needs of b then lies close together. `tiles.n` is a multiple of `panel`.
inline Expected<Kernel> matmul_packed(DType dtype, const MatmulTiles& tiles, std::int64_t panel) {
  if (panel < 1 || tiles.n % panel != 0) {
    return Diagnostic{.id = "example-tiles",
                      .message = fmt::format("tiles of {} columns, panels of {}", tiles.n, panel),
                      .note = "a tile is a whole number of panels"};
  }
  const Extents any = {kDynamic, kDynamic};
  return kernel(
      "matmul_packed",
      {view("a", dtype, any), view("b", dtype, {kDynamic, kDynamic, panel}), view("c", dtype, any)},
      [&](const View& a, const View& b, const View& c) {
        const std::int64_t panels = tiles.n / panel;
        const auto [row, column] =
            swizzle2d(program_id(0), cdiv(c.dim(0), tiles.m), cdiv(c.dim(1), tiles.n), tiles.group);
        const Val m = row * tiles.m, n = column * tiles.n;
        Val sum = zeros({tiles.m, tiles.n}, sum_dtype(dtype));
        for (const Val k : range(0, a.dim(1), tiles.k)) {
          const Val packed = b.load({column * panels, k, 0}, {panels, tiles.k, panel});
          const Val right = reshape(permute(packed, {1, 0, 2}), {tiles.k, tiles.n});
          sum = dot(a.load({m, k}, {tiles.m, tiles.k}), right, sum);
        }
        c.store({m, n}, sum);
      });
}

/// b[k, n], row by row, as matmul_packed wants it; the last panel is filled up with zeros.
template <class T>
std::vector<T> packed(const std::vector<T>& b, std::int64_t k, std::int64_t n, std::int64_t panel) {
  std::vector<T> panels(static_cast<std::size_t>(cdiv(n, panel) * k * panel));
  for (std::int64_t row = 0; row < k; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const std::int64_t at = (column / panel * k + row) * panel + column % panel;
      panels[static_cast<std::size_t>(at)] = b[static_cast<std::size_t>(row * n + column)];
    }
  }
  return panels;
}

}  // namespace tessera::tile::examples
