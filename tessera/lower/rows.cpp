#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/expr/walk.h"
#include "tessera/lower/axes.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/group.h"
#include "tessera/lower/product_dtype.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {

using tile::Extents;
using tile::Stage;
using tile::Stages;
using tile::Type;

namespace {

/// Elements of a tile: enough to amortize the start of a program, few enough for L1.
constexpr std::int64_t kTile = 4096;
/// Programs per core, for load balance.
constexpr std::int64_t kProgramsPerCore = 4;
/// Least contiguous elements that use cache lines well.
constexpr std::int64_t kLine = 16;

std::int64_t row_part(std::int64_t extent, std::int64_t most) {
  if (extent <= most) return extent;
  for (std::int64_t factor = most; factor * 2 > most && factor > 1; --factor)
    if (extent % factor == 0) return factor;
  return std::max<std::int64_t>(most, 1);
}

/// As row_part, of contiguous elements on a CPU: fewest lines over all tiles, then whole ones, as a
/// line that is cut is computed by shorter vectors.
std::int64_t part_of_lines(std::int64_t extent, std::int64_t most) {
  const auto cost = [&](std::int64_t part) {
    return std::pair(ceil_div(extent, part) * ceil_div(part, kLine), part % kLine != 0);
  };
  std::int64_t best = std::min(extent, most);
  for (std::int64_t part = best; part < extent && part * 2 > most; --part)
    if (cost(part) < cost(best)) best = part;
  return best;
}

/// Row-wise lowering (softmax, normalization): axes that are not reduced form the grid, reduced
/// axes are whole in the tile. Every stage is computed once, as a tile.
class RowsLowering {
 public:
  RowsLowering(const Group& group, Stages stages, AxisClasses axes, const machine::Machine& machine,
               const GroupOptions& options)
      : group_(group),
        stages_(std::move(stages)),
        axes_(std::move(axes)),
        machine_(machine),
        builder_(stages_.back().name()),
        evaluator_(builder_, DType::F32) {
    if (!options.exact) evaluator_.invert_divisors();
    if (options.schedule) given_ = std::get<RowsSchedule>(*options.schedule).blocks;
  }

  /// Tiles along the classes of axes for several numbers of elements; empty if it does not apply.
  std::vector<RowsSchedule> space() {
    std::vector<RowsSchedule> all;
    if (!fits()) return all;
    for (const std::int64_t elements : {256, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
      order_.clear();
      most_elements_ = elements;
      if (!choose_blocks()) continue;
      if (RowsSchedule one{blocks_}; std::ranges::find(all, one) == all.end())
        all.push_back(std::move(one));
    }
    return all;
  }

  Expected<Attempt> run() {
    if (!fits() || !choose_blocks()) return Attempt{};
    if (given_) TESSERA_TRY_DONE(apply_schedule());
    if (!given_ && are_long_columns()) return Attempt{};
    TESSERA_TRY_DONE(add_params());
    bind();
    for (std::size_t i = 0; i < stages_.size(); ++i) compute(i);
    store_results();
    if (evaluator_.error()) return *evaluator_.error();
    TESSERA_TRY(lowered_.kernel, builder_.finish());
    GroupCode code{.strategy = fmt::format("rows {}", fmt::join(evaluator_.extents(), "x")),
                   .schedule = RowsSchedule{blocks_}};
    code.kernels.push_back(std::move(lowered_));
    return Attempt(std::move(code));
  }

 private:
  std::int64_t longest_row() const { return traits_of(machine_).longest_row; }
  const AxisClass& axis(int c) const { return axes_.classes[static_cast<std::size_t>(c)]; }
  std::int64_t& block(int c) { return blocks_[static_cast<std::size_t>(c)]; }
  bool is_stage(const std::string& name) const {
    return std::ranges::any_of(stages_, [&](const Stage& s) { return s.name() == name; });
  }
  bool is_result(const std::string& name) const {
    return std::ranges::find(group_.results, name) != group_.results.end();
  }

  /// Every stage that is read is read along its axes, and has all the axes that are programs.
  bool fits() {
    std::int64_t volume = 1, largest = 1;
    for (const AxisClass& c : axes_.classes) volume *= c.extent;
    for (const auto& [name, of] : axes_.tensors) {
      std::int64_t elements = 1;
      for (const int c : of) elements *= c < 0 ? 1 : axis(c).extent;
      largest = std::max(largest, elements);
    }
    if (volume > 2 * largest) return false;  // a product of matrices, or its like
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Stage& stage = stages_[i];
      if (is_wide(stage)) return false;
      for (const Operand& operand : stage.operands)
        if (operand.dtype == DType::String) return false;
      std::set<int> own;
      for (const MergedAxis& merged : stage.output.axes)
        for (const Axis& part : merged.parts) own.insert(axes_.of[i].at(part.name));
      for (int c = 0; c < static_cast<int>(axes_.classes.size()); ++c)
        if (!axis(c).reduced && axis(c).extent > 1 && !own.contains(c)) return false;
      if (!reads_stages_along_axes(i)) return false;
    }
    return true;
  }

  /// The tile of a stage holds the elements at the reader's own position, no others.
  bool reads_stages_along_axes(std::size_t i) const {
    bool along = true;
    for_each_read(stages_[i].output.value, [&](const node::Read& read) {
      if (!is_stage(read.operand) || read.at.empty()) return;
      const std::vector<int>& classes = axes_.tensors.at(read.operand);
      for (std::size_t a = 0; a < read.at.size(); ++a) {
        const auto* index = std::get_if<node::Index>(&read.at[a].node());
        const bool is_own =
            index != nullptr && classes[a] >= 0 && axes_.of[i].at(index->axis) == classes[a];
        along = along && (is_own || extent_of(read.operand, a) == 1);
      }
    });
    return along;
  }

  std::int64_t extent_of(const std::string& stage, std::size_t axis) const {
    const auto it = std::ranges::find(stages_, stage, &Stage::name);
    return resolved(it->output.shape()[axis], it->sizes).constant().value_or(-1);
  }

  /// How many of each axis are in a tile. The order of axes is that in memory.
  bool choose_blocks() {
    const std::vector<int>* longest = nullptr;
    for (const auto& [name, of] : axes_.tensors)
      if (longest == nullptr || of.size() > longest->size()) longest = &of;
    for (int c = 0; c < static_cast<int>(axes_.classes.size()); ++c)
      if (longest == nullptr || std::ranges::find(*longest, c) == longest->end())
        order_.push_back(c);
    if (longest != nullptr)
      for (const int c : *longest)
        if (c >= 0 && std::ranges::find(order_, c) == order_.end()) order_.push_back(c);

    blocks_.assign(axes_.classes.size(), 1);
    std::int64_t row = 1, rows = 1;
    for (int c = 0; c < static_cast<int>(axes_.classes.size()); ++c) {
      if (axis(c).extent < 1) return false;
      if (axis(c).reduced)
        row *= block(c) = axis(c).extent;
      else
        rows *= axis(c).extent;
    }
    if (row > longest_row() || order_.size() > tile::kMostAxes) return false;
    std::int64_t most = std::max<std::int64_t>(most_elements_ / row, 1);
    // Threads of a block share a row that lies in one piece; blocks that share short ones are the
    // scheduler's (tile/gpu/row_schedule.h).
    if (traits_of(machine_).has_thread_blocks && axis(order_.back()).reduced) most = 1;
    most = std::min(
        most, std::max<std::int64_t>(rows / (kProgramsPerCore * std::max(machine_.cores, 1)), 1));
    for (auto c = order_.rbegin(); c != order_.rend(); ++c) {
      if (axis(*c).reduced) continue;
      const bool is_last = c == order_.rbegin();
      std::int64_t part = row_part(axis(*c).extent, is_last ? std::max(most, kLine) : most);
      if (is_last && !traits_of(machine_).has_thread_blocks)
        part = part_of_lines(axis(*c).extent, std::max(most, kLine));
      if (is_last && part * row > longest_row()) return false;
      block(*c) = part;
      most /= part;
      if (part < axis(*c).extent || most <= 1) break;
    }
    return true;
  }

  /// Whether rows of a GPU's programs run across memory, as those of a batch norm over images with
  /// their channels last, are long, and are too few for all cores: reductions in parts are faster
  /// then, though they read the tensor once for each of them.
  bool are_long_columns() const {
    constexpr std::int64_t kLongColumn = 512, kProgramsPerCoreAcross = 2;
    if (!traits_of(machine_).has_thread_blocks || axis(order_.back()).reduced) return false;
    std::int64_t row = 1, programs = 1;
    for (std::size_t c = 0; c < blocks_.size(); ++c) {
      const AxisClass& of = axis(static_cast<int>(c));
      if (of.reduced)
        row *= of.extent;
      else
        programs *= ceil_div(of.extent, blocks_[c]);
    }
    return row >= kLongColumn && programs < kProgramsPerCoreAcross * machine_.cores;
  }

  Expected<Done> apply_schedule() {
    if (given_->size() != blocks_.size()) return illegal_schedule("the rows have other axes");
    std::int64_t elements = 1;
    for (int c = 0; c < static_cast<int>(blocks_.size()); ++c) {
      const std::int64_t size = (*given_)[static_cast<std::size_t>(c)];
      if (size < 1 || size > axis(c).extent || (axis(c).reduced && size != axis(c).extent))
        return illegal_schedule("a tile of rows is out of range, or cuts a reduction");
      block(c) = size;
      elements *= size;
    }
    if (elements > longest_row()) return illegal_schedule("the tile of rows is too large");
    return Done{};
  }

  Expected<Done> add_param(const std::string& name, DType dtype, const Shape& shape,
                           const Sizes& sizes) {
    if (evaluator_.memory(name) != nullptr) return Done{};
    Extents extents;
    for (const Dim& dim : shape) extents.push_back(resolved(dim, sizes).constant().value_or(-1));
    const bool viewed = !extents.empty() && extents.size() <= tile::kMostAxes;
    const tile::ValueId id = builder_.param(
        viewed ? Type::view(storage_of(dtype), extents) : Type::pointer(storage_of(dtype)), name);
    evaluator_.add_memory({.operand = {name, dtype, {}}, .shape = extents, .param = id});
    lowered_.arguments.push_back(name);
    return Done{};
  }

  Expected<Done> add_params() {
    for (const Stage& stage : stages_)
      for (const Operand& operand : stage.operands)
        if (!is_stage(operand.name))
          TESSERA_TRY_DONE(add_param(operand.name, operand.dtype, operand.shape, stage.sizes));
    for (const Stage& stage : stages_)
      if (is_result(stage.name()))
        TESSERA_TRY_DONE(
            add_param(stage.name(), stage.output.dtype, stage.output.shape(), stage.sizes));
    return Done{};
  }

  static std::string loop_of(int c) { return fmt::format("{}", c); }

  /// Programs: the last axis runs fastest; from the third on, axes share one of the grid.
  void bind() {
    std::vector<int> programs;
    for (auto c = order_.rbegin(); c != order_.rend(); ++c)
      if (block(*c) < axis(*c).extent) programs.push_back(*c);
    std::map<int, Position> starts;
    std::optional<tile::ValueId> rest;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const int c = programs[i];
      const std::int64_t count = (axis(c).extent + block(c) - 1) / block(c);
      lowered_.grid[std::min<std::size_t>(i, 2)] *= count;
      tile::ValueId id = 0;
      if (i < 2) {
        id = builder_.pid(static_cast<int>(i));
      } else {
        if (!rest) rest = builder_.pid(2);
        const tile::ValueId size = builder_.index(count);
        const bool is_last = i + 1 == programs.size();
        id = is_last ? *rest : builder_.map(tile::Function::Rem, {*rest, size});
        if (!is_last) rest = builder_.map(tile::Function::Div, {*rest, size});
      }
      starts[c] = *scalar_position(id).times(block(c));
    }
    for (const int c : order_) {
      Position at = starts[c];
      if (block(c) > 1) {
        tile_axis_[c] = evaluator_.push_axis(block(c));
        at = *at.plus(axis_position(tile_axis_[c]));
      }
      const std::int64_t count = (axis(c).extent + block(c) - 1) / block(c);
      evaluator_.bind_loop(loop_of(c), at, {0, count * block(c) - 1});
      loops_.insert_or_assign(c, index_of(loop_of(c)));
    }
  }

  std::vector<tile::Nest::Axis> variables(std::size_t i) const {
    std::vector<tile::Nest::Axis> result;
    for (const auto& [name, c] : axes_.of[i])
      result.push_back({name, axis(c).extent, axis(c).reduced, loops_.at(c)});
    return result;
  }

  void compute(std::size_t i) {
    const Stage& stage = stages_[i];
    evaluator_.enter(stage, variables(i));
    evaluator_.push_scope();
    for (const auto& fold : folds_of(stage.output.value)) {
      FoldNest nest;
      for (const Bound& bound : fold->bounds)
        if (const auto it = tile_axis_.find(axes_.of[i].at(bound.axis)); it != tile_axis_.end())
          nest.vectors.push_back(it->second);
      std::ranges::sort(nest.vectors);
      evaluator_.run_fold(fold, nest);
    }
    Value value =
        evaluator_.converted(evaluator_.evaluate(stage.output.value), sort_of(stage.output.dtype));
    // What others read is what would have been stored.
    if (!evaluator_.error()) {
      tile::ValueId id = evaluator_.id_of(value);
      id = evaluator_.stored_and_read(id, stage.output.dtype, value.sort);
      value = {.sort = value.sort, .id = id, .position = {}, .range = Range::all()};
    }
    evaluator_.pop_scope();
    evaluator_.add_tile(stage.name(), value);
    values_.push_back(value);
  }

  /// All at the end, so that what they have in common is seen to be the same.
  void store_results() {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Stage& stage = stages_[i];
      if (!is_result(stage.name()) || evaluator_.error()) continue;
      evaluator_.enter(stage, variables(i));
      evaluator_.push_scope();
      std::vector<Value> at;
      for (const MergedAxis& merged : stage.output.axes)
        at.push_back(evaluator_.evaluate(Scalar(merged)));
      evaluator_.store_part(*evaluator_.memory(stage.name()), at, values_[i]);
      evaluator_.pop_scope();
    }
  }

  const Group& group_;
  Stages stages_;
  AxisClasses axes_;
  const machine::Machine& machine_;
  tile::Builder builder_;
  Evaluator evaluator_;
  Lowered lowered_;
  std::vector<int> order_;            // classes, as they lie in memory
  std::vector<std::int64_t> blocks_;  // by class: how many are in the tile
  std::int64_t most_elements_ = kTile;
  std::optional<std::vector<std::int64_t>> given_;  // blocks of a schedule
  std::map<int, int> tile_axis_;
  std::map<int, Scalar> loops_;
  std::vector<Value> values_;  // by stage
};

/// Lowering of a group by rows, if it is such a group.
std::optional<RowsLowering> rows_lowering(const Group& group, const machine::Machine& machine,
                                          const GroupOptions& options) {
  if (std::ranges::any_of(group.stages,
                          [](const Stage& s) { return s.output.forward.has_value(); }))
    return std::nullopt;
  Stages stages = collapsed(group.stages);
  auto axes = axis_classes(stages);
  if (!axes || !classes_are_apart(stages, *axes)) return std::nullopt;
  // Something is folded and then spoken of again.
  const bool is_row =
      std::ranges::any_of(axes->classes,
                          [](const AxisClass& c) { return c.reduced && c.extent > 1; }) &&
      (stages.size() > 1 ||
       std::ranges::any_of(axes->classes, [](const AxisClass& c) { return c.reduced && c.kept; }));
  if (!is_row) return std::nullopt;
  return std::optional<RowsLowering>(std::in_place, group, std::move(stages), *std::move(axes),
                                     machine, options);
}

/// Whether a small difference of a number may become a large one of a result, as in a quantization.
bool is_discrete(const Group& group) {
  return std::ranges::any_of(group.stages, [](const Stage& stage) {
    bool rounds = !is_float(stage.output.dtype);
    for_each_within(stage.output.value, [&](const Scalar& part) {
      const auto* apply = std::get_if<node::Apply>(&part.node());
      rounds = rounds || (apply != nullptr && (apply->fn == Fn::Round || apply->fn == Fn::Floor));
    });
    return rounds;
  });
}

}  // namespace

Expected<Attempt> lower_rows(const Group& given, const machine::Machine& machine,
                             const GroupOptions& options) {
  const Group group = options.exact || is_discrete(given) ? given : without_roundings(given);
  std::optional<RowsLowering> lowering = rows_lowering(group, machine, options);
  return lowering ? lowering->run() : Expected<Attempt>(Attempt{});
}

ScheduleCandidates rows_space(const Group& group, const machine::Machine& machine,
                              const GroupOptions& options) {
  ScheduleCandidates space;
  if (std::optional<RowsLowering> lowering = rows_lowering(group, machine, options))
    for (RowsSchedule& schedule : lowering->space()) space.push_back({std::move(schedule), 0});
  return space;
}

}  // namespace tessera::lower
