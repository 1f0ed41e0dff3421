#include "tessera/lower/winograd.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/expr/number.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {
namespace {

using tile::Extents;
using tile::Type;
using tile::ValueId;

/// The weight, transformed, as panels that a product of matrices reads as they lie:
///   [block of filters, tap along the depth, point, panel, channel, filter]
Definition packing(const Convolution3x3& conv, const WinogradSchedule& plan,
                   const std::string& name) {
  const Winograd transform = Winograd::of(static_cast<int>(plan.m));
  const std::int64_t n = transform.points();
  const Axis block{"block", ceil_div(conv.filters, plan.filters)}, i{"i", n}, j{"j", n},
      t{"t", conv.taps}, panel{"panel", ceil_div(plan.filters, plan.panel)}, c{"c", conv.channels},
      q{"q", plan.panel};
  const Scalar f = Scalar(block) * plan.filters + Scalar(panel) * plan.panel + Scalar(q);
  /// An element of the transform, whose row is an index.
  const auto factor = [&](const Axis& row, int column) {
    const auto at = static_cast<std::size_t>(column);
    Scalar result = transform.filter.back()[at];
    for (std::size_t k = transform.filter.size() - 1; k-- > 0;)
      result = select(equal(row, static_cast<std::int64_t>(k)), transform.filter[k][at], result);
    return result;
  };
  const auto weight = [&](int r, int s) {
    const std::array<Scalar, 5> wanted = {f, c, r, s, t};
    std::vector<Scalar> at(conv.weights.shape.size(), 0);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (conv.weight_at[k] >= 0) at[static_cast<std::size_t>(conv.weight_at[k])] = wanted[k];
    return conv.weights.or_zero(at);
  };
  Scalar sum = 0.0;
  for (int r = 0; r < 3; ++r) {
    Scalar row = 0.0;
    for (int s = 0; s < 3; ++s) row = row + factor(j, s) * weight(r, s);
    sum = sum + factor(i, r) * row;
  }
  return {.inputs = {conv.weights},
          .outputs = {{.name = name,
                       .dtype = DType::F32,
                       .axes = each({block, t, i, j, panel, c, q}),
                       .value = sum}}};
}

/// One kernel: pixels of a block of tiles transformed, then for each block of filters a product of
/// matrices for every point, the results transformed back, g, and the store.
class Kernel {
 public:
  Kernel(const tile::Stage& stage, const Convolution3x3& conv, const WinogradSchedule& plan)
      : stage_(stage),
        conv_(conv),
        plan_(plan),
        transform_(Winograd::of(static_cast<int>(plan.m))),
        b_(stage.name()),
        evaluator_(b_, DType::F32),
        packed_(conv.weight + ".winograd") {}

  Expected<GroupCode> run() {
    const std::int64_t tile_rows = ceil_div(conv_.rows, plan_.m);
    const std::int64_t tile_columns = ceil_div(conv_.columns, plan_.m);
    const std::int64_t blocks_y = ceil_div(tile_rows, plan_.rows);
    const std::int64_t blocks_x = ceil_div(tile_columns, plan_.columns);
    filter_blocks_ = ceil_div(conv_.filters, plan_.filters);
    const Definition weights = packing(conv_, plan_, packed_);
    TESSERA_TRY_DONE(add_tensors(weights.outputs[0]));

    const std::int64_t blocks_z = ceil_div(conv_.slices, plan_.slices);
    Lowered lowered{.kernel = {},
                    .grid = {plan_.programs, blocks_x * blocks_y,
                             ceil_div(conv_.images, plan_.images) * blocks_z},
                    .arguments = names_};
    const ValueId share = pid(0, lowered.grid[0]), block = pid(1, lowered.grid[1]);
    const ValueId volume = pid(2, lowered.grid[2]);
    image_ =
        b_.mul(b_.map(tile::Function::Div, {volume, b_.index(blocks_z)}), b_.index(plan_.images));
    slice_ =
        b_.mul(b_.map(tile::Function::Rem, {volume, b_.index(blocks_z)}), b_.index(plan_.slices));
    row_ = b_.mul(b_.map(tile::Function::Div, {block, b_.index(blocks_x)}), b_.index(plan_.rows));
    column_ =
        b_.mul(b_.map(tile::Function::Rem, {block, b_.index(blocks_x)}), b_.index(plan_.columns));

    const std::int64_t rounds = ceil_div(filter_blocks_, plan_.programs);
    if (rounds == 1) {
      filters(share);
    } else {
      if (conv_.taps == 1) points_ = transform_pixels(b_.index(0));
      const ValueId from = b_.mul(share, b_.index(rounds));
      const auto loop = b_.open_for(
          from,
          b_.map(tile::Function::Min, {b_.add(from, b_.index(rounds)), b_.index(filter_blocks_)}),
          b_.index(1), {});
      filters(loop.index);
      b_.close_for({});
    }
    if (evaluator_.error()) return *evaluator_.error();
    TESSERA_TRY(lowered.kernel, b_.finish());
    GroupCode code;
    code.kernels.push_back(std::move(lowered));
    code.packings.push_back({.weight = conv_.weight, .definition = weights});
    code.strategy =
        fmt::format("winograd F({0}x{0},3x3), {1}x{2}x{3} tiles, {4} filters", plan_.m,
                    plan_.images * plan_.slices, plan_.rows, plan_.columns, plan_.filters);
    return code;
  }

 private:
  Extents tiles(std::int64_t last) const {
    return {plan_.images, plan_.slices, plan_.rows, plan_.columns, last};
  }
  std::int64_t tile_count() const {
    return plan_.images * plan_.slices * plan_.rows * plan_.columns;
  }

  ValueId pid(int axis, std::int64_t count) {
    const ValueId id = b_.pid(axis);
    b_.assume(b_.map(tile::Function::Less, {id, b_.index(count)}));
    return id;
  }

  Expected<Done> add_tensors(const Output& packed) {
    const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
      names_.push_back(name);
      Extents extents;
      for (const Dim& dim : shape) extents.push_back(*resolved(dim, stage_.sizes).constant());
      return evaluator_.add_tensor(name, dtype, std::move(extents));
    };
    for (const Operand& operand : stage_.operands)
      if (operand.name != conv_.weight)
        TESSERA_TRY_DONE(add(operand.name, operand.dtype, operand.shape));
    TESSERA_TRY_DONE(add(packed_, DType::F32, packed.shape()));
    return add(stage_.name(), stage_.output.dtype, stage_.output.shape());
  }

  /// Pixel (i, j) of every tile of the block, in the slice that a tap reads. Those of all tiles of
  /// the image are a view, whose bounds are those of the image.
  ValueId pixels(ValueId slice, int i, int j) {
    const std::int64_t m = plan_.m, y = i - conv_.top, x = j - conv_.left;
    const std::int64_t first_y = y - integer::floor_div(y, m) * m,
                       first_x = x - integer::floor_div(x, m) * m;
    const Type type = Type::tile(DType::F32, tiles(conv_.channels));
    if (first_y >= conv_.height || first_x >= conv_.width) return b_.constant(type, 0.0);
    const std::int64_t pixel = conv_.channels, line = conv_.width * pixel;
    const ValueId base = b_.offset(b_.base(evaluator_.memory(conv_.image)->param),
                                   b_.index(first_y * line + first_x * pixel));
    const std::int64_t area = conv_.height * line;
    const ValueId view =
        b_.view(base, Type::view(DType::F32,
                                 {conv_.images, conv_.depth, ceil_div(conv_.height - first_y, m),
                                  ceil_div(conv_.width - first_x, m), conv_.channels},
                                 {conv_.depth * area, area, m * line, m * pixel, 1}));
    const auto moved = [&](ValueId at, std::int64_t by) { return b_.add(at, b_.index(by)); };
    return b_.vload(view,
                    {image_, slice, moved(row_, integer::floor_div(y, m)),
                     moved(column_, integer::floor_div(x, m)), b_.index(0)},
                    tiles(conv_.channels));
  }

  using Square = std::vector<std::vector<ValueId>>;
  /// matrix · x · matrix^T
  Square both_ways(const Winograd::Matrix& matrix, const Square& x) {
    Square half;  // transposed
    for (std::size_t j = 0; j < x[0].size(); ++j) {
      std::vector<ValueId> column;
      for (const auto& row : x) column.push_back(row[j]);
      half.push_back(product(b_, matrix, column));
    }
    Square result;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      std::vector<ValueId> row;
      for (const auto& column : half) row.push_back(column[i]);
      result.push_back(product(b_, matrix, row));
    }
    return result;
  }

  /// What the points of a tile are in the slices that a tap reads: [tiles, channels] each.
  std::vector<ValueId> transform_pixels(ValueId tap) {
    const int n = transform_.points();
    const ValueId slice =
        b_.add(b_.add(b_.mul(slice_, b_.index(conv_.step)), tap), b_.index(-conv_.front));
    Square x;
    for (int i = 0; i < n; ++i) {
      x.emplace_back();
      for (int j = 0; j < n; ++j) x.back().push_back(pixels(slice, i, j));
    }
    std::vector<ValueId> points;
    for (const auto& row : both_ways(transform_.in, x))
      points.insert(points.end(), row.begin(), row.end());
    for (ValueId& point : points) point = b_.reshape(point, {tile_count(), conv_.channels});
    return points;
  }

  /// The products of a tap with a block of filters, added to what there is.
  std::vector<ValueId> add_products(ValueId block, ValueId tap, std::vector<ValueId> sums) {
    const auto squares = static_cast<std::int64_t>(sums.size()), channels = conv_.channels;
    const std::int64_t panels = ceil_div(plan_.filters, plan_.panel);
    const ValueId weights = b_.view(
        b_.base(evaluator_.memory(packed_)->param),
        Type::view(DType::F32,
                   {filter_blocks_ * squares * conv_.taps * panels, channels, plan_.panel}));
    const ValueId first =
        b_.mul(b_.add(b_.mul(block, b_.index(conv_.taps)), tap), b_.index(squares * panels));
    const std::vector<ValueId> points = points_.empty() ? transform_pixels(tap) : points_;
    for (std::size_t k = 0; k < sums.size(); ++k) {
      ValueId matrix = b_.vload(weights,
                                {b_.add(first, b_.index(static_cast<std::int64_t>(k) * panels)),
                                 b_.index(0), b_.index(0)},
                                {panels, channels, plan_.panel});
      matrix = b_.reshape(b_.permute(matrix, {1, 0, 2}), {channels, plan_.filters});
      sums[k] = b_.dot(points[k], matrix, sums[k]);
    }
    return sums;
  }

  /// A block of filters.
  void filters(ValueId block) {
    const std::int64_t n = transform_.points(), squares = n * n;
    std::vector<ValueId> all(
        static_cast<std::size_t>(squares),
        b_.constant(Type::tile(DType::F32, {tile_count(), plan_.filters}), 0.0));
    if (conv_.taps == 1) {
      all = add_products(block, b_.index(0), std::move(all));
    } else {
      const auto loop = b_.open_for(b_.index(0), b_.index(conv_.taps), b_.index(1), all);
      all = b_.close_for(add_products(block, loop.index, loop.carried));
    }
    Square sums;
    for (std::int64_t k = 0; k < squares; ++k) {
      if (k % n == 0) sums.emplace_back();
      sums.back().push_back(
          b_.reshape(all[static_cast<std::size_t>(k)],
                     {plan_.images, plan_.slices, plan_.rows, 1, plan_.columns, 1, plan_.filters}));
    }
    const Square results = both_ways(transform_.out, sums);
    std::vector<ValueId> lines;
    for (const auto& line : results) lines.push_back(b_.concat(line, 5));
    const std::int64_t m = plan_.m;
    store(b_.reshape(b_.concat(lines, 3), {plan_.images, plan_.slices, plan_.rows * m,
                                           plan_.columns * m, plan_.filters}),
          block);
  }

  /// g of the sums, into the result.
  void store(ValueId sums, ValueId block) {
    evaluator_.push_scope();
    const std::int64_t m = plan_.m;
    struct Run {
      ValueId from;
      std::int64_t size, extent;
    };
    const std::array<Run, 5> runs = {
        {{image_, plan_.images, conv_.images},
         {slice_, plan_.slices, conv_.slices},
         {b_.mul(row_, b_.index(m)), plan_.rows * m, conv_.rows},
         {b_.mul(column_, b_.index(m)), plan_.columns * m, conv_.columns},
         {b_.mul(block, b_.index(plan_.filters)), plan_.filters, conv_.filters}}};
    std::vector<tile::Nest::Axis> axes;
    const std::size_t rank = stage_.output.axes.size();
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t which = i == 0 ? 0 : i + 5 - rank;
      const Run& run = runs[which];
      const std::string& name = conv_.axes[which];
      Position at = scalar_position(run.from);
      if (!name.empty()) at = *at.plus(axis_position(evaluator_.push_axis(run.size)));
      for (const Axis& part : stage_.output.axes[i].parts) {
        const bool is_it = part.name == name;
        axes.push_back({part.name, is_it ? run.extent : 1, false, index_of(part.name)});
        evaluator_.bind_loop(part.name, is_it ? at : Position{},
                             {0, is_it ? ceil_div(run.extent, run.size) * run.size - 1 : 0});
      }
    }
    evaluator_.enter(stage_, axes);
    evaluator_.set_fold(*conv_.fold, {.id = b_.reshape(sums, evaluator_.extents())});
    const Value value = evaluator_.converted(evaluator_.evaluate(stage_.output.value),
                                             sort_of(stage_.output.dtype));
    std::vector<Value> at;
    for (const MergedAxis& merged : stage_.output.axes)
      at.push_back(evaluator_.evaluate(Scalar(merged)));
    evaluator_.store(*evaluator_.memory(stage_.name()), at, value, {}, true);
    while (!evaluator_.extents().empty()) evaluator_.pop_axis();
    evaluator_.pop_scope();
  }

  const tile::Stage& stage_;
  const Convolution3x3& conv_;
  const WinogradSchedule& plan_;
  Winograd transform_;
  tile::Builder b_;
  Evaluator evaluator_;
  std::string packed_;
  std::vector<std::string> names_;
  std::int64_t filter_blocks_ = 1;
  ValueId image_ = 0, slice_ = 0;  // where the block begins
  ValueId row_ = 0, column_ = 0;   // in tiles
  std::vector<ValueId> points_;    // of the pixels, tap by tap: [tiles, channels] each
};

}  // namespace

Expected<GroupCode> lower_winograd(const tile::Stage& stage, const Convolution3x3& convolution,
                                   const WinogradSchedule& plan) {
  return Kernel(stage, convolution, plan).run();
}

Expected<Attempt> lower_winograd(const Group& group, const machine::Machine& machine,
                                 const GroupOptions& options) {
  if (!traits_of(machine).uses_winograd) return Attempt{};
  if (options.exact || options.contraction_dtype != DType::F32 || group.stages.size() != 1)
    return Attempt{};
  const auto convolution = convolution3x3(group.stages[0], group.weights);
  if (!convolution) return Attempt{};
  std::optional<WinogradSchedule> plan;
  if (options.schedule) {
    plan = std::get<WinogradSchedule>(*options.schedule);
    TESSERA_TRY_DONE(check(*plan, *convolution, machine));
  } else {
    plan = plan_winograd(*convolution, machine);
  }
  if (!plan) return Attempt{};
  TESSERA_TRY(GroupCode code, lower_winograd(group.stages[0], *convolution, *plan));
  code.schedule = *plan;
  return Attempt{std::move(code)};
}

ScheduleCandidates winograd_space(const Group& group, const machine::Machine& machine,
                                  const GroupOptions& options) {
  ScheduleCandidates space;
  if (!traits_of(machine).uses_winograd || options.exact ||
      options.contraction_dtype != DType::F32 || group.stages.size() != 1)
    return space;
  if (const auto convolution = convolution3x3(group.stages[0], group.weights))
    for (const auto& [schedule, cost] : winograd_candidates(*convolution, machine))
      space.push_back({schedule, cost});
  return space;
}

}  // namespace tessera::lower
