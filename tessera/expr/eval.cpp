#include "tessera/expr/eval.h"

#include <algorithm>
#include <mutex>
#include <type_traits>

#include "tessera/expr/lanes.h"
#include "tessera/expr/plan.h"
#include "tessera/expr/segments.h"
#include "tessera/expr/transform.h"
#include "tessera/support/parallel.h"

namespace tessera {
namespace {

/// Largest block of lanes.
struct BlockLimits {
  std::int64_t lanes = 512;
  std::int64_t rows = 1;
};

/// Axis along which a block of a contraction has several rows, of those before the partial one: an
/// axis that one operand does not depend on, so that all rows read the same elements of it, and
/// that decides which single element of the other one a row reads (channels of a convolution).
int row_axis_of(const Plan& plan, int partial) {
  constexpr std::int64_t kFewest = 4;  // positions that are worth it
  const auto depends = [&](int number, int axis) {
    const Access& access = plan.accesses[static_cast<std::size_t>(number)];
    return access.offset.factor(axis) != 0 || !access.computed.empty() ||
           std::ranges::any_of(access.checked, [&](const Access::Checked& checked) {
             return checked.at.factor(axis) != 0;
           });
  };
  const auto is_uniform = [&](int number) {
    for (int axis = partial; axis < static_cast<int>(plan.axes.size()); ++axis)
      if (depends(number, axis)) return false;
    return true;
  };
  for (const FoldPlan& fold : plan.folds) {
    if (fold.product.size() != 2) continue;
    for (int axis = partial - 1; axis >= 0; --axis)
      for (const std::size_t shared : {0, 1})
        if (plan.axes[static_cast<std::size_t>(axis)] >= kFewest &&
            !depends(fold.product[shared], axis) && depends(fold.product[1 - shared], axis) &&
            is_uniform(fold.product[1 - shared]))
          return axis;
  }
  return partial - 1;
}

/// Partition of the outermost axes' positions into blocks of lanes: whole inner axes, then a range
/// of the next one, and some rows of it along an axis outside of that. Values that depend on the
/// other axes only are the same for all lanes of a block.
struct Blocks {
  Blocks(const Plan& plan, const BlockLimits& limits) {
    const std::vector<std::int64_t>& axes = plan.axes;
    const std::int64_t most_lanes = limits.lanes / limits.rows;
    partial = static_cast<int>(axes.size());
    while (partial > 0 && inner * axes[static_cast<std::size_t>(partial - 1)] <= most_lanes)
      inner *= axes[static_cast<std::size_t>(--partial)];
    --partial;
    extent = partial < 0 ? 1 : axes[static_cast<std::size_t>(partial)];
    stretch = std::clamp<std::int64_t>(most_lanes / std::max<std::int64_t>(inner, 1), 1, extent);
    // Balanced ranges: no small remainder at the end.
    const std::int64_t pieces = (extent + stretch - 1) / stretch;
    stretch = (extent + pieces - 1) / pieces;
    per_outer = (extent + stretch - 1) / stretch;
    if (limits.rows > 1 && partial > 0) {
      const int axis = row_axis_of(plan, partial);
      row_extent = axes[static_cast<std::size_t>(axis)];
      rows = std::min(limits.rows, row_extent);
      row_pieces = (row_extent + rows - 1) / rows;
      if (row_extent > 1) row_axis = axis;
    }
    strides.resize(static_cast<std::size_t>(std::max(partial, 0)));
    std::int64_t stride = extent * inner;
    for (int axis = partial - 1; axis >= 0; --axis) {
      strides[static_cast<std::size_t>(axis)] = stride;
      stride *= axes[static_cast<std::size_t>(axis)];
      if (axis != row_axis) outer *= axes[static_cast<std::size_t>(axis)];
    }
  }

  std::int64_t count() const { return outer * row_pieces * per_outer; }
  std::int64_t lanes() const { return rows * stretch * inner; }

  int partial = -1;                   // the axis that is cut, or -1
  std::int64_t inner = 1;             // positions of the axes inside of it
  std::int64_t extent = 1;            // its extent
  std::int64_t stretch = 1;           // how much of it is in a block
  std::int64_t per_outer = 1;         // blocks along it
  int row_axis = -1;                  // the axis along which a block has rows, or -1
  std::int64_t rows = 1;              // positions of it that are in a block
  std::int64_t row_extent = 1;        // its extent
  std::int64_t row_pieces = 1;        // blocks along it
  std::int64_t outer = 1;             // positions of the other axes before the one that is cut
  std::vector<std::int64_t> strides;  // of the axes before the one that is cut, in the results
};

/// Consumer of results that are stored one after the other: `position` is that of the first lane.
template <class T>
using Sink = std::function<Expected<Done>(Lanes<T>& lanes, std::int64_t position,
                                          typename Lanes<T>::Stretch stretch)>;

/// Order in which blocks are computed: as results are stored, or the same range for all outer
/// positions, which keeps an operand in the cache that does not depend on them (weights, an image).
enum class Order : std::uint8_t { AsStored, ByStretch };

template <class T>
Expected<Done> run_block(Lanes<T>& lanes, const Plan& plan, const Blocks& blocks, Order order,
                         std::int64_t block, const Sink<T>& sink) {
  const bool stored = order == Order::AsStored;
  const std::int64_t all_rows = blocks.outer * blocks.row_pieces;
  const std::int64_t above = stored ? block / blocks.per_outer : block % all_rows;
  const std::int64_t piece = stored ? block % blocks.per_outer : block / all_rows;
  const std::int64_t outer = above / blocks.row_pieces;
  std::int64_t rest = outer, position = 0;
  for (int axis = blocks.partial - 1; axis >= 0; --axis) {
    if (axis == blocks.row_axis) continue;
    const std::int64_t extent = plan.axes[static_cast<std::size_t>(axis)];
    lanes.set_slot(axis, rest % extent);
    position += rest % extent * blocks.strides[static_cast<std::size_t>(axis)];
    rest /= extent;
  }
  // Blocks of several rows have one size. The last one begins earlier; what another block stores is
  // left to it.
  const bool several = blocks.row_axis >= 0;
  const std::int64_t row_stride =
      several ? blocks.strides[static_cast<std::size_t>(blocks.row_axis)] : 0;
  const std::int64_t own = piece * blocks.stretch,
                     own_row = above % blocks.row_pieces * blocks.rows;
  const std::int64_t start = several ? std::min(own, blocks.extent - blocks.stretch) : own;
  const std::int64_t length = std::min(blocks.stretch, blocks.extent - start);
  const std::int64_t row = std::min(own_row, blocks.row_extent - blocks.rows);
  if (several) lanes.set_slot(blocks.row_axis, row);
  if (blocks.partial >= 0) lanes.set_slot(blocks.partial, start);
  TESSERA_TRY_DONE(lanes.run(static_cast<int>(blocks.rows * length * blocks.inner)));
  for (std::int64_t r = own_row; r < row + blocks.rows; ++r) {
    const std::int64_t first = ((r - row) * length + own - start) * blocks.inner;
    TESSERA_TRY_DONE(
        sink(lanes, position + r * row_stride + own * blocks.inner,
             {static_cast<int>(first), static_cast<int>((start + length - own) * blocks.inner)}));
  }
  return Done{};
}

/// Block size for a plan. A block of a contraction has several rows, which read the same elements
/// of one operand: `weights` in the definition of a matmul.
template <class T>
BlockLimits block_limits(const Plan& plan) {
  constexpr std::int64_t kManySteps = 64;
  const bool contracts = std::ranges::any_of(plan.folds, [&](const FoldPlan& fold) {
    std::int64_t steps = 1;
    for (const FoldPlan::Loop& loop : fold.loops)
      if (steps < kManySteps) steps *= std::max<std::int64_t>(loop.extent, 1);
    return fold.product.size() == 2 && steps >= kManySteps;
  });
  if (std::is_floating_point_v<T> && contracts) return {.lanes = 512, .rows = 8};
  return {};
}

/// Estimated number of scalar operations of a plan, to decide whether starting threads pays.
double work_of(const Plan& plan) {
  double positions = 1, steps = 1;
  for (const std::int64_t extent : plan.axes) positions *= static_cast<double>(extent);
  for (const FoldPlan& fold : plan.folds) {
    double loops = 1;
    for (const FoldPlan::Loop& loop : fold.loops)
      loops *= static_cast<double>(std::max<std::int64_t>(loop.extent, 1));
    steps += loops;
  }
  return positions * (steps + static_cast<double>(plan.code.size()));
}

Diagnostic stopped() {
  return {.id = "stopped", .message = "the evaluation was stopped"};
}

template <class T>
Expected<Done> run_plan(const Plan& plan, std::span<const ConstArray> inputs,
                        const std::vector<Operand>& operands, const EvalOptions& options,
                        Order order, const Sink<T>& sink) {
  for (const std::int64_t extent : plan.axes)
    if (extent == 0) return Done{};
  const Blocks blocks(plan, block_limits<T>(plan));
  const typename Lanes<T>::Setup setup{.plan = plan,
                                       .operands = operands,
                                       .inputs = inputs,
                                       .stop = options.stop,
                                       .lanes = static_cast<int>(blocks.lanes()),
                                       .partial = blocks.partial,
                                       .rows = static_cast<int>(blocks.rows),
                                       .row_axis = blocks.row_axis,
                                       .in_order = options.in_order};
  constexpr double kWorthAThread = 5e5;
  const std::int64_t threads =
      work_of(plan) < kWorthAThread ? 1 : std::min<std::int64_t>(options.threads, blocks.count());
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::optional<Diagnostic> error;
  const auto work = [&] {
    Lanes<T> lanes(setup);
    for (std::int64_t block = next++; block < blocks.count(); block = next++) {
      const bool stop = options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
      Expected<Done> done =
          stop ? Expected<Done>(stopped()) : run_block(lanes, plan, blocks, order, block, sink);
      if (!done) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::move(done).error();
        next = blocks.count();
      }
    }
  };
  on_threads(static_cast<std::size_t>(threads), work);
  if (error) return *error;
  return Done{};
}

template <class T>
Expected<Done> eval_output(const Definition& definition, const Output& output, const Sizes& sizes,
                           std::span<const ConstArray> inputs, const MutableArray& into,
                           const EvalOptions& options) {
  std::vector<Axis> over;
  for (const MergedAxis& axis : output.axes)
    for (const Axis& part : axis.parts) over.push_back(part);
  // Evaluates each part of a concat on its own range only.
  const Segments whole_output{.parts = {{0, output.value}}};
  Segments pieces = segments_of(output.value, sizes).value_or(whole_output);
  const auto cut = std::ranges::find(over, pieces.axis, &Axis::name);
  if (cut == over.end()) pieces = whole_output;
  std::int64_t whole = 1, inner = 1;  // along the axis, and inside of it
  if (cut != over.end()) {
    whole = resolved(cut->size(), sizes).constant().value_or(1);
    for (auto axis = cut + 1; axis != over.end(); ++axis)
      inner *= resolved(axis->size(), sizes).constant().value_or(1);
  }
  for (std::size_t i = 0; i < pieces.parts.size(); ++i) {
    const std::int64_t begin = pieces.parts[i].begin;
    const std::int64_t end =
        i + 1 < pieces.parts.size() ? std::min(pieces.parts[i + 1].begin, whole) : whole;
    Scalar value = pieces.parts[i].value;
    if (cut != over.end()) {
      if (begin >= end) continue;
      cut->extent = Dim(end - begin);
      Transform moved;
      moved.index = [&](const std::string& axis) -> std::optional<Scalar> {
        if (axis != cut->name || begin == 0) return std::nullopt;
        return index_of(axis) + Scalar(begin);
      };
      value = moved(value);
    }
    TESSERA_TRY(const Plan plan, make_plan(definition.inputs, over, {value}, sizes));
    const std::int64_t run = (end - begin) * inner;  // positions that lie together
    const Sink<T> store = [&](Lanes<T>& lanes, std::int64_t position,
                              typename Lanes<T>::Stretch stretch) -> Expected<Done> {
      if (cut == over.end()) {
        lanes.store(plan.results[0], into, position, stretch);
        return Done{};
      }
      for (int done = 0; done < stretch.count;) {
        const std::int64_t at = position + done;
        const auto many =
            static_cast<int>(std::min<std::int64_t>(stretch.count - done, run - at % run));
        lanes.store(plan.results[0], into, (at / run * whole + begin) * inner + at % run,
                    {stretch.first + done, many});
        done += many;
      }
      return Done{};
    };
    TESSERA_TRY_DONE(
        run_plan<T>(plan, inputs, definition.inputs, options, Order::ByStretch, store));
  }
  return Done{};
}

template <class T>
Expected<Done> eval_forward(const Definition& definition, const Output& output, const Sizes& sizes,
                            std::span<const ConstArray> inputs, const MutableArray& into,
                            const EvalOptions& options) {
  const ScatterWrite& forward = *output.forward;
  std::vector<Scalar> results = forward.target;
  results.push_back(forward.value);
  TESSERA_TRY(const Plan plan, make_plan(definition.inputs, forward.over, results, sizes));
  std::vector<std::int64_t> shape;
  for (const Dim& dim : output.shape()) shape.push_back(*resolved(dim, sizes).constant());
  const Sink<T> write = [&](Lanes<T>& lanes, std::int64_t,
                            typename Lanes<T>::Stretch stretch) -> Expected<Done> {
    for (int lane = stretch.first; lane < stretch.first + stretch.count; ++lane) {
      std::int64_t position = 0;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::int64_t at = lanes.integer(plan.results[axis], lane);
        if (at < 0 || at >= shape[axis])
          return Diagnostic{.id = "eval-index",
                            .message = fmt::format("a write to {} goes to index {} of axis {}",
                                                   output.name, at, axis),
                            .note = fmt::format("the axis has size {}", shape[axis])};
        position = position * shape[axis] + at;
      }
      lanes.write(plan.results.back(), lane, forward.combine, into, position);
    }
    return Done{};
  };
  EvalOptions in_order = options;
  in_order.threads = 1;
  return run_plan<T>(plan, inputs, definition.inputs, in_order, Order::AsStored, write);
}

}  // namespace

template <class T>
Expected<Done> eval(const Definition& definition, const Sizes& sizes,
                    std::span<const ConstArray> inputs, std::span<const MutableArray> outputs,
                    const EvalOptions& options) {
  TESSERA_CHECK(inputs.size() == definition.inputs.size(), "inputs do not fit the definition");
  TESSERA_CHECK(outputs.size() <= definition.outputs.size(), "outputs do not fit the definition");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data == nullptr) continue;  // not wanted
    const Output& output = definition.outputs[i];
    TESSERA_TRY_DONE(eval_output<T>(definition, output, sizes, inputs, outputs[i], options));
    if (output.forward)
      TESSERA_TRY_DONE(eval_forward<T>(definition, output, sizes, inputs, outputs[i], options));
  }
  return Done{};
}

#define TESSERA_INSTANTIATE(T)                                                                  \
  template Expected<Done> eval<T>(const Definition&, const Sizes&, std::span<const ConstArray>, \
                                  std::span<const MutableArray>, const EvalOptions&);
TESSERA_NUMBER_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
