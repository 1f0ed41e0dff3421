#include <fmt/format.h>

#include <algorithm>

#include "tessera/lower/attention_form.h"
#include "tessera/lower/evaluate.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {
namespace {

using tile::Extents;
using tile::Type;

/// Attention kernel: a program holds whole rows of the scores in a tile, so that every reduction
/// over the keys is one reduction of a tile, as in the definition.
class AttentionKernel {
 public:
  using Id = tile::ValueId;

  AttentionKernel(const Group& group, const AttentionForm& form, std::int64_t rows, DType products)
      : group_(group),
        form_(form),
        rows_(rows),
        products_(products),
        b_(form.result.stage->name()),
        e_(b_, DType::F32) {}

  Expected<Lowered> run() {
    Lowered lowered;
    TESSERA_TRY(const std::vector<Operand> tensors, tensors_of(group_.stages));
    for (const Operand& tensor : tensors)
      if (!is_stage(tensor.name)) TESSERA_TRY_DONE(add(tensor, lowered.arguments));
    const std::string& out = form_.result.stage->name();
    TESSERA_TRY_DONE(add(*std::ranges::find(tensors, out, &Operand::name), lowered.arguments));
    bind_programs(lowered.grid);

    const Id queries = factor(form_.scores, form_.queries, form_.row, form_.inner);
    const Id keys = factor(form_.scores, form_.keys, form_.inner, form_.key);
    hold_tile(form_.scores, product(queries, keys));
    for (const AttentionStage& stage : form_.between) hold_tile(stage, std::nullopt);
    const Id weights = factor(form_.result, form_.weights, form_.row, form_.key);
    const Id values = factor(form_.result, form_.values, form_.key, form_.width);
    store(product(weights, values));
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

  /// Blocks of rows run fastest: they share keys and values.
  void bind_programs(tile::Grid& grid) {
    if (form_.row >= 0) {
      grid[0] = ceil_div(extent(form_.row), rows_);
      block_ = grid[0] == 1 ? Position{} : *scalar_position(program(0, grid[0])).times(rows_);
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

  Id factor(const AttentionStage& of, const Scalar& scalar, int first, int second) {
    set_axes(first, second);
    enter(of);
    const Id id = e_.full(e_.converted(e_.evaluate(scalar), Sort::Value));
    e_.pop_scope();
    return products_ == DType::F32 || e_.error() ? id : b_.cast(id, products_);
  }

  Value product(Id a, Id b) {
    if (e_.error()) return {};
    const Type sum = Type::tile(DType::F32, {b_.type(a).shape[0], b_.type(b).shape[1]});
    return {.sort = Sort::Value, .id = b_.dot(a, b, b_.constant(sum, 0.0))};
  }

  /// Computes a stage of rows, whose fold is a product or is run here.
  void hold_tile(const AttentionStage& of, const std::optional<Value>& sum) {
    set_axes(form_.row, form_.key);
    enter(of);
    if (sum)
      e_.set_fold(*of.fold, *sum);
    else
      e_.run_fold(of.fold, {.vectors = {1}});
    const Value value = e_.converted(e_.evaluate(of.stage->output.value), Sort::Value);
    Evaluator::HeldTile held{.at = {}, .value = value};
    for (const MergedAxis& merged : of.stage->output.axes)
      held.at.push_back(e_.evaluate(Scalar(merged)).position.value_or(Position{}));
    e_.pop_scope();
    e_.hold_tile(of.stage->name(), std::move(held));
  }

  void store(Value sum) {
    const AttentionStage& of = form_.result;
    set_axes(form_.row, form_.width);
    enter(of);
    if (form_.outside && !e_.error()) {
      const Id outside = e_.full(e_.converted(e_.evaluate(*form_.outside), Sort::Value));
      sum.id = b_.mul(*sum.id, outside);
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
  const std::int64_t rows_;
  const DType products_;
  tile::Builder b_;
  Evaluator e_;
  Position block_ = {};  // where the rows begin
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

/// Wider scores than these leave the caches.
constexpr std::int64_t kMostKeys = 8192;

}  // namespace

Expected<Attempt> lower_attention(const Group& group, const machine::Machine& machine,
                                  const GroupOptions& options) {
  const auto form = attention_form(group, options.exact);
  if (!form || form->extents[static_cast<std::size_t>(form->key)] > kMostKeys) return Attempt{};
  const std::int64_t rows = rows_of(*form, machine);
  const bool in_full = traits_of(machine).tiles_by_thread_blocks() &&
                       options.contraction_dtype == DType::BF16 &&
                       multiply_adds(*form) < kSmallContraction;
  auto lowered =
      AttentionKernel(group, *form, rows, in_full ? DType::F32 : options.contraction_dtype).run();
  if (!lowered) return Attempt{};  // by other strategies, stage by stage
  GroupCode code{.strategy = fmt::format("attention, {} rows at a time", rows)};
  code.kernels.push_back(*std::move(lowered));
  return Attempt(std::move(code));
}

}  // namespace tessera::lower
