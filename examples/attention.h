#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// How a tile of scores lies. Columns of queries: keys are read as they lie, and a maximum is taken
/// of many columns at once, as vectors do. Rows of queries: a row stays in the threads of a warp,
/// and powers in the registers where the next product reads them, as matrix units do.
enum class Scores : std::uint8_t { Columns, Rows };

struct AttentionTiles {
  std::int64_t queries = 32, keys = 128;
  Scores scores = Scores::Columns;
};

enum class Mask : std::uint8_t { None, Causal };

/// softmax(q · kᵀ / sqrt(width)) · v for each head of q, k, v[heads, length, width], without ever
/// holding all scores: the softmax is kept up to date while tiles of keys go by (Dao et al.,
/// "FlashAttention", 2022). Causal: a query sees the keys up to its own position, and the loop ends
/// there. Grid: cdiv(length, tiles.queries) × heads.
inline Expected<Kernel> attention(DType dtype, std::int64_t width, const AttentionTiles& tiles,
                                  Mask mask) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(width));
  const Extents shape = {kDynamic, kDynamic, width};
  const DType wide = accumulator(dtype);
  return kernel(
      mask == Mask::Causal ? "causal_attention" : "attention",
      {view("q", dtype, shape), view("k", dtype, shape), view("v", dtype, shape),
       view("out", dtype, shape)},
      [&](const View& q, const View& k, const View& v, const View& out) {
        const Val head = program_id(1), first = program_id(0) * tiles.queries;
        const Val length = k.dim(1);
        const auto rows = [&](const View& x, const Val& at, std::int64_t count) {
          return reshape(x.load({head, at, 0}, {1, count, width}), {count, width});
        };

        // Powers of 2 are cheaper than of e. The factor goes into the queries, or where a row's
        // greatest score is subtracted.
        const bool by_rows = tiles.scores == Scores::Rows;
        const int axis = by_rows ? 1 : 0;  // of keys
        const auto along = [&](const Val& x) { return by_rows ? x[{All, None}] : x[{None, All}]; };
        const auto across = [&](const Val& x) { return by_rows ? x[{None, All}] : x[{All, None}]; };
        const Val given = rows(q, first, tiles.queries);
        const Val query = by_rows ? given : (trans(given).to(wide) * scale).to(dtype);
        Val greatest = full({tiles.queries}, kLowest, wide), total = zeros({tiles.queries}, wide);
        Val result = zeros({tiles.queries, width}, wide);

        // The keys from `from` to `to`, so many at a time; some may be out of sight.
        const auto attend = [&](const Val& from, const Val& to, std::int64_t count, bool hidden) {
          for (const Val at : range(from, to, count)) {
            const Val key_rows = rows(k, at, count);
            Val scores = by_rows ? dot(query, trans(key_rows)) : dot(key_rows, query);
            if (hidden) {
              const Val key = across(at + arange(0, count));
              const Val position = along(first + arange(0, tiles.queries));
              const Val seen = mask == Mask::Causal ? key <= position : key < length;
              scores = where(seen, scores, kLowest);
            }
            const Val top = max(scores, axis);
            const Val now = maximum(greatest, by_rows ? top * scale : top);
            const Val fade = exp2(greatest - now);
            const Val powers =
                exp2(by_rows ? fma(scores, scale, -along(now)) : scores - along(now));
            total = total * fade + sum(powers, axis);
            const Val weights = (by_rows ? powers : trans(powers)).to(dtype);
            result = dot(weights, rows(v, at, count), result * fade[{All, None}]);
            greatest = now;
          }
        };

        // Whole tiles that all queries see, then the rest.
        if (mask == Mask::Causal) {
          const Val whole = first / tiles.keys * tiles.keys;
          const Val end = minimum(first + tiles.queries, length);
          attend(0, whole, tiles.keys, false);
          if (by_rows) {
            attend(whole, end, tiles.keys, true);
          } else {
            attend(whole, first, tiles.queries, false);
            attend(first, end, tiles.queries, true);
          }
        } else {
          const Val whole = length / tiles.keys * tiles.keys;
          attend(0, whole, tiles.keys, false);
          attend(whole, length, tiles.keys, true);
        }
        const Val share = 1.0 / total;
        out.store({head, first, 0},
                  reshape(result * share[{All, None}], {1, tiles.queries, width}));
      });
}

}  // namespace tessera::tile::examples
