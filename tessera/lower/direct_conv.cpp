#include "tessera/lower/direct_conv.h"

#include <algorithm>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/range.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {

using tile::Loop;
using tile::Nest;
using tile::Schedule;
using tile::Stage;

namespace {

/// Largest number of unrolled taps, and of operations: longer code is no faster and takes long to
/// compile.
constexpr std::int64_t kMostTaps = 64, kMostOperations = 256;
/// Least elements of a tile along the vectorized axis.
constexpr std::int64_t kLeastPart = 96;
/// Largest number of accumulators in registers.
constexpr std::int64_t kMostNeighbours = 8;
/// Neighbouring outputs from which on a whole window is unrolled on x86-64. Sapphire Rapids: 7 x 7
/// with 5 of them takes 1.16 times as long as row by row with 8, 5 x 5 with 7 takes 0.86 times.
constexpr std::int64_t kLeastNeighbours = 6;

/// Whether the reduction reads a tensor that is contiguous along a loop.
bool reads_along(const Fold& fold, const Nest& nest, const std::string& loop) {
  bool along = false;
  const auto innermost = [&](const node::Read& read) {
    for (auto at = read.at.rbegin(); at != read.at.rend(); ++at) {
      const auto loops = loops_of(nest, *at);
      if (loops.empty()) continue;  // an axis of one position
      along = along || std::ranges::count(loops, loop) > 0;
      return;
    }
  };
  for (const Scalar& lift : fold.lift) for_each_read(lift, innermost);
  return along;
}

/// Whether the reduction multiplies tensors that are all contiguous along a loop.
bool multiplies_along(const Fold& fold, const Nest& nest, const std::string& loop) {
  bool along = tile::product_of(fold).has_value();
  for_each_read(fold.lift[0], [&](const node::Read& read) {
    along =
        along && !read.at.empty() && std::ranges::count(loops_of(nest, read.at.back()), loop) > 0;
  });
  return along;
}

/// Number of functions and casts in an expression, without its reductions and indices. `counted`
/// are shared subexpressions that are counted already.
std::int64_t operations(const Scalar& scalar, std::set<const void*>& counted) {
  const bool computes = std::holds_alternative<node::Apply>(scalar.node()) ||
                        std::holds_alternative<node::Cast>(scalar.node());
  if (!computes || !counted.insert(scalar.id()).second) return 0;
  std::int64_t count = 1;
  for_each_part(scalar, [&](const Scalar& part) { count += operations(part, counted); });
  return count;
}

/// Operations for one element: a fold of so many taps, and the epilogue.
std::int64_t element_operations(const Stage& stage, const Fold& fold, std::int64_t taps) {
  std::set<const void*> counted;
  std::int64_t lift = 0;
  for (const Scalar& part : fold.lift) lift += operations(part, counted);
  return taps * std::max<std::int64_t>(1, lift) + operations(stage.output.value, counted);
}

/// Number of neighbouring outputs to compute at a time, by registers. Shared operands are loaded
/// once per tile, and the last tile may overlap the one before.
std::int64_t neighbours_of(std::int64_t extent, std::int64_t operations) {
  const std::int64_t most = std::max<std::int64_t>(1, kMostOperations / operations);
  if (extent <= std::min<std::int64_t>(most, 2 * kMostNeighbours)) return extent;
  std::int64_t best = 1, least = 0;
  for (std::int64_t n = 1; n <= std::min(most, kMostNeighbours); ++n) {
    const std::int64_t work = ceil_div(extent, n) * (n + 2);
    if (n == 1 || work <= least) best = n, least = work;
  }
  return best;
}

/// The largest part of the vectors that leaves no rest, if that is not much less.
std::int64_t whole_part(std::int64_t extent, std::int64_t most, std::int64_t width) {
  for (std::int64_t part = most / width * width; part * 4 > most && part > 0; part -= width)
    if (extent % part == 0) return part;
  return extent;
}

/// Loops of a stage with one reduction, without those of one iteration.
struct DirectLoops {
  std::vector<Loop> output = {}, reduced = {};
  std::int64_t terms = 1;  // of a sum, up to one more than kMostTaps

  /// Number of reduced loops, the last ones, with at most kMostTaps iterations in total.
  std::size_t short_ones() const {
    std::int64_t taps = 1;
    std::size_t count = 0;
    while (count < reduced.size() && taps * reduced[reduced.size() - 1 - count].extent <= kMostTaps)
      taps *= reduced[reduced.size() - 1 - count++].extent;
    return count;
  }
};
/// None where a loop has no iteration.
std::optional<DirectLoops> direct_loops(const Nest& nest) {
  DirectLoops loops;
  for (const Loop& loop : nest.loops) {
    if (loop.extent < 1) return std::nullopt;
    if (loop.extent > 1) (loop.reduces ? loops.reduced : loops.output).push_back(loop);
    if (loop.reduces) loops.terms = std::min(loops.terms * loop.extent, kMostTaps + 1);
  }
  return loops;
}

/// Number of f32 lanes of a vector.
std::int64_t lanes_of(const machine::Machine& machine) {
  return std::max(1, machine.vector_bytes / 4);
}

/// Whether the last loop of the output fills vectors, at least small ones.
bool fills_vectors(const DirectLoops& loops, const machine::Machine& machine) {
  return !loops.output.empty() &&
         loops.output.back().extent >= std::min<std::int64_t>(lanes_of(machine), 4);
}

/// Whether a large window slides: its rows are short, and neighbouring outputs of a row, more than
/// there are accumulators or as many as a row of the window has positions, read the same pixels of
/// the vectorized axis. Of fewer outputs, each sums over many positions (direct_filter_schedule).
bool slides(const Fold& fold, const Nest& nest, const DirectLoops& loops,
            const machine::Machine& machine) {
  if (loops.output.size() < 2 || loops.short_ones() == 0) return false;
  const Loop &row = loops.output[loops.output.size() - 2], &taps = loops.reduced.back();
  if (row.extent < taps.extent && row.extent <= machine.vector_registers * 3 / 4) return false;
  const std::string& lanes = loops.output.back().name;
  bool shared = false;
  for_each_read(fold.lift[0], [&](const node::Read& read) {
    bool has_lanes = false, slides = false;  // of a dense convolution only the weights have lanes
    for (const Scalar& at : read.at) {
      const auto used = loops_of(nest, at);
      const auto has = [&](const std::string& name) { return std::ranges::count(used, name) > 0; };
      has_lanes = has_lanes || has(lanes);
      slides = slides || (has(row.name) && has(taps.name));
    }
    shared = shared || (has_lanes && slides);
  });
  return shared;
}

/// Runs the loops of the grid as parallel programs, in this order, with the `inner` ones inside.
Expected<std::optional<Schedule>> with_grid(Schedule schedule, const std::vector<std::string>& grid,
                                            const std::vector<std::string>& inner) {
  std::vector<std::string> order = grid;
  order.insert(order.end(), inner.begin(), inner.end());
  if (order.size() > 1) {
    TESSERA_TRY(schedule, schedule.reorder(order));
  }
  for (const std::string& name : grid) {
    TESSERA_TRY(schedule, schedule.parallel(name));
  }
  return std::optional(std::move(schedule));
}

}  // namespace

Expected<std::optional<Schedule>> direct_conv_schedule(const Stage& stage,
                                                       const machine::Machine& machine,
                                                       const LoopParameters& parameters) {
  const auto fold = main_fold(stage);
  // Where threads are enough, to write windows out is long code for nothing.
  if (fold == nullptr || stage.output.forward || !traits_of(machine).uses_direct_conv)
    return std::optional<Schedule>();
  TESSERA_TRY(Schedule schedule, Schedule::of({stage}));
  const Nest nest = schedule.nest(stage.name());
  auto loops = direct_loops(nest);
  if (!loops || !fills_vectors(*loops, machine) ||
      (loops->terms > kMostTaps && !slides(*fold, nest, *loops, machine)) ||
      !reads_along(*fold, nest, loops->output.back().name))
    return std::optional<Schedule>();
  std::vector<Loop>&output = loops->output, &window = loops->reduced;
  const std::int64_t width = lanes_of(machine);
  // Large windows: one row or several are unrolled, the other axes of the window stay loops.
  const bool is_crowded = machine.architecture == machine::Architecture::X86_64 &&
                          window.size() > 1 && kMostOperations / loops->terms < kLeastNeighbours &&
                          slides(*fold, nest, *loops, machine);
  const std::size_t unrolled = is_crowded ? 1 : loops->short_ones();
  window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(unrolled));
  std::int64_t taps = 1;
  for (const Loop& loop : window) taps *= loop.extent;

  const auto take = [&](Expected<Schedule> next) -> Expected<Done> {
    TESSERA_TRY(schedule, std::move(next));
    return Done{};
  };
  std::string vectors = output.back().name;
  // What the window reads for all vectors stays in the first-level cache; where that can be, all
  // rows that it reads, which the next programs read again. Short pieces of memory would not pay.
  const std::int64_t across = output.size() > 1 ? output[output.size() - 2].extent : 1;
  const std::int64_t rows = window.empty() ? 1 : taps / window.back().extent;
  const std::int64_t in_rows = machine.l1d / 3 / 4 / (rows * across);
  const std::int64_t most =
      parameters.elements > 0
          ? parameters.elements
          : std::max<std::int64_t>(64,
                                   in_rows >= kLeastPart ? in_rows : machine.l1d / 2 / 4 / taps);
  const std::int64_t all = output.back().extent, part = whole_part(all, most, width);
  std::string parts;
  if (all > most && part < all) {
    TESSERA_TRY_DONE(take(schedule.split(vectors, part)));
    parts = vectors + ".o";
    vectors += ".i";
  }
  output.pop_back();
  std::vector<std::string> neighbours;
  if (!output.empty()) {
    const Loop row = output.back();
    const std::int64_t n = parameters.neighbours > 0
                               ? std::min(parameters.neighbours, row.extent)
                               : neighbours_of(row.extent, element_operations(stage, *fold, taps));
    std::string inner = row.name;
    if (n < row.extent) {
      TESSERA_TRY_DONE(take(schedule.cover(row.name, n)));
      neighbours.push_back(row.name + ".o");
      inner += ".i";
    }
    TESSERA_TRY_DONE(take(schedule.unroll(inner)));
    neighbours.push_back(inner);
  }
  for (const Loop& loop : window) TESSERA_TRY_DONE(take(schedule.unroll(loop.name)));
  TESSERA_TRY_DONE(take(schedule.vectorize(vectors)));
  // Programs over all other loops, then the neighbours.
  std::vector<std::string> grid;
  for (const Loop& loop : schedule.nest(stage.name()).loops)
    if (!loop.reduces && loop.kind == Loop::Kind::Serial &&
        std::ranges::find(neighbours, loop.name) == neighbours.end())
      grid.push_back(loop.name);
  // Rows of one part after the other.
  if (const auto outer = std::ranges::find(grid, parts); outer != grid.end())
    std::rotate(grid.begin(), outer, outer + 1);
  return with_grid(std::move(schedule), grid, neighbours);
}

Expected<std::optional<Schedule>> direct_filter_schedule(const Stage& stage,
                                                         const machine::Machine& machine,
                                                         const LoopParameters& parameters) {
  const auto fold = main_fold(stage);
  if (fold == nullptr || stage.output.forward || !traits_of(machine).uses_direct_conv)
    return std::optional<Schedule>();
  TESSERA_TRY(Schedule schedule, Schedule::of({stage}));
  const Nest nest = schedule.nest(stage.name());
  auto loops = direct_loops(nest);
  if (!loops || loops->terms <= kMostTaps || !fills_vectors(*loops, machine) ||
      !multiplies_along(*fold, nest, loops->output.back().name))
    return std::optional<Schedule>();
  std::vector<Loop>& output = loops->output;
  const std::int64_t width = lanes_of(machine);

  const auto take = [&](Expected<Schedule> next) -> Expected<Done> {
    TESSERA_TRY(schedule, std::move(next));
    return Done{};
  };
  const Loop channels = output.back();
  output.pop_back();
  // Accumulators in registers, beside the operands: taps first, then vectors of channels.
  const std::int64_t sums = std::max(1, machine.vector_registers * 3 / 4);
  std::int64_t jammed = 1;
  std::vector<std::string> taps;
  for (auto loop = output.rbegin(); loop != output.rend() && jammed * loop->extent <= sums;
       ++loop) {
    jammed *= loop->extent;
    taps.insert(taps.begin(), loop->name);
    TESSERA_TRY_DONE(take(schedule.unroll(loop->name)));
  }
  const std::int64_t most = parameters.elements > 0
                                ? parameters.elements
                                : std::max<std::int64_t>(sums / jammed, 1) * width;
  std::string vectors = channels.name;
  if (const std::int64_t part = whole_part(channels.extent, most, width); part < channels.extent) {
    TESSERA_TRY_DONE(take(schedule.split(vectors, part)));
    vectors += ".i";
  } else if (channels.extent > most) {
    TESSERA_TRY_DONE(take(schedule.cover(vectors, most)));
    vectors += ".i";
  }
  TESSERA_TRY_DONE(take(schedule.vectorize(vectors)));
  std::vector<std::string> grid;
  for (const Loop& loop : schedule.nest(stage.name()).loops)
    if (!loop.reduces && loop.kind == Loop::Kind::Serial) grid.push_back(loop.name);
  return with_grid(std::move(schedule), grid, taps);
}

}  // namespace tessera::lower
