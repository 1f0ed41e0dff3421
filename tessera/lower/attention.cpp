#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/lower/attention_form.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/online_attention.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {
namespace {

using tile::Extents;
using tile::Type;

/// Tile of scores of a program.
struct ScoreTile {
  std::int64_t rows = 1, keys = 1;
};

/// Attention kernel. A program holds whole rows of the scores in a tile, so that every reduction
/// over the keys is one reduction of a tile, as in the definition; or, with `online`, a tile of
/// them at a time, and the reductions go on from tile to tile.
class AttentionKernel {
 public:
  using Id = tile::ValueId;

  AttentionKernel(const Group& group, const AttentionForm& form, const OnlineAttention* online,
                  const ScoreTile& tile, DType products)
      : group_(group),
        form_(form),
        online_(online),
        rows_(tile.rows),
        keys_(tile.keys),
        products_(products),
        b_(form.result.stage->name()),
        e_(b_, DType::F32) {
    if (online != nullptr) visible_ = visible_keys(form);
  }

  Expected<Lowered> run() {
    Lowered lowered;
    TESSERA_TRY(const std::vector<Operand> tensors, tensors_of(group_.stages));
    for (const Operand& tensor : tensors)
      if (!is_stage(tensor.name)) TESSERA_TRY_DONE(add(tensor, lowered.arguments));
    const std::string& out = form_.result.stage->name();
    TESSERA_TRY_DONE(add(*std::ranges::find(tensors, out, &Operand::name), lowered.arguments));
    bind_programs(lowered.grid);

    const Id queries = factor(form_.scores, form_.queries, form_.row, form_.inner);
    if (online_ != nullptr)
      store(attend(queries), online_->outside);
    else
      store(attend_at_once(queries), form_.outside);
    if (e_.error()) return *e_.error();
    TESSERA_TRY(lowered.kernel, b_.finish());
    return lowered;
  }

 private:
  bool is_stage(const std::string& name) const {
    return std::ranges::any_of(group_.stages, [&](const auto& s) { return s.name() == name; });
  }
  Expected<Done> add(const Operand& tensor, std::vector<std::string>& arguments) {
    Extents shape;
    for (const Dim& dim : tensor.shape) shape.push_back(*dim.constant());
    arguments.push_back(tensor.name);
    return e_.add_tensor(tensor.name, tensor.dtype, std::move(shape));
  }

  std::int64_t extent(int loop) const { return form_.extents[static_cast<std::size_t>(loop)]; }
  static std::string name_of(int loop) { return fmt::format("loop{}", loop); }
  bool is_batch(int loop) const {
    return loop != form_.row && loop != form_.key && loop != form_.inner && loop != form_.width;
  }

  Id program(int axis, std::int64_t count) {
    const Id pid = b_.pid(axis);
    b_.assume(b_.map(tile::Function::Less, {pid, b_.index(count)}));
    return pid;
  }

  /// Blocks of rows run fastest: they share keys and values. Where later rows see more keys, they
  /// come first, so that programs end at about the same time.
  void bind_programs(tile::Grid& grid) {
    if (form_.row >= 0) {
      grid[0] = ceil_div(extent(form_.row), rows_);
      if (grid[0] > 1) {
        const Id pid = program(0, grid[0]);
        const bool grows = std::ranges::any_of(
            visible_.last, [](const KeyBound& bound) { return bound.row_factor > 0; });
        block_ = grows ? *Position::constant(grid[0] - 1).plus(scalar_position(pid), -1)
                       : scalar_position(pid);
        block_ = *block_.times(rows_);
      }
    }
    std::vector<int> loops;
    for (int loop = 0; loop < static_cast<int>(form_.extents.size()); ++loop)
      if (is_batch(loop) && extent(loop) > 1) loops.push_back(loop);
    if (loops.empty()) return;
    for (const int loop : loops) grid[1] *= extent(loop);
    Id rest = program(1, grid[1]);
    while (loops.size() > 1) {
      const Id count = b_.index(extent(loops.back()));
      bind(loops.back(), scalar_position(b_.map(tile::Function::Rem, {rest, count})));
      rest = b_.map(tile::Function::Div, {rest, count});
      loops.pop_back();
    }
    bind(loops.back(), scalar_position(rest));
  }

  void bind(int loop, const Position& at) {
    e_.bind_loop(name_of(loop), at, {0, extent(loop) - 1});
  }

  /// From here on tiles have these two axes.
  void set_axes(int first, int second) {
    while (!e_.extents().empty()) e_.pop_axis();
    for (const int loop : {first, second}) {
      if (loop == form_.row) {
        const int axis = e_.push_axis(rows_);
        if (loop < 0) continue;
        const std::int64_t end = ceil_div(extent(loop), rows_) * rows_;
        e_.bind_loop(name_of(loop), *block_.plus(axis_position(axis)), {0, end - 1});
      } else if (loop == form_.key && online_ != nullptr) {
        e_.bind_loop(name_of(loop), *key_block_.plus(axis_position(e_.push_axis(keys_))),
                     key_range_);
      } else {
        const int axis = e_.push_axis(extent(loop));
        bind(loop, extent(loop) > 1 ? axis_position(axis) : Position{});
      }
    }
  }

  tile::Nest::Axis axis_of(const AttentionStage& of, const std::string& variable) const {
    const auto loop = of.loop_of.find(variable);
    if (loop == of.loop_of.end()) return {variable, 1, false, Scalar(0)};
    return {variable, extent(loop->second), false, index_of(name_of(loop->second))};
  }
  void enter(const AttentionStage& of) {
    std::vector<tile::Nest::Axis> axes;
    for (const MergedAxis& merged : of.stage->output.axes)
      for (const Axis& axis : merged.parts) axes.push_back(axis_of(of, axis.name));
    for (const Bound& bound : of.fold->bounds) axes.push_back(axis_of(of, bound.axis));
    e_.enter(*of.stage, axes);
    e_.push_scope();
  }

  Id factor(const AttentionStage& of, const Scalar& scalar, int first, int second,
            const std::vector<tile::Nest::Axis>& guards = {}) {
    set_axes(first, second);
    enter(of);
    Id id = e_.full(e_.converted(e_.evaluate(scalar), Sort::Value));
    if (const auto within = e_.guard(guards); within && !e_.error()) {
      const Extents shape = b_.type(id).shape;
      id = b_.map(tile::Function::Select, {e_.full({.sort = Sort::Bool, .id = *within}), id,
                                           b_.constant(Type::tile(DType::F32, shape), 0.0)});
    }
    e_.pop_scope();
    return products_ == DType::F32 || e_.error() ? id : b_.cast(id, products_);
  }

  Id zeros(std::int64_t rows, std::int64_t columns) {
    return b_.constant(Type::tile(DType::F32, {rows, columns}), 0.0);
  }
  Value product(Id a, Id b, std::optional<Id> sum = {}) {
    if (e_.error()) return {};
    if (!sum) sum = zeros(b_.type(a).shape[0], b_.type(b).shape[1]);
    return {.sort = Sort::Value, .id = b_.dot(a, b, *sum)};
  }

  /// The second matmul, with all scores of the rows in one tile.
  Value attend_at_once(Id queries) {
    const Id keys = factor(form_.scores, form_.keys, form_.inner, form_.key);
    hold(form_.scores, product(queries, keys));
    for (const AttentionStage& stage : form_.between) {
      set_axes(form_.row, form_.key);
      enter(stage);
      e_.run_fold(stage.fold, {.vectors = {1}});
      const Value result = e_.error() ? Value{} : e_.fold_results(*stage.fold)->front();
      e_.pop_scope();
      hold(stage, result);
    }
    const Id weights = factor(form_.result, form_.weights, form_.row, form_.key);
    const Id values = factor(form_.result, form_.values, form_.key, form_.width);
    return product(weights, values);
  }

  /// Makes a stage, whose reduction has this result, readable. The bounds are known to hold.
  void hold(const AttentionStage& of, const Value& reduced,
            const std::vector<KeyBound>& bounds = {}) {
    set_axes(form_.row, form_.key);
    enter(of);
    for (const KeyBound& bound : bounds) e_.set_value(bound.condition, e_.evaluate(truth(true)));
    e_.set_fold(*of.fold, reduced);
    const Value value = e_.converted(e_.evaluate(of.stage->output.value), Sort::Value);
    Evaluator::HeldTile held{.at = {}, .value = value};
    for (const MergedAxis& merged : of.stage->output.axes)
      held.at.push_back(e_.evaluate(Scalar(merged)).position.value_or(Position{}));
    e_.pop_scope();
    e_.hold_tile(of.stage->name(), std::move(held));
  }

  // --- online: tile by tile of keys

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

  /// Tiles of keys: where they begin, how far they reach, and whether all of them are visible.
  struct Tiles {
    Position at = {};
    Range range = {};
    bool all_visible = true;
  };

  /// The second matmul, tile by tile: first tiles that all rows see whole, then the others.
  Value attend(Id queries) {
    const std::int64_t keys = extent(form_.key), whole = keys / keys_ * keys_;
    key_range_ = {0, keys - 1};
    Partials partials = initial();
    if (e_.error()) return {};
    const auto loop = [&](Id from, Id to, Range range, bool all_visible) {
      const auto opened = b_.open_for(from, to, b_.index(keys_), partials.all());
      e_.push_scope();
      partials = after_tile(queries, Partials::of(opened.carried),
                            {scalar_position(opened.index), range, all_visible});
      e_.pop_scope();
      partials = Partials::of(b_.close_for(partials.all()));
    };
    if (!visible_.last.empty() || !visible_.first.empty()) {
      const Id zero = b_.index(0);
      const Id from = visible_.first.empty() ? zero : first_tile();
      Id middle = from;
      if (visible_.first.empty() && whole > 0) {
        middle = last_tile(whole);
        loop(from, middle, {0, whole - 1}, true);
      }
      const Id end = last_key(keys);
      const std::int64_t most = ceil_div(keys, keys_) * keys_ - 1;
      loop(middle, end, {0, most}, false);
    } else {
      if (whole == keys_)
        partials = after_tile(queries, partials, {{}, {0, keys_ - 1}});
      else if (whole > 0)
        loop(b_.index(0), b_.index(whole), {0, whole - 1}, true);
      if (whole < keys)
        partials =
            after_tile(queries, partials, {Position::constant(whole), {whole, whole + keys_ - 1}});
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
  /// One behind the last key that a row sees.
  Id last_key(std::int64_t keys) {
    Id end = b_.index(keys);
    for (const KeyBound& bound : visible_.last)
      end = b_.map(tile::Function::Min, {end, bound_at(bound, true, bound.rest.high + 1)});
    return clamped(end, 0, keys);
  }
  /// Where tiles begin that some row does not see whole.
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
      set_axes(form_.row, form_.key);
      enter(stage);
      partials.rows.push_back(e_.initial_accumulators(*stage.fold, {.vectors = {1}})[0]);
      e_.pop_scope();
    }
    partials.sum = zeros(rows_, extent(form_.width));
    return partials;
  }

  Partials after_tile(Id queries, const Partials& before, const Tiles& tiles) {
    key_block_ = tiles.at;
    key_range_ = tiles.range;
    std::vector<tile::Nest::Axis> guards;
    if (tiles.range.high >= extent(form_.key))
      guards.push_back({{}, extent(form_.key), false, index_of(name_of(form_.key))});
    const Id keys = factor(form_.scores, form_.keys, form_.inner, form_.key);
    hold(form_.scores, product(queries, keys),
         tiles.all_visible ? visible_.last : std::vector<KeyBound>{});
    Partials now = before;
    for (std::size_t i = 0; i < form_.between.size() && !e_.error(); ++i) {
      const AttentionStage& stage = form_.between[i];
      const Id carried = rescaled(stage, online_->exponents[i], before.rows[i], before, now, i);
      hold_rows(now, i, Held::Finite);
      set_axes(form_.row, form_.key);
      enter(stage);
      e_.run_fold(stage.fold, {.vectors = {1}, .guards = guards, .carried = {carried}});
      if (!e_.error()) now.rows[i] = *e_.fold_results(*stage.fold)->front().id;
      e_.pop_scope();
    }
    if (e_.error()) return now;
    const std::size_t all = form_.between.size();
    hold_rows(now, all, Held::Finite);
    const Id weights = factor(form_.result, online_->weights, form_.row, form_.key, guards);
    now.sum = rescaled(form_.result, online_->result_exponent, now.sum, before, now, all);
    const Id values = factor(form_.result, form_.values, form_.key, form_.width);
    if (!e_.error()) now.sum = *product(weights, values, now.sum).id;
    return now;
  }

  /// Whether rows without a finite term so far, whose maximum is -inf, are held as 0: all of their
  /// terms are then 0, whatever is subtracted.
  enum class Held : std::uint8_t { AsTheyAre, Finite };
  void hold_rows(const Partials& partials, std::size_t count, Held held) {
    for (std::size_t i = 0; i < count && !e_.error(); ++i) {
      const AttentionStage& stage = form_.between[i];
      Id id = partials.rows[i];
      const auto* init = std::get_if<node::Constant>(&stage.fold->init[0].node());
      if (held == Held::Finite && init != nullptr && init->sort == Sort::Value &&
          std::isinf(init->number)) {
        const Type type = b_.type(id);
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
    hold_rows(partials, count, Held::AsTheyAre);
    set_axes(form_.row, form_.key);
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
    const Type type = b_.type(new_exponent);
    const Id change =
        b_.map(tile::Function::Select,
               {b_.map(tile::Function::Equal, {old_exponent, new_exponent}), b_.constant(type, 0.0),
                b_.map(tile::Function::Sub, {new_exponent, old_exponent})});
    return b_.mul(sum, along_rows(b_.map(tile::Function::Exp, {change}), b_.type(sum).shape));
  }

  /// A number per row at every position of a tile of rows.
  Id along_rows(Id id, Extents shape) {
    const Extents own = b_.type(id).shape;
    if (own == shape) return id;
    if (own.empty()) return b_.broadcast(id, shape);
    if (own.size() < shape.size()) {
      Extents longer = own;
      longer.resize(shape.size(), 1);
      id = b_.reshape(id, longer);
    }
    return b_.type(id).shape == shape ? id : b_.broadcast(id, shape);
  }

  /// The sum, with the rows held as they are in the end. Terms of an infinite exponent are NaN.
  Id finished(Partials partials) {
    const auto invalid = [&](const AttentionStage& of, const std::optional<Scalar>& scalar, Id sum,
                             std::size_t count) {
      if (!scalar || e_.error()) return sum;
      const Id at = exponent(of, *scalar, partials, count);
      if (e_.error()) return sum;
      const auto number = [&](Id like, double value) {
        return b_.constant(Type(b_.type(like)), value);
      };
      const Id infinite = b_.map(
          tile::Function::Equal,
          {b_.map(tile::Function::Abs, {at}), number(at, std::numeric_limits<double>::infinity())});
      return b_.map(tile::Function::Select,
                    {along_rows(infinite, b_.type(sum).shape),
                     number(sum, std::numeric_limits<double>::quiet_NaN()), sum});
    };
    for (std::size_t i = 0; i < partials.rows.size(); ++i)
      partials.rows[i] = invalid(form_.between[i], online_->exponents[i], partials.rows[i], i);
    const std::size_t all = partials.rows.size();
    const Id sum = invalid(form_.result, online_->result_exponent, partials.sum, all);
    hold_rows(partials, all, Held::AsTheyAre);
    return sum;
  }

  void store(Value sum, const std::optional<Scalar>& outside) {
    const AttentionStage& of = form_.result;
    set_axes(form_.row, form_.width);
    enter(of);
    if (outside && !e_.error()) {
      const Id factor = e_.full(e_.converted(e_.evaluate(*outside), Sort::Value));
      sum.id = b_.mul(*sum.id, factor);
    }
    if (online_ != nullptr && online_->blank && !e_.error()) {
      const Id blank = e_.full(e_.evaluate(*online_->blank));
      sum.id = b_.map(tile::Function::Select,
                      {blank, b_.constant(Type(b_.type(*sum.id)), 0.0), *sum.id});
    }
    e_.set_fold(*of.fold, sum);
    const Value value =
        e_.converted(e_.evaluate(of.stage->output.value), sort_of(of.stage->output.dtype));
    std::vector<Value> at;
    for (const MergedAxis& merged : of.stage->output.axes)
      at.push_back(e_.evaluate(Scalar(merged)));
    std::vector<tile::Nest::Axis> guards;
    if (form_.row >= 0)
      guards.push_back({{}, extent(form_.row), false, index_of(name_of(form_.row))});
    e_.store(*e_.memory(of.stage->name()), at, value, e_.guard(guards), true);
    e_.pop_scope();
  }

  const Group& group_;
  const AttentionForm& form_;
  const OnlineAttention* online_;  // null: whole rows
  const std::int64_t rows_, keys_;
  const DType products_;
  tile::Builder b_;
  Evaluator e_;
  Position block_ = {};      // where the rows begin
  Position key_block_ = {};  // where the tile of keys begins, if it is one at a time
  Range key_range_ = {};
  VisibleKeys visible_ = {};  // with `online`
};

/// So many rows that the scores stay in the second-level cache: keys are packed once for all of
/// them. Equal parts, enough of them for all cores.
std::int64_t rows_of(const AttentionForm& form, const machine::Machine& machine) {
  if (form.row < 0) return 1;
  const auto extent = [&](int loop) { return form.extents[static_cast<std::size_t>(loop)]; };
  const std::int64_t most = std::clamp<std::int64_t>(
      machine.l2 / static_cast<std::int64_t>(sizeof(float)) / extent(form.key), 16, 256);
  std::int64_t others = 1;  // programs for each block of rows
  for (int loop = 0; loop < form.inner; ++loop)
    if (loop != form.row && loop != form.key) others *= extent(loop);
  const std::int64_t all = extent(form.row), programs = machine.cores > 1 ? 4 * machine.cores : 1;
  const std::int64_t parts =
      std::max(ceil_div(all, most), std::min(ceil_div(programs, others), ceil_div(all, 16)));
  return parts == 1 ? all : ceil_div(ceil_div(all, parts), 4) * 4;
}

/// Multiply-adds of the scores; those of the second product are about as many.
double multiply_adds(const AttentionForm& form) {
  double all = 1;
  for (int loop = 0; loop <= form.inner; ++loop)
    all *= static_cast<double>(form.extents[static_cast<std::size_t>(loop)]);
  return all;
}

/// Wider scores than these leave the caches of a CPU.
constexpr std::int64_t kMostKeys = 8192;
/// Wider scores than these leave the registers of a thread block.
constexpr std::int64_t kMostKeysAtOnce = 256;

/// Tiles for thread blocks, the preferred ones first: 128 rows are two of a wgmma. Measured on an
/// H200 for widths of 64, 96, 128 and 256 and 512 and 4096 keys, with rows and keys of 64 and 128:
/// narrow heads gain from two blocks on a multiprocessor, wide ones need the registers.
std::vector<ScoreTile> block_tiles(const AttentionForm& form) {
  if (form.row < 0) return {{1, 128}};
  const std::int64_t width = form.extents[static_cast<std::size_t>(form.width)],
                     rows = form.extents[static_cast<std::size_t>(form.row)],
                     keys = width > 64 && width <= 128 ? 128 : 64;
  std::vector<ScoreTile> tiles;
  for (const ScoreTile& tile : {ScoreTile{128, keys}, ScoreTile{128, 64}, ScoreTile{64, 64},
                                ScoreTile{64, 32}, ScoreTile{16, 64}})
    if (tile.rows < 2 * rows) tiles.push_back(tile);
  if (tiles.empty()) tiles.push_back({16, 64});
  return tiles;
}

struct AttentionLowering {
  const Group& group;
  const AttentionForm& form;
  const GroupOptions& options;
  DType products;

  Expected<Attempt> at_once(std::int64_t rows) const {
    auto lowered = AttentionKernel(group, form, nullptr, {rows, 0}, products).run();
    if (!lowered) return Attempt{};  // by other strategies, stage by stage
    return code(*std::move(lowered), fmt::format("attention, {} rows at a time", rows));
  }
  Expected<Attempt> online(const OnlineAttention& online, const ScoreTile& tile) const {
    auto lowered = AttentionKernel(group, form, &online, tile, products).run();
    if (!lowered || (options.accept && !options.accept(lowered->kernel))) return Attempt{};
    return code(*std::move(lowered),
                fmt::format("attention, online, {} x {}", tile.rows, tile.keys));
  }

 private:
  static Attempt code(Lowered lowered, std::string strategy) {
    GroupCode code{.strategy = std::move(strategy)};
    code.kernels.push_back(std::move(lowered));
    return code;
  }
};

}  // namespace

Expected<Attempt> lower_attention(const Group& group, const machine::Machine& machine,
                                  const GroupOptions& options) {
  const auto form = attention_form(group, options.exact);
  if (!form) return Attempt{};
  const bool blocks = traits_of(machine).tiles_by_thread_blocks();
  const bool in_full = blocks && options.contraction_dtype == DType::BF16 &&
                       multiply_adds(*form) < kSmallContraction;
  const AttentionLowering lowering{group, *form, options,
                                   in_full ? DType::F32 : options.contraction_dtype};
  const std::int64_t keys = form->extents[static_cast<std::size_t>(form->key)];
  if (const auto online = options.exact ? std::nullopt : online_attention(*form)) {
    if (options.attention_keys > 0)
      return lowering.online(*online, {rows_of(*form, machine), options.attention_keys});
    if (blocks && keys > kMostKeysAtOnce)
      for (const ScoreTile& tile : block_tiles(*form)) {
        TESSERA_TRY(Attempt attempt, lowering.online(*online, tile));
        if (attempt) return attempt;
      }
    if (!blocks && keys > kMostKeys) return lowering.online(*online, {64, 512});
  }
  if (keys > kMostKeys) return Attempt{};
  return lowering.at_once(rows_of(*form, machine));
}

}  // namespace tessera::lower
