#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tessera/lower/online_kernel.h"
#include "tessera/lower/product.h"
#include "tessera/lower/program_order.h"

namespace tessera::lower {

/// Attention over tiles of keys, the second matmul one tile late, so that it overlaps with the
/// softmax of the next tile (Shah et al., 2024, FlashAttention-3, 3.2):
///
///   weights(0) = softmax(queries * keys(0))
///   loop:   scores = queries * keys(i);  sum += weights(i - 1) * values(i - 1);
///           weights(i) = softmax(scores);  sum *= change of the rows
///   sum += weights(last) * values(last)
///
/// For blocks with producer warps, where tiles of keys and of values have buffers of their own.
/// Tiles that some row does not see whole have loops of their own, so that the others compute no
/// mask. Programs are along one axis of the grid, because blocks are persistent.
class OverlappedKernel : public OnlineKernel {
 public:
  OverlappedKernel(const Group& group, const AttentionForm& form, const OnlineAttention& online,
                   const ScoreTile& tile, DType products, std::int64_t processors)
      : OnlineKernel(group, form, online, tile, products),
        processors_(processors),
        partly_(keeps_lowest(form) ? Visible::Masked : Visible::Some) {
    along_one_axis_ = true;
    scale_ = take_scale(query_factor_) * take_scale(key_factor_);
  }

 private:
  /// Takes positive constants out of a factor of the first matmul, whose tiles are then copied as
  /// they are, without registers.
  static double take_scale(Scalar& operand) {
    ScalarProduct product = ScalarProduct::of(operand);
    double scale = 1;
    const auto take = [&](std::vector<Scalar>& factors, bool divides) {
      std::erase_if(factors, [&](const Scalar& factor) {
        const auto* constant = std::get_if<node::Constant>(&factor.node());
        if (constant == nullptr || constant->sort != Sort::Value || !(constant->number > 0) ||
            std::isinf(constant->number))
          return false;
        scale = divides ? scale / constant->number : scale * constant->number;
        return true;
      });
    };
    take(product.over, false);
    take(product.under, true);
    if (scale == 1) return 1;
    const auto rest = product.take([](const Scalar&) { return true; });
    operand = rest ? *rest : Scalar(1.0);
    return scale;
  }

  /// By the number of tiles that the last row of each block sees.
  std::int64_t heads_together(std::int64_t blocks, std::int64_t heads) const override {
    constexpr double kPerProgram = 128;  // in keys: queries, the last matmul, results
    ProgramOrder order{.heads = heads,
                       .processors = processors_,
                       .bytes_of_head = extent(form_.key) *
                                        (extent(form_.inner) + extent(form_.width)) *
                                        byte_width(products_)};
    for (std::int64_t block = blocks; block-- > 0;) {
      std::int64_t seen = extent(form_.key);
      for (const KeyBound& bound : visible_.last)
        seen = std::min(seen, bound.row_factor * ((block + 1) * rows_ - 1) + bound.rest.high + 1);
      const std::int64_t tiles = ceil_div(std::max<std::int64_t>(seen, 1), keys_);
      order.lengths.push_back(static_cast<double>(tiles * keys_) + kPerProgram);
    }
    return heads_at_a_time(order);
  }

  Value attend() override {
    const std::int64_t keys = extent(form_.key), whole = keys / keys_ * keys_,
                       most = ceil_div(keys, keys_) * keys_ - 1;
    key_range_ = {0, keys - 1};
    const Id query = queries();
    Weighted now{initial()};
    if (e_.error()) return {};
    const Id size = b_.index(keys_);
    const bool is_bounded = !visible_.last.empty() || !visible_.first.empty();
    if (!is_bounded) {
      now = first(query, now.partials, {{}, {0, keys_ - 1}, Visible::All});
      if (whole > keys_)
        now = loop(query, now, size, b_.index(whole), {{}, {0, whole - 1}, Visible::All});
      Position last = Position::constant(whole - keys_);
      if (whole < keys) {
        last = Position::constant(whole);
        now = after(query, now, {last, {whole, whole + keys_ - 1}, partly_});
      }
      return completed(now, last, {0, most});
    }
    // The first tile is masked whether or not all rows see it; then those that only some see, those
    // that all see, and again those that some see.
    const Id begin = visible_.first.empty() ? b_.index(0) : first_tile();
    now = first(query, now.partials, {scalar_position(begin), {0, most}, partly_});
    Id next = b_.add(begin, size);
    find_visible(keys);
    const auto up_to = [&](Id end, Visible visible, Range range) {
      end = b_.map(tile::Function::Max, {next, end});
      now = loop(query, now, next, end, {{}, range, visible});
      next = end;
    };
    if (!visible_.first.empty()) up_to(tiles_up_to(visible_from_), partly_, {0, most});
    if (whole > 0)
      up_to(b_.mul(b_.map(tile::Function::Div, {clamped(visible_to_, 0, whole), size}), size),
            Visible::All, {0, whole - 1});
    up_to(tiles_up_to(last_key(keys)), partly_, {0, most});
    return completed(now, *scalar_position(next).plus(Position::constant(keys_), -1), {0, most});
  }

  /// End of the tiles that keys below this one are in.
  Id tiles_up_to(Id key) {
    const Id size = b_.index(keys_);
    return b_.mul(b_.map(tile::Function::Div, {b_.add(key, b_.index(keys_ - 1)), size}), size);
  }

  Weighted first(Id query, const Partials& before, const Tiles& tiles) {
    enter_tile(tiles);
    const Value sums = scores(query);
    return e_.error() ? Weighted{before} : weighted(sums, before, tiles);
  }
  /// A tile, and the second matmul of the one before.
  Weighted after(Id query, const Weighted& before, const Tiles& tiles) {
    enter_tile(tiles);
    const Value sums = scores(query);
    Partials partials = before.partials;
    partials.sum = with_values(before, *tiles.at.plus(Position::constant(keys_), -1), tiles.range);
    enter_tile(tiles);
    return e_.error() ? before : weighted(sums, partials, tiles);
  }
  Id with_values(const Weighted& of, const Position& at, const Range& range) {
    enter_tile({at, range});
    const Id values = values_of_tile();
    return e_.error() ? of.partials.sum : *product(of.weights, values, of.partials.sum).id;
  }

  Weighted loop(Id query, const Weighted& before, Id from, Id to, Tiles tiles) {
    if (e_.error()) return before;
    std::vector<Id> start = before.partials.all();
    start.push_back(before.weights);
    const auto opened = b_.open_for(from, to, b_.index(keys_), start);
    const auto weighted_of = [](std::vector<Id> ids) {
      const Id weights = ids.back();
      ids.pop_back();
      return Weighted{Partials::of(std::move(ids)), weights};
    };
    e_.push_scope();
    tiles.at = scalar_position(opened.index);
    const Weighted now = after(query, weighted_of(opened.carried), tiles);
    e_.pop_scope();
    std::vector<Id> ids = now.partials.all();
    ids.push_back(now.weights);
    return weighted_of(b_.close_for(ids));
  }

  Value completed(Weighted now, const Position& last, const Range& range) {
    if (e_.error()) return {};
    now.partials.sum = with_values(now, last, range);
    if (e_.error()) return {};
    return {.sort = Sort::Value, .id = finished(now.partials)};
  }

  const std::int64_t processors_;
  const Visible partly_;  // tiles that some rows see only a part of
};

}  // namespace tessera::lower
