#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/lower/attention_kernel.h"
#include "tessera/lower/online_attention.h"

namespace tessera::lower {

/// Tile of scores of a program.
struct ScoreTile {
  std::int64_t rows = 1, keys = 1;
  /// Tiles that all rows see whole have a loop of their own, before the others.
  bool whole_first = false;
  /// Keys of a tile behind them, a divisor of `keys`.
  std::int64_t last_keys = keys;
  bool keys_first = false;  // as in AttentionKernel
};

/// A program holds a tile of scores at a time; reductions go on from tile to tile.
class OnlineKernel : public AttentionKernel {
 public:
  OnlineKernel(const Group& group, const AttentionForm& form, const OnlineAttention& online,
               const ScoreTile& tile, DType products)
      : AttentionKernel(group, form, tile.rows, products),
        online_(online),
        visible_(visible_keys(form)),
        keys_(tile.keys),
        last_keys_(tile.last_keys),
        is_asked_(!tile.whole_first && keeps_lowest(form)) {
    keys_first_ = tile.keys_first;
    outside_ = online.outside;
    blank_ = online.blank;
    // Rows that see more keys come first, so that programs end at about the same time.
    last_rows_first_ = std::ranges::any_of(
        visible_.last, [](const KeyBound& bound) { return bound.row_factor > 0; });
    for (const auto* bounds : {&visible_.last, &visible_.first})
      for (const KeyBound& bound : *bounds) conditions_.push_back(bound.condition);
  }

 protected:
  /// Partial results after some tiles of keys: a number per row for every reduction, in order, and
  /// the sum of the second matmul.
  struct Partials {
    std::vector<Id> rows = {};
    Id sum = 0;

    std::vector<Id> all() const {
      std::vector<Id> ids = rows;
      ids.push_back(sum);
      return ids;
    }
    static Partials of(std::vector<Id> ids) {
      const Id sum = ids.back();
      ids.pop_back();
      return {std::move(ids), sum};
    }
  };

  /// Which keys of a tile are visible: all; some; some, masked in the sums of the first matmul; or
  /// what `visible_from_` and `visible_to_` say.
  enum class Visible : std::uint8_t { All, Some, Masked, Asked };
  /// Tiles of keys: where they begin, how far they reach.
  struct Tiles {
    Position at = {};
    Range range = {};
    Visible visible = Visible::All;
  };

  /// The second matmul, tile by tile. Where keys are masked in the sums of the first matmul, in one
  /// loop, which asks whether all rows see a whole tile; else first such tiles, then the others.
  Value attend() override {
    const std::int64_t keys = extent(form_.key);
    std::int64_t whole = keys / keys_ * keys_;
    key_range_ = {0, keys - 1};
    const Id query = queries();
    Partials partials = initial();
    if (e_.error()) return {};
    const auto loop = [&](Id from, Id to, Range range, Visible visible) {
      const auto opened = b_.open_for(from, to, b_.index(keys_), partials.all());
      e_.push_scope();
      partials = after_tile(query, Partials::of(opened.carried),
                            {scalar_position(opened.index), range, visible});
      e_.pop_scope();
      partials = Partials::of(b_.close_for(partials.all()));
    };
    if (!visible_.last.empty() || !visible_.first.empty()) {
      const Id zero = b_.index(0);
      const Id from = visible_.first.empty() ? zero : first_tile();
      if (is_asked_) find_visible(keys);
      Id middle = from;
      if (visible_.first.empty() && whole > 0 && !is_asked_) {
        middle = last_tile(whole);
        loop(from, middle, {0, whole - 1}, Visible::All);
      }
      const Id end = last_key(keys);
      if (!is_asked_ && visible_.first.empty() && last_keys_ < keys_) {
        keys_ = last_keys_;
        whole = keys / keys_ * keys_;
        const Id first = std::exchange(middle, last_tile(whole));
        loop(first, middle, {0, whole - 1}, Visible::All);
      }
      const std::int64_t most = ceil_div(keys, keys_) * keys_ - 1;
      loop(middle, end, {0, most}, is_asked_ ? Visible::Asked : Visible::Some);
    } else {
      if (whole == keys_)
        partials = after_tile(query, partials, {{}, {0, keys_ - 1}});
      else if (whole > 0)
        loop(b_.index(0), b_.index(whole), {0, whole - 1}, Visible::All);
      if (whole < keys)
        partials =
            after_tile(query, partials, {Position::constant(whole), {whole, whole + keys_ - 1}});
    }
    if (e_.error()) return {};
    return {.sort = Sort::Value, .id = finished(partials)};
  }

  /// row_factor * row + rest at the first or the last row of this program.
  Id bound_at(const KeyBound& bound, bool last_row, std::int64_t rest) {
    Position at = Position::constant(rest);
    if (bound.row_factor != 0 && form_.row >= 0) {
      at = *at.plus(block_);
      if (last_row) at.base += std::min(rows_, extent(form_.row)) - 1;
    }
    return e_.id_of({.sort = Sort::Integer, .position = at});
  }
  Id clamped(Id at, std::int64_t low, std::int64_t high) {
    return b_.map(tile::Function::Max,
                  {b_.index(low), b_.map(tile::Function::Min, {at, b_.index(high)})});
  }
  /// Keys from `visible_from_` to below `visible_to_` are visible to all rows of the program.
  void find_visible(std::int64_t keys) {
    visible_from_ = b_.index(0);
    visible_to_ = b_.index(keys);
    for (const KeyBound& bound : visible_.first)
      visible_from_ =
          b_.map(tile::Function::Max, {visible_from_, bound_at(bound, true, bound.rest.high)});
    for (const KeyBound& bound : visible_.last)
      visible_to_ =
          b_.map(tile::Function::Min, {visible_to_, bound_at(bound, false, bound.rest.low + 1)});
  }
  /// The sums of the scores, -inf for keys that are not visible.
  Value masked(const Value& sums, const Tiles& tiles, const std::vector<tile::Nest::Axis>& guards) {
    if (e_.error()) return sums;
    const Id begin = e_.id_of({.sort = Sort::Integer, .position = tiles.at});
    const Id is_whole =
        b_.map(tile::Function::And,
               {b_.map(tile::Function::LessEqual, {visible_from_, begin}),
                b_.map(tile::Function::LessEqual, {b_.add(begin, b_.index(keys_)), visible_to_})});
    const auto as_they_are = [&] { return std::vector<Id>{*sums.id}; };
    const auto with_mask = [&] { return std::vector<Id>{with_conditions(*sums.id, guards)}; };
    return {.sort = Sort::Value, .id = b_.if_else(is_whole, as_they_are, with_mask)[0]};
  }
  /// The sums of the scores [row, key], -inf where the conditions or the guards do not hold.
  Id with_conditions(Id sums, const std::vector<tile::Nest::Axis>& guards) {
    std::optional<Id> all;
    const auto require = [&](Id condition) {
      all = all ? b_.map(tile::Function::And, {*all, condition}) : condition;
    };
    const auto is_exact = [](const KeyBound& bound) { return bound.rest.low == bound.rest.high; };
    set_axes(form_.row, form_.key);
    enter(form_.scores);
    for (const auto* bounds : {&visible_.last, &visible_.first})
      for (const KeyBound& bound : *bounds)
        if (!is_exact(bound)) require(e_.full(e_.evaluate(bound.condition)));
    e_.pop_scope();
    if (e_.error()) return sums;
    // The others as one comparison with the nearest of their bounds.
    std::optional<Id> last, first;
    const auto nearest = [&](std::optional<Id>& of, Id bound, tile::Function function) {
      of = of ? b_.map(function, {*of, bound}) : bound;
    };
    if (!guards.empty())
      nearest(last, key_limits({.rest = {extent(form_.key) - 1, extent(form_.key) - 1}}),
              tile::Function::Min);
    for (const KeyBound& bound : visible_.last)
      if (is_exact(bound)) nearest(last, key_limits(bound), tile::Function::Min);
    for (const KeyBound& bound : visible_.first)
      if (is_exact(bound)) nearest(first, key_limits(bound), tile::Function::Max);
    const tile::Extents shape = b_.type(sums).shape;
    const Id keys = b_.broadcast(b_.reshape(b_.iota(DType::I32, shape[1]), {1, shape[1]}), shape);
    const auto along_keys = [&](Id limits) {
      return b_.broadcast(b_.reshape(limits, {shape[0], 1}), shape);
    };
    if (last) require(b_.map(tile::Function::LessEqual, {keys, along_keys(*last)}));
    if (first) require(b_.map(tile::Function::LessEqual, {along_keys(*first), keys}));
    if (!all) return sums;
    const Id lowest =
        b_.constant(tile::Type(b_.type(sums)), -std::numeric_limits<double>::infinity());
    return b_.map(tile::Function::Select, {*all, sums, lowest});
  }
  /// The bound of each row of the program, counted from the first key of the tile. Numbers of 32
  /// bits: far bounds are as good as others that no key of the tile reaches.
  Id key_limits(const KeyBound& bound) {
    constexpr std::int64_t kFar = std::int64_t{1} << 29;
    const Id begin = e_.id_of({.sort = Sort::Integer, .position = key_block_});
    const Id limit = b_.cast(
        clamped(b_.sub(bound_at(bound, false, bound.rest.low), begin), -kFar, kFar), DType::I32);
    Id limits = b_.broadcast(limit, {rows_});
    if (bound.row_factor == 0 || form_.row < 0) return limits;
    Id rows = b_.iota(DType::I32, rows_);
    if (bound.row_factor != 1)
      rows = b_.mul(rows,
                    b_.constant(tile::Type(b_.type(rows)), static_cast<double>(bound.row_factor)));
    return b_.add(limits, rows);
  }

  /// One behind the last key that a row sees.
  Id last_key(std::int64_t keys) {
    Id end = b_.index(keys);
    for (const KeyBound& bound : visible_.last)
      end = b_.map(tile::Function::Min, {end, bound_at(bound, true, bound.rest.high + 1)});
    return clamped(end, 0, keys);
  }
  /// First tile that some row does not see whole.
  Id last_tile(std::int64_t whole) {
    Id end = b_.index(whole);
    for (const KeyBound& bound : visible_.last)
      end = b_.map(tile::Function::Min, {end, bound_at(bound, false, bound.rest.low + 1)});
    const Id size = b_.index(keys_);
    return b_.mul(b_.map(tile::Function::Div, {clamped(end, 0, whole), size}), size);
  }
  /// The tile of the first key that a row sees.
  Id first_tile() {
    Id begin = b_.index(0);
    for (const KeyBound& bound : visible_.first)
      begin = b_.map(tile::Function::Max, {begin, bound_at(bound, false, bound.rest.low)});
    const Id size = b_.index(keys_);
    return b_.mul(b_.map(tile::Function::Div, {begin, size}), size);
  }

  Partials initial() {
    Partials partials;
    for (const AttentionStage& stage : form_.between) {
      set_score_axes();
      enter(stage);
      partials.rows.push_back(e_.initial_accumulators(*stage.fold, {.vectors = {key_axis()}})[0]);
      e_.pop_scope();
    }
    partials.sum = zeros(rows_, extent(form_.width));
    return partials;
  }

  Partials after_tile(Id query, const Partials& before, const Tiles& tiles) {
    enter_tile(tiles);
    const Value sums = scores(query);
    Weighted now = weighted(sums, before, tiles);
    const Id values = values_of_tile();
    if (!e_.error()) now.partials.sum = *product(now.weights, values, now.partials.sum).id;
    return now.partials;
  }

  void enter_tile(const Tiles& tiles) {
    key_block_ = tiles.at;
    key_range_ = tiles.range;
  }
  Id values_of_tile() { return factor(form_.result, form_.values, form_.key, form_.width); }

  /// Partial results after a tile, but for its second matmul, whose first operand are the weights.
  struct Weighted {
    Partials partials = {};
    Id weights = 0;
  };
  /// The softmax of a tile of scores.
  Weighted weighted(Value sums, const Partials& before, const Tiles& tiles) {
    std::vector<tile::Nest::Axis> guards;
    if (tiles.range.high >= extent(form_.key))
      guards.push_back({{}, extent(form_.key), false, index_of(name_of(form_.key))});
    if (tiles.visible == Visible::Asked) sums = masked(sums, tiles, std::exchange(guards, {}));
    if (tiles.visible == Visible::Masked && !e_.error() && !(conditions_.empty() && guards.empty()))
      sums.id = with_conditions(*sums.id, std::exchange(guards, {}));
    if (scale_ != 1 && !e_.error())
      sums.id = b_.mul(*sums.id, b_.constant(tile::Type(b_.type(*sums.id)), scale_));
    hold(form_.scores, sums, tiles.visible == Visible::Some ? std::vector<Scalar>{} : conditions_);
    Partials now = before;
    for (std::size_t i = 0; i < form_.between.size() && !e_.error(); ++i) {
      const AttentionStage& stage = form_.between[i];
      const Id carried = rescaled(stage, online_.exponents[i], before.rows[i], before, now, i);
      hold_rows(now, i, RowValues::Finite);
      set_score_axes();
      enter(stage);
      e_.run_fold(stage.fold, {.vectors = {key_axis()}, .guards = guards, .carried = {carried}});
      if (!e_.error()) now.rows[i] = *e_.fold_results(*stage.fold)->front().id;
      e_.pop_scope();
    }
    if (e_.error()) return {now};
    const std::size_t all = form_.between.size();
    hold_rows(now, all, RowValues::Finite);
    const Id probabilities = weights(online_.weights, guards);
    now.sum = rescaled(form_.result, online_.result_exponent, now.sum, before, now, all);
    return {now, probabilities};
  }

  /// Whether rows without a finite term so far, whose maximum is -inf, are held as 0: all of their
  /// terms are then 0, whatever is subtracted.
  enum class RowValues : std::uint8_t { AsReduced, Finite };
  void hold_rows(const Partials& partials, std::size_t count, RowValues values) {
    for (std::size_t i = 0; i < count && !e_.error(); ++i) {
      const AttentionStage& stage = form_.between[i];
      Id id = partials.rows[i];
      const auto* init = std::get_if<node::Constant>(&stage.fold->init[0].node());
      if (values == RowValues::Finite && init != nullptr && init->sort == Sort::Value &&
          std::isinf(init->number)) {
        const tile::Type type = b_.type(id);
        id = b_.map(tile::Function::Select,
                    {b_.map(tile::Function::Equal, {id, b_.constant(type, init->number)}),
                     b_.constant(type, 0.0), id});
      }
      hold(stage, {.sort = Sort::Value, .id = id});
    }
  }

  /// Exponent of a reduction with these partial results of the first `count` ones.
  Id exponent(const AttentionStage& of, const Scalar& scalar, const Partials& partials,
              std::size_t count) {
    hold_rows(partials, count, RowValues::AsReduced);
    set_score_axes();
    enter(of);
    const Id id = e_.id_of(e_.converted(e_.evaluate(scalar), Sort::Value));
    e_.pop_scope();
    return id;
  }

  /// A partial sum for the rows `before` as one for the rows `now`. Rows that have not changed keep
  /// theirs, also infinite ones.
  Id rescaled(const AttentionStage& of, const std::optional<Scalar>& scalar, Id sum,
              const Partials& before, const Partials& now, std::size_t count) {
    if (!scalar || e_.error()) return sum;
    const Id old_exponent = exponent(of, *scalar, before, count),
             new_exponent = exponent(of, *scalar, now, count);
    if (e_.error()) return sum;
    const tile::Type type = b_.type(new_exponent);
    const Id change =
        b_.map(tile::Function::Select,
               {b_.map(tile::Function::Equal, {old_exponent, new_exponent}), b_.constant(type, 0.0),
                b_.map(tile::Function::Sub, {new_exponent, old_exponent})});
    return b_.mul(sum, along_rows(b_.map(tile::Function::Exp, {change}), b_.type(sum).shape));
  }

  /// A number per row at every position of a tile of rows.
  Id along_rows(Id id, tile::Extents shape) {
    tile::Extents own = b_.type(id).shape;
    if (own == shape) return id;
    if (keys_first_ && own == tile::Extents{1, rows_}) {
      own = {rows_};
      id = b_.reshape(id, own);
    }
    if (own.empty()) return b_.broadcast(id, shape);
    if (own.size() < shape.size()) {
      tile::Extents longer = own;
      longer.resize(shape.size(), 1);
      id = b_.reshape(id, longer);
    }
    return b_.type(id).shape == shape ? id : b_.broadcast(id, shape);
  }

  /// The sum, with the rows held as they are in the end. Terms of an infinite exponent are NaN.
  Id finished(Partials partials) {
    if (std::exchange(keys_first_, false))  // as the result has them
      for (Id& row : partials.rows)
        if (!e_.error() && !b_.type(row).shape.empty()) row = b_.reshape(row, {rows_});
    const auto invalid = [&](const AttentionStage& of, const std::optional<Scalar>& scalar, Id sum,
                             std::size_t count) {
      if (!scalar || e_.error()) return sum;
      const Id at = exponent(of, *scalar, partials, count);
      if (e_.error()) return sum;
      const auto number = [&](Id like, double value) {
        return b_.constant(tile::Type(b_.type(like)), value);
      };
      const Id infinite = b_.map(
          tile::Function::Equal,
          {b_.map(tile::Function::Abs, {at}), number(at, std::numeric_limits<double>::infinity())});
      return b_.map(tile::Function::Select,
                    {along_rows(infinite, b_.type(sum).shape),
                     number(sum, std::numeric_limits<double>::quiet_NaN()), sum});
    };
    for (std::size_t i = 0; i < partials.rows.size(); ++i)
      partials.rows[i] = invalid(form_.between[i], online_.exponents[i], partials.rows[i], i);
    const std::size_t all = partials.rows.size();
    const Id sum = invalid(form_.result, online_.result_exponent, partials.sum, all);
    hold_rows(partials, all, RowValues::AsReduced);
    return sum;
  }

  void bind_keys() override {
    e_.bind_loop(name_of(form_.key), *key_block_.plus(axis_position(e_.push_axis(keys_))),
                 key_range_);
  }

  const OnlineAttention& online_;
  const VisibleKeys visible_;
  std::vector<Scalar> conditions_;  // hold where keys are visible
  Id visible_from_ = 0, visible_to_ = 0;
  std::int64_t keys_;             // of a tile
  const std::int64_t last_keys_;  // of a tile behind those that all rows see whole
  double scale_ = 1;         // of the scores, where the operands of the first matmul are not scaled
  const bool is_asked_;      // whether a tile is visible to all rows
  Position key_block_ = {};  // where the tile of keys begins
  Range key_range_ = {};
};

}  // namespace tessera::lower
