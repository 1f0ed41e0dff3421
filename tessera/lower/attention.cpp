#include <fmt/format.h>

#include <algorithm>

#include "tessera/lower/attention_form.h"
#include "tessera/lower/attention_kernel.h"
#include "tessera/lower/online_kernel.h"
#include "tessera/lower/overlapped_kernel.h"
#include "tessera/lower/product_dtype.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {
namespace {

/// A program holds whole rows of the scores in a tile, so that every reduction over the keys is one
/// reduction of a tile, as in the definition.
class WholeRowKernel : public AttentionKernel {
 public:
  using AttentionKernel::AttentionKernel;

 private:
  Value attend() override {
    hold(form_.scores, scores(queries()));
    for (const AttentionStage& stage : form_.between) {
      set_score_axes();
      enter(stage);
      e_.run_fold(stage.fold, {.vectors = {key_axis()}});
      const Value result = e_.error() ? Value{} : e_.fold_results(*stage.fold)->front();
      e_.pop_scope();
      hold(stage, result);
    }
    const Id probabilities = weights(form_.weights);
    return product(probabilities, factor(form_.result, form_.values, form_.key, form_.width));
  }
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
/// Tiles of scores of f32 on a CPU where rows see some of the keys, those of
/// `examples/attention.h`: a few rows, so that little is computed of keys that they do not see.
/// Measured on a Neoverse V1 and a Sapphire Rapids by tools/bench-table; on the latter also with 16
/// to 128 rows and 32 to 256 keys, for 128, 512 and 2048 of them.
constexpr std::int64_t kCpuRows = 32, kCpuKeys = 96;
/// Wider scores than these leave the registers of a thread block.
constexpr std::int64_t kMostKeysAtOnce = 256;

/// A tile of scores with the keys as its rows, which are read as they lie in memory, while queries
/// are lanes; tiles that rows see in part are as narrow as there are rows.
ScoreTile cpu_tile(const AttentionForm& form, std::int64_t rows, std::int64_t keys) {
  ScoreTile tile{.rows = rows, .keys = keys, .whole_first = true, .last_keys = keys};
  tile.keys_first = form.row >= 0;
  if (keys % rows == 0) tile.last_keys = rows;
  return tile;
}

/// Whether blocks of rows see fewer keys than there are, by a causal mask or a window.
bool skips_keys(const AttentionForm& form) {
  if (form.row < 0 || form.extents[static_cast<std::size_t>(form.row)] < 2 * kCpuRows) return false;
  const VisibleKeys visible = visible_keys(form);
  return std::ranges::any_of(visible.last,
                             [](const KeyBound& last) { return last.row_factor > 0; });
}

/// Whether whole rows of scores leave too little of L2, for heads whose results are cheap to
/// rescale. Measured on a Sapphire Rapids alone: with 1024 to 4096 keys, widths of 64 and 80 take
/// 0.82 to 0.93 of the time of whole rows, a width of 128 takes 1.02 to 1.18.
bool has_long_rows(const AttentionForm& form, const machine::Machine& machine) {
  constexpr std::int64_t kMostWidth = 96;
  if (machine.architecture != machine::Architecture::X86_64 || form.row < 0) return false;
  const auto extent = [&](int loop) { return form.extents[static_cast<std::size_t>(loop)]; };
  const std::int64_t rows = std::min<std::int64_t>(extent(form.row), 256);
  return rows >= 2 * kCpuRows && extent(form.width) <= kMostWidth &&
         rows * extent(form.key) * static_cast<std::int64_t>(sizeof(float)) >= machine.l2 / 2;
}

/// Schedule of a CPU where rows see some of the keys, or are long.
std::optional<AttentionSchedule> online_schedule(const AttentionForm& form, DType products,
                                                 const machine::Machine& machine) {
  if (products != DType::F32 || (!skips_keys(form) && !has_long_rows(form, machine)))
    return std::nullopt;
  return AttentionSchedule{kCpuRows, kCpuKeys};
}

/// Tiles for thread blocks, the preferred ones first: 128 rows are two of a wgmma. Measured on an
/// H200 for widths of 64, 96, 128 and 256 and 512 and 4096 keys, with rows and keys of 64 and 128:
/// narrow heads gain from two blocks on a multiprocessor, wide ones need the registers. Two loops
/// are faster for wide ones (causal, 4096 keys of 256: 473 and 417 TFLOP/s) and slower for others.
std::vector<ScoreTile> block_tiles(const AttentionForm& form) {
  if (form.row < 0) return {{1, 128}};
  const std::int64_t width = form.extents[static_cast<std::size_t>(form.width)],
                     rows = form.extents[static_cast<std::size_t>(form.row)],
                     keys = width > 64 && width <= 128 ? 128 : 64;
  std::vector<ScoreTile> tiles;
  for (const ScoreTile& tile : {ScoreTile{128, keys}, ScoreTile{128, 64}, ScoreTile{64, 64},
                                ScoreTile{64, 32}, ScoreTile{16, 64}})
    if (tile.rows < 2 * rows) tiles.push_back({tile.rows, tile.keys, width > 128});
  if (tiles.empty()) tiles.push_back({16, 64});
  return tiles;
}

/// The tile for two consumer warpgroups of 64 rows each: accumulators of both matmuls and the
/// weights between them fill the registers. The loop over few tiles would have one iteration, which
/// compilers move into the code around it: ptxas then spills.
ScoreTile overlapped_tile(const AttentionForm& form) {
  constexpr std::int64_t kMany = 128, kFew = 64, kLeastTiles = 3;
  const std::int64_t width = form.extents[static_cast<std::size_t>(form.width)],
                     keys = form.extents[static_cast<std::size_t>(form.key)];
  return {128, width <= 128 && keys >= kLeastTiles * kMany ? kMany : kFew};
}

bool is_overlapped_tile(const ScoreTile& tile, const AttentionForm& form) {
  const ScoreTile overlapped = overlapped_tile(form);
  return tile.rows == overlapped.rows && tile.keys == overlapped.keys;
}

/// Rows of the smallest tile of a thread block: those of an instruction of tensor cores.
constexpr std::int64_t kLeastBlockRows = 16;

struct AttentionLowering {
  const Group& group;
  const AttentionForm& form;
  const GroupOptions& options;
  DType products;
  std::int64_t processors;  // of a GPU

  Expected<Attempt> at_once(std::int64_t rows) const {
    auto lowered = WholeRowKernel(group, form, rows, products).run();
    if (!lowered) return Attempt{};  // by other strategies, stage by stage
    return code(*std::move(lowered), fmt::format("attention, {} rows at a time", rows),
                {.rows = rows, .keys = 0});
  }
  Expected<Attempt> online(const OnlineAttention& online, const ScoreTile& tile) const {
    auto lowered = OnlineKernel(group, form, online, tile, products).run();
    if (!lowered || (options.accept && !options.accept(lowered->kernel))) return Attempt{};
    return code(*std::move(lowered),
                fmt::format("attention, online, {} x {}", tile.rows, tile.keys),
                {.rows = tile.rows, .keys = tile.keys});
  }
  /// With producer warps, where the GPU has them and the tiles have room.
  Attempt overlapped(const OnlineAttention& online, const ScoreTile& tile) const {
    constexpr int kWarps = 8;
    if (!options.accept || form.row < 0 || products == DType::F32) return {};
    auto lowered = OverlappedKernel(group, form, online, tile, products, processors).run();
    if (!lowered) return {};
    lowered->kernel.block = {.warps = kWarps, .producers = tile::BlockRequest::Producers::Tma};
    if (!options.accept(lowered->kernel)) return {};
    return code(*std::move(lowered),
                fmt::format("attention, overlapped, {} x {}", tile.rows, tile.keys),
                {.rows = tile.rows, .keys = tile.keys});
  }

 private:
  static Attempt code(Lowered lowered, std::string strategy, const AttentionSchedule& schedule) {
    GroupCode code{.strategy = std::move(strategy), .schedule = schedule};
    code.kernels.push_back(std::move(lowered));
    return code;
  }
};

Expected<Done> check(const AttentionSchedule& schedule, const AttentionForm& form,
                     const machine::Machine& machine) {
  const std::int64_t rows = form.row < 0 ? 1 : form.extents[static_cast<std::size_t>(form.row)];
  const std::int64_t keys = form.extents[static_cast<std::size_t>(form.key)];
  std::int64_t most = rows == 1 ? 1 : rows + 3;  // multiples of 4
  if (traits_of(machine).tiles_by_thread_blocks() && form.row >= 0)
    most = std::max({most, kLeastBlockRows, 2 * rows - 1});
  const bool is_overlapped = traits_of(machine).tiles_by_thread_blocks() &&
                             is_overlapped_tile({schedule.rows, schedule.keys}, form);
  if (schedule.rows < 1 || (schedule.rows > most && !is_overlapped))
    return illegal_schedule("the tile of rows is out of range");
  if (schedule.keys < 0 || (schedule.keys == 0 && keys > kMostKeys))
    return illegal_schedule("the tile of keys is out of range");
  return Done{};
}

}  // namespace

ScheduleCandidates attention_space(const Group& given, const machine::Machine& machine,
                                   const GroupOptions& options) {
  ScheduleCandidates space;
  const Group group = options.exact ? given : without_roundings(given);
  const auto form = attention_form(group, options.exact);
  if (!form) return space;
  const std::int64_t all = form->row < 0 ? 1 : form->extents[static_cast<std::size_t>(form->row)];
  const std::int64_t keys = form->extents[static_cast<std::size_t>(form->key)];
  const bool is_online = !options.exact && online_attention(*form).has_value();
  if (traits_of(machine).tiles_by_thread_blocks()) {
    for (const std::int64_t row : {std::int64_t{1}, kLeastBlockRows, 2 * kLeastBlockRows,
                                   4 * kLeastBlockRows, 8 * kLeastBlockRows}) {
      if ((form->row < 0) != (row == 1)) continue;
      for (const std::int64_t tile : {32, 64, 128, 256})
        if (is_online && tile < 2 * keys) space.push_back({AttentionSchedule{row, tile}, 0});
      if (keys <= kMostKeysAtOnce) space.push_back({AttentionSchedule{row, 0}, 0});
    }
    const ScheduleCandidate usual{AttentionSchedule{rows_of(*form, machine), 0}, 0};
    if (std::ranges::find(space, usual.schedule, &ScheduleCandidate::schedule) == space.end())
      space.push_back(usual);
    std::erase_if(space, [&](const ScheduleCandidate& one) {
      return !check(std::get<AttentionSchedule>(one.schedule), *form, machine);
    });
    return space;
  }
  std::vector<std::int64_t> rows = {all};
  for (const std::int64_t most : {8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384})
    if (most < all) rows.push_back(ceil_div(ceil_div(all, ceil_div(all, most)), 4) * 4);
  std::ranges::sort(rows);
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  for (const std::int64_t row : rows) {
    if (row * keys <= std::int64_t{1} << 20) space.push_back({AttentionSchedule{row, 0}, 0});
    for (const std::int64_t tile : {32, 64, 128, 256, 512, 1024})
      if (is_online && tile < keys) space.push_back({AttentionSchedule{row, tile}, 0});
  }
  if (const auto tiles = online_schedule(*form, options.contraction_dtype, machine);
      tiles && is_online &&
      std::ranges::find(space, GroupSchedule(*tiles), &ScheduleCandidate::schedule) == space.end())
    space.push_back({*tiles, 0});
  std::erase_if(space, [&](const ScheduleCandidate& one) {
    return !check(std::get<AttentionSchedule>(one.schedule), *form, machine);
  });
  return space;
}

Expected<Attempt> lower_attention(const Group& given, const machine::Machine& machine,
                                  const GroupOptions& options) {
  const Group group = options.exact ? given : without_roundings(given);
  const auto form = attention_form(group, options.exact);
  if (!form) return Attempt{};
  const bool blocks = traits_of(machine).tiles_by_thread_blocks();
  // Probabilities are no numbers of the operands' type: where the graph itself has 16 bits, small
  // ones are not rounded to it before the results are.
  constexpr double kTiny = 1 << 20;
  const bool in_full = blocks && options.contraction_dtype != DType::F32 &&
                       (options.exact_operands ? multiply_adds(*form) < kTiny
                                               : options.contraction_dtype == DType::BF16 &&
                                                     multiply_adds(*form) < kSmallContraction);
  const AttentionLowering lowering{group, *form, options,
                                   in_full ? DType::F32 : options.contraction_dtype,
                                   std::max<std::int64_t>(machine.cores, 1)};
  const std::int64_t keys = form->extents[static_cast<std::size_t>(form->key)];
  const auto online = options.exact ? std::nullopt : online_attention(*form);
  if (options.schedule) {
    const auto& schedule = std::get<AttentionSchedule>(*options.schedule);
    TESSERA_TRY_DONE(check(schedule, *form, machine));
    if (schedule.keys == 0) return lowering.at_once(schedule.rows);
    if (!online) return illegal_schedule("the softmax cannot be computed over tiles of keys");
    if (!blocks) return lowering.online(*online, cpu_tile(*form, schedule.rows, schedule.keys));
    const ScoreTile tile{schedule.rows, schedule.keys};
    if (blocks && keys > kMostKeysAtOnce && is_overlapped_tile(tile, *form))
      if (Attempt attempt = lowering.overlapped(*online, tile)) return attempt;
    return lowering.online(*online, tile);
  }
  if (online) {
    if (blocks && keys > kMostKeysAtOnce) {
      if (Attempt attempt = lowering.overlapped(*online, overlapped_tile(*form))) return attempt;
      for (const ScoreTile& tile : block_tiles(*form)) {
        TESSERA_TRY(Attempt attempt, lowering.online(*online, tile));
        if (attempt) return attempt;
      }
    }
    if (!blocks)
      if (const auto tiles = online_schedule(*form, lowering.products, machine))
        return lowering.online(*online, cpu_tile(*form, tiles->rows, tiles->keys));
    if (!blocks && keys > kMostKeys) return lowering.online(*online, cpu_tile(*form, 64, 512));
  }
  if (keys > kMostKeys) return Attempt{};
  return lowering.at_once(rows_of(*form, machine));
}

}  // namespace tessera::lower
