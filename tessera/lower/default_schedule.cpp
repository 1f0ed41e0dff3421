#include <algorithm>
#include <bit>
#include <functional>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/range.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {

using tile::Loop;
using tile::Nest;
using tile::Schedule;
using tile::Stage;

namespace {

/// Tile size of at most `most`; one that divides the extent if it is more than half of that.
std::int64_t part_of(std::int64_t extent, std::int64_t most) {
  if (extent <= most) return extent;
  for (std::int64_t factor = most; factor * 2 > most && factor > 1; --factor)
    if (extent % factor == 0) return factor;
  return most;
}

/// The same for tiles that are padded to powers of two: minimizes padding.
std::int64_t filled_part_of(std::int64_t extent, std::int64_t most) {
  const std::int64_t part = part_of(extent, most);
  if (part == extent || most <= 1) return part;
  const auto power = [](auto round, std::int64_t x) {
    return static_cast<std::int64_t>(round(static_cast<std::uint64_t>(x)));
  };
  const std::int64_t down = power(std::bit_floor<std::uint64_t>, most);
  const auto filled = [&](std::int64_t x) {
    return ceil_div(extent, x) * power(std::bit_ceil<std::uint64_t>, x);
  };
  return filled(down) < filled(part) ? down : part;
}

/// Chooses the default schedule of one stage.
class Chooser {
 public:
  Chooser(Schedule schedule, const Stage& stage, const machine::Machine& machine,
          const LoopParameters& parameters)
      : schedule_(std::move(schedule)), stage_(stage), machine_(machine), parameters_(parameters) {}

  Expected<Schedule> run() {
    if (stage_.output.forward) return std::move(schedule_);
    if (!matrices()) elements();
    // What is left of the output's loops are programs.
    for (const Loop& loop : std::vector<Loop>(nest().loops))
      if (!loop.reduces && loop.kind == Loop::Kind::Serial && loop.extent > 0 &&
          loop.name != serial_)
        take(schedule_.parallel(named(loop.name)));
    if (error_) return *error_;
    return std::move(schedule_);
  }

 private:
  const Nest& nest() const { return schedule_.nest(stage_.name()); }
  std::string named(const std::string& loop) const { return stage_.name() + "/" + loop; }
  void take(Expected<Schedule> next) {
    if (next)
      schedule_ = *std::move(next);
    else if (!error_)
      error_ = std::move(next).error();
  }

  /// Makes the loops vectors, the last first, until there are so many elements; gives how many.
  std::int64_t vectorize(const std::vector<Loop>& loops, std::int64_t most) {
    std::int64_t elements = 1;
    std::vector<std::string> vectors;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      if (loop->extent <= 1) continue;
      const std::int64_t part = (traits_of(machine_).has_thread_blocks ? filled_part_of : part_of)(
          loop->extent, most / elements);
      if (part <= 1) break;
      elements *= part;
      std::string name = loop->name;
      if (part < loop->extent) {
        take(schedule_.split(named(name), part));
        name += ".i";
      }
      vectors.push_back(name);
      if (part < loop->extent || vectors.size() == 4) break;
    }
    // In their order: the innermost is the last axis of the tile.
    for (auto name = vectors.rbegin(); name != vectors.rend(); ++name)
      take(schedule_.vectorize(named(*name)));
    return elements;
  }

  /// A product of matrices: rows and columns so that the accumulators and a panel of each factor
  /// stay in the second-level cache.
  bool matrices() {
    const auto fold = main_fold(stage_);
    const auto factors = fold == nullptr ? std::nullopt : tile::product_of(*fold);
    if (!factors) return false;
    const auto left = loops_of(nest(), factors->first), right = loops_of(nest(), factors->second);
    std::vector<Loop> rows, columns, sums;
    std::int64_t m = 1, n = 1;
    for (const Loop& loop : nest().loops) {
      const bool in_left = std::ranges::count(left, loop.name) > 0,
                 in_right = std::ranges::count(right, loop.name) > 0;
      if (loop.extent <= 1) continue;
      if (loop.reduces && in_left && in_right) sums.push_back(loop);
      if (loop.reduces || in_left == in_right) continue;
      (in_left ? rows : columns).push_back(loop);
      (in_left ? m : n) *= loop.extent;
    }
    if (sums.empty() || m < 4 || n < 4) return false;
    const Loop sum = *std::ranges::max_element(sums, {}, &Loop::extent);
    if (sum.extent < 8) return false;
    vectorize({sum}, 256);
    // The wider side is the columns'; few rows make wide tiles.
    const std::int64_t most = std::clamp<std::int64_t>(
        machine_.l2 / 2 / static_cast<std::int64_t>(sizeof(float)), 1 << 14, 1 << 16);
    const std::int64_t taken = vectorize(rows, m <= n ? 64 : 256);
    vectorize(columns, std::clamp<std::int64_t>(most / std::max<std::int64_t>(taken, 32), 32, 512));
    take(schedule_.tensorize(stage_.name()));
    return true;
  }

  /// Whether neighbours in memory are neighbours along the fold: then it is the fold that is taken
  /// in tiles. An index may also select a part of a row, as in part·length + position.
  bool folds_along_memory(const Fold& fold) const {
    bool along = false, across = false;
    for (const Scalar& lift : fold.lift)
      for_each_read(lift, [&](const node::Read& read) {
        if (read.at.empty()) return;
        const std::int64_t run = folded_run(read.at.back());
        for (const std::string& name : loops_of(nest(), read.at.back())) {
          const Loop* loop = nest().find(name);
          if (loop == nullptr || loop->extent <= 1) continue;
          if (loop->reduces)
            along = true;
          else
            across = across || run < kShortRow || stride_of(read.at.back(), name) < run;
        }
      });
    return along && !across;
  }

  /// Affine form of an index over the loops.
  std::optional<AffineIndex> affine_index(const Scalar& index) const {
    AxisExtents extents;
    for (const Loop& loop : nest().loops) extents[loop.name] = loop.extent;
    return affine(index, extents, stage_.sizes);
  }
  std::int64_t stride_of(const Scalar& index, const std::string& loop) const {
    const auto form = affine_index(index);
    return form ? std::abs(form->factor(loop)) : 0;
  }
  /// Number of neighbouring elements that a loop of the fold runs over; 0 if none does.
  std::int64_t folded_run(const Scalar& index) const {
    const auto form = affine_index(index);
    std::int64_t run = 0;
    for (const Loop& loop : nest().loops)
      if (form && loop.reduces && std::abs(form->factor(loop.name)) == 1)
        run = std::max(run, loop.extent);
    return run;
  }

  void elements() {
    std::vector<Loop> output, sums;
    std::int64_t all = 1;
    for (const Loop& loop : nest().loops) {
      (loop.reduces ? sums : output).push_back(loop);
      if (!loop.reduces)
        all = std::min<std::int64_t>(all * std::max<std::int64_t>(loop.extent, 1),
                                     std::int64_t{1} << 40);
    }
    // Enough programs for all cores, and tiles that stay in the first-level cache.
    std::int64_t most =
        std::clamp<std::int64_t>(all / (4 * std::max(machine_.cores, 1)), 1024, 4096);
    if (parameters_.elements > 0) most = parameters_.elements;
    const auto fold = main_fold(stage_);
    // Threads that have no element of their own take a part of the fold.
    const bool has_blocks = traits_of(machine_).has_thread_blocks;
    constexpr std::int64_t kFew = 1 << 17, kPart = 64;
    if (fold != nullptr && folds_along_memory(*fold)) {
      // A fold whose order matters, such as the position of a maximum, has rows as its lanes.
      const std::int64_t lanes = std::max(1, machine_.vector_bytes / 4);
      const bool is_across = !has_blocks && !fold->simple() && all >= lanes;
      // A row of sums is a program, or its parts in turn; a block shares short ones among its warps
      // (tile/gpu/row_schedule.h).
      constexpr std::int64_t kLongRow = 1 << 16;
      const bool is_row = has_blocks && fold->simple();
      const std::int64_t folded = vectorize(sums, is_row      ? kLongRow
                                                  : is_across ? 4096 / lanes
                                                              : 4096);
      most = is_across                       ? lanes
             : is_row && folded >= kShortRow ? 1
                                             : std::max<std::int64_t>(most / folded, 1);
    } else if (fold != nullptr && has_blocks && is_window(*fold, sums))
      most = write_out(sums);
    else if (fold != nullptr && has_blocks && is_weighted_window(*fold, sums))
      most = write_out_row(*fold, sums, output);
    else if (fold != nullptr && has_blocks && all < kFew)
      most = std::max<std::int64_t>(most / vectorize(sums, kPart), 1);
    if (const auto across = transposed(output); across && fold == nullptr) {
      most /= vectorize({*across}, across_part(*across, output, most));
      std::erase_if(output, [&](const Loop& loop) { return loop.name == across->name; });
    }
    if (fold == nullptr && !has_blocks && rows_of_memory(output, most)) return;
    if (most > 1) vectorize(output, most);
  }

  /// Vectorizes the last loops alone where others select rows of memory by indices that are not
  /// affine (a gather, a reflected border): each row is then read as it lies, not by pointers of
  /// its elements. A program loops over several short rows. Whether there are such rows.
  bool rows_of_memory(const std::vector<Loop>& output, std::int64_t most) {
    std::set<std::string> selecting;
    for_each_read(stage_.output.value, [&](const node::Read& read) {
      for (const Scalar& at : read.at)
        if (!affine_index(at))
          for (const std::string& name : loops_of(nest(), at)) selecting.insert(name);
    });
    std::vector<Loop> along;
    std::int64_t length = 1;
    auto loop = output.rbegin();
    for (; loop != output.rend() && (loop->extent <= 1 || !selecting.contains(loop->name));
         ++loop) {
      along.insert(along.begin(), *loop);
      length = std::min(length * std::max<std::int64_t>(loop->extent, 1), most);
    }
    if (loop == output.rend() || length < machine_.vector_bytes / 4) return false;
    vectorize(along, most);
    if (const std::int64_t rows = part_of(loop->extent, most / length); rows > 1) {
      serial_ = loop->name;
      if (rows < loop->extent) {
        take(schedule_.split(named(loop->name), rows));
        serial_ += ".i";
      }
    }
    return true;
  }

  /// Number of positions of a window, up to a bound.
  static std::int64_t taps_of(const std::vector<Loop>& sums) {
    constexpr std::int64_t kMany = 1 << 20;
    std::int64_t taps = 1;
    for (const Loop& loop : sums)
      taps = std::min(taps * std::clamp<std::int64_t>(loop.extent, 0, kMany), kMany);
    return taps;
  }
  /// Innermost loop of a window that has several positions.
  static std::vector<Loop>::const_reverse_iterator window_row(const std::vector<Loop>& sums) {
    return std::find_if(sums.rbegin(), sums.rend(),
                        [](const Loop& loop) { return loop.extent > 1; });
  }
  /// Few positions of something that is not multiplied: a pool. (With weights, loops were measured
  /// to be faster.)
  static bool is_window(const Fold& fold, const std::vector<Loop>& sums) {
    constexpr std::int64_t kMostTaps = 25;
    const std::int64_t taps = taps_of(sums);
    return taps > 1 && taps <= kMostTaps && !tile::product_of(fold);
  }
  /// Few positions that are multiplied by weights: a depthwise convolution.
  static bool is_weighted_window(const Fold& fold, const std::vector<Loop>& sums) {
    constexpr std::int64_t kMostTaps = 169, kMostInRow = 13;
    const std::int64_t taps = taps_of(sums);
    return taps > 1 && taps <= kMostTaps && window_row(sums)->extent <= kMostInRow &&
           tile::product_of(fold);
  }
  /// A window row by row: what a row reads is on its way at once, in few registers. Neighbouring
  /// outputs along the row are computed together, so that pixels that several of them read are
  /// loaded and converted once. Gives how many elements a program has best.
  std::int64_t write_out_row(const Fold& fold, const std::vector<Loop>& sums,
                             std::vector<Loop>& output) {
    const std::string row = window_row(sums)->name;
    take(schedule_.unroll(named(row)));
    const auto along = neighbours_along(fold, row, output);
    if (along == output.end()) return elements_or(kElements);
    const std::int64_t neighbours = std::min(neighbours_of(output), along->extent);
    std::string inner = along->name;
    if (neighbours > 1 && neighbours < along->extent) {
      take(schedule_.split(named(along->name), neighbours));
      inner += ".i";
    }
    if (neighbours > 1) take(schedule_.unroll(named(inner)));
    // Innermost of the loops that are not vectorized.
    std::vector<std::string> order;
    for (const Loop& loop : nest().loops)
      if (!loop.reduces && loop.name != inner) order.push_back(named(loop.name));
    order.push_back(named(inner));
    if (neighbours > 1 && order.size() > 1) take(schedule_.reorder(order));
    output.erase(along);
    return elements_or(kElements);
  }
  /// The loop over outputs whose windows overlap along the row of the window, where it is not the
  /// one along memory.
  std::vector<Loop>::iterator neighbours_along(const Fold& fold, const std::string& row,
                                               std::vector<Loop>& output) const {
    auto found = output.end();
    for (const Scalar& lift : fold.lift)
      for_each_read(lift, [&](const node::Read& read) {
        for (std::size_t i = 0; i + 1 < read.at.size(); ++i) {
          const auto loops = loops_of(nest(), read.at[i]);
          if (std::ranges::count(loops, row) == 0) continue;
          for (auto loop = output.begin(); loop != output.end(); ++loop)
            if (loop->extent > 1 && std::ranges::count(loops, loop->name) > 0) found = loop;
        }
      });
    return found;
  }
  std::int64_t neighbours_of(const std::vector<Loop>& output) const {
    if (parameters_.neighbours > 0) return parameters_.neighbours;
    // Largest number that leaves enough programs, each a warp, to hide the latency of loads; 1, 2,
    // 4 and 8 were measured on an H200 in nine models.
    constexpr std::int64_t kMost = 4, kPrograms = 8;
    double programs = 1.0 / kElements;
    for (const Loop& loop : output) programs *= static_cast<double>(loop.extent);
    std::int64_t neighbours = kMost;
    while (neighbours > 1 &&
           programs < static_cast<double>(neighbours * kPrograms * machine_.cores))
      neighbours /= 2;
    return neighbours;
  }
  static constexpr std::int64_t kShortRow = 128;  // elements of a row that a program has for itself
  static constexpr std::int64_t kElements = 256;  // of a program: 8 for each thread of a warp
  /// A window position by position: all that it reads is then on its way at once, and where it
  /// leaves its image is known before the program runs. Gives how many elements a program has best.
  std::int64_t write_out(const std::vector<Loop>& sums) {
    for (const Loop& loop : sums) take(schedule_.unroll(named(loop.name)));
    return elements_or(512);
  }
  std::int64_t elements_or(std::int64_t usual) const {
    return parameters_.elements > 0 ? parameters_.elements : usual;
  }

  /// Positions of a loop across the last one that a tile takes: a line of the cache, or as many as
  /// fill the tile where the loops inside of it are shorter than a line.
  std::int64_t across_part(const Loop& across, const std::vector<Loop>& output,
                           std::int64_t most) const {
    const std::int64_t line = machine_.cache_line / 4;
    std::int64_t inside = 1;
    for (auto loop = output.rbegin(); loop != output.rend() && loop->name != across.name; ++loop)
      inside *= loop->extent;
    return traits_of(machine_).has_thread_blocks || inside >= line
               ? line
               : std::max(line, most / std::max<std::int64_t>(inside, 1));
  }

  /// The loop along which something lies in memory that the last loop runs across: tiles take as
  /// many of its positions as there are in a line of the cache, which is then read once.
  std::optional<Loop> transposed(const std::vector<Loop>& output) const {
    const auto last = std::find_if(output.rbegin(), output.rend(),
                                   [](const Loop& loop) { return loop.extent > 1; });
    std::optional<Loop> found;
    if (last == output.rend()) return found;
    for_each_read(stage_.output.value, [&](const node::Read& read) {
      if (read.at.empty()) return;
      const auto along = loops_of(nest(), read.at.back());
      const bool is_across = std::ranges::any_of(read.at, [&](const Scalar& at) {
        return std::ranges::count(loops_of(nest(), at), last->name) > 0;
      });
      if (!is_across || along.size() != 1 || along.front() == last->name) return;
      const auto loop = std::ranges::find(output, along.front(), &Loop::name);
      if (loop != output.end() && loop->extent > 1) found = *loop;
    });
    return found;
  }

  Schedule schedule_;
  const Stage& stage_;
  const machine::Machine& machine_;
  const LoopParameters& parameters_;
  std::optional<Diagnostic> error_;
  std::string serial_ = {};  // a loop within a program
};

}  // namespace

Expected<Schedule> default_schedule(tile::Stages stages, const machine::Machine& machine,
                                    const LoopParameters& parameters) {
  TESSERA_TRY(Schedule schedule, Schedule::of(std::move(stages)));
  for (const Stage& stage : tile::Stages(schedule.stages())) {
    TESSERA_TRY(schedule, Chooser(std::move(schedule), stage, machine, parameters).run());
  }
  return schedule;
}

}  // namespace tessera::lower
