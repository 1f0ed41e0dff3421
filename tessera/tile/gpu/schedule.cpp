#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/gpu/alternate_warpgroups.h"

#include <fmt/format.h>

#include "tessera/tile/gpu/block_lowering.h"
#include "tessera/tile/gpu/programmatic_launch.h"
#include "tessera/tile/gpu/register_pressure.h"
#include "tessera/tile/gpu/verify_block_program.h"
#include "tessera/tile/passes/coarsen.h"
#include "tessera/tile/passes/exponents.h"
#include "tessera/tile/passes/hoist_views.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tessera/tile/passes/version_indices.h"
#include "tessera/tile/passes/version_loops.h"

namespace tessera::tile::gpu {
namespace {

constexpr int kMostStages = 8, kLeastSpecializedStages = 3;
constexpr int kMostSpecializedThreads =
    256;  // more threads per program leave too few registers for each
constexpr int kWarp = 32, kProgramsOfABlock = 4;

int most_stages(const Options& options) {
  return std::min(std::max(options.stages, options.more_stages), kMostStages);
}

RowSchedule wished_rows(const Kernel& kernel, const Options& options) {
  RowSchedule rows = row_schedule(kernel, options.persistent);
  if (options.coarsening > 0) rows.coarsening = options.coarsening;
  if (options.registers > 0) rows.registers = options.registers;
  if (options.bytes_per_thread > 0) rows.bytes_per_thread = options.bytes_per_thread;
  if (options.packed >= 0) rows.packed = options.packed != 0;
  if (options.part > 0) rows.part = options.part;
  if (options.cached_bytes >= 0) rows.cached_bytes = options.cached_bytes;
  if (options.prefetched_rows >= 0 && rows.any) {
    rows.persistent = options.prefetched_rows > 0;
    rows.prefetched = std::max(1, options.prefetched_rows);
  }
  return rows;
}

/// Cuts long rows into parts, and decides how parts are distributed.
std::optional<CutRows> cut_into_parts(const Kernel& kernel, RowSchedule& rows,
                                      const Options& options) {
  if (!rows.any || rows.part == 0 || rows.part >= rows.extent) return {};
  if (options.prefetched_rows >= 0 && options.part == 0) return {};  // requested as a whole
  std::optional<CutRows> cut = cut_rows(kernel, rows.extent, rows.part);
  if (!cut) return {};
  constexpr std::int64_t kExchanged =
      2 << 10;  // shared memory that threads exchange data through, besides the cached row
  rows = {.any = true,
          .bytes_per_thread =
              options.bytes_per_thread > 0 ? options.bytes_per_thread : rows.part_bytes_per_thread,
          .registers = options.registers > 0 ? options.registers : rows.part_registers,
          .extent = rows.extent,
          .part = rows.part,
          .cached_bytes = std::min(rows.cached_bytes, options.shared_bytes - kExchanged)};
  return cut;
}

Decision<WarpSpecialization> specialization_of(const PlannedKernel& planned,
                                               const Options& options) {
  if (!planned.plan.any_wgmma()) return DeclineReason{"no matmul uses wgmma"};
  if (!options.warp_specialization) return DeclineReason{"disabled"};
  if (!options.persistent) return DeclineReason{"blocks are not persistent"};
  if (planned.plan.threads() > kMostSpecializedThreads)
    return DeclineReason{fmt::format("a program has {} threads", planned.plan.threads())};
  return find_warp_specialization(
      planned, {.stages = most_stages(options),
                .maps = options.maps,
                .is_requested = planned.kernel.block.producers != BlockRequest::Producers::Auto});
}

/// Producers that copy through a pipeline for each view, where they are requested and copies into
/// the stages of one loop do not apply.
Decision<TilePipelines> tile_pipelines_of(const PlannedKernel& planned, const Options& options,
                                          bool has_stages) {
  if (has_stages) return DeclineReason{"producer warps fill the stages of a loop"};
  if (planned.kernel.block.producers != BlockRequest::Producers::Tma || !options.maps)
    return DeclineReason{"not requested"};
  if (!options.warp_specialization || !options.persistent)
    return DeclineReason{"blocks are not persistent"};
  if (planned.plan.threads() != kMostSpecializedThreads)
    return DeclineReason{fmt::format("a program has {} threads", planned.plan.threads())};
  const Decision<TilePipelines> found = find_tile_pipelines(planned);
  if (!found) return found;
  constexpr int kMost = 4;
  constexpr std::int64_t kOthers = 18 << 10;  // of the epilogue, and mbarriers
  TilePipelines made = *found;
  choose_stages(made, planned.kernel.block.stages > 0 ? planned.kernel.block.stages : kMost,
                options.shared_bytes - kOthers);
  return made;
}

/// Options with what a kernel requests of its blocks.
Options with_request(Options options, const BlockRequest& request) {
  using Producers = BlockRequest::Producers;
  if (request.stages > 0) {
    options.stages = request.stages;
    options.more_stages = 0;
  }
  if (request.warps > 0) options.threads = request.warps * kWarp;
  if (request.producers == Producers::None) options.warp_specialization = false;
  if (request.producers == Producers::Async) options.maps = false;
  return options;
}

Diagnostic illegal_request(const ScheduledKernel& scheduled, std::string why) {
  return {.id = "schedule-illegal",
          .where = {.item = scheduled.kernel.name},
          .message = std::move(why),
          .note = "the requested schedule of a block does not fit the kernel or the GPU"};
}

/// Checks that the schedule is the requested one: as many stages as fit into shared memory, warps
/// that the tiles need no more of, and registers for all tiles that are live at the same time.
Expected<Done> check_request(const ScheduledKernel& scheduled) {
  using Producers = BlockRequest::Producers;
  const BlockRequest& request = scheduled.kernel.block;
  if (request.is_empty()) return Done{};
  const int threads = scheduled.plan->threads();
  if (request.warps > 0 && threads != request.warps * kWarp)
    return illegal_request(
        scheduled, fmt::format("a program has {} warps, not {}", threads / kWarp, request.warps));
  const bool is_specialized = scheduled.mapping.warp_specialized;
  const bool wants_producers =
      request.producers == Producers::Async || request.producers == Producers::Tma;
  if (wants_producers && !is_specialized)
    return illegal_request(scheduled, fmt::format("there are no producer warps: {}",
                                                  request.producers == Producers::Tma
                                                      ? scheduled.tile_pipelines.why_not()
                                                      : scheduled.warp_specialization.why_not()));
  if (request.producers == Producers::Tma && scheduled.mapping.maps == 0)
    return illegal_request(scheduled, fmt::format("producers cannot copy by TMA: {}",
                                                  scheduled.warp_specialization->no_maps_reason));
  if (request.stages > 0 && !scheduled.mapping.tile_pipelines &&
      scheduled.mapping.stages != request.stages)
    return illegal_request(scheduled,
                           fmt::format("{} stages do not fit into shared memory", request.stages));
  constexpr int kAddresses = 32, kMostOfAThread = 255;
  const int all = is_specialized ? consumer_groups_of(threads).consumer_registers
                                 : kRegistersOfAMultiprocessor / scheduled.threads();
  const int most = std::min(all, kMostOfAThread);
  std::set<OpId> staged;
  if (scheduled.mapping.tile_pipelines)
    for (const TilePipeline& pipeline : scheduled.tile_pipelines->pipelines)
      for (const StagedOperand& load : pipeline.loads) staged.insert(load.load);
  int needed = register_pressure(*scheduled.planned, scheduled.mapping.stages, staged) + kAddresses;
  // Such a kernel must not spill: it is loaded as a whole program.
  if (scheduled.mapping.tile_pipelines) needed += more_registers(*scheduled.planned, staged);
  if (needed > most)
    return illegal_request(scheduled,
                           fmt::format("a thread needs {} registers of {}", needed, most));
  return Done{};
}

/// Bytes of the largest pipeline stage.
std::int64_t stage_bytes(const PlannedKernel& planned) {
  std::int64_t bytes = 0;
  for_each_op(planned.kernel, planned.kernel.body, [&](OpId id) {
    const Operation& op = planned.kernel.ops[id];
    if (op.code != Code::For) return;
    if (const auto pipeline = pipeline_of(planned, op, kMostStages))
      bytes = std::max(bytes, pipeline->bytes);
  });
  return bytes;
}

/// A single stage is none: there is no overlap of copies and reads.
int fewer_stages(int stages, std::int64_t by) {
  return by > stages - 2 ? 0 : stages - static_cast<int>(by);
}

/// Whether the program fits into shared memory; if not, changes the mapping, and the program is to
/// be lowered again.
Expected<bool> fit(ScheduledKernel& scheduled, const Options& options) {
  const SharedMemoryUse& use = scheduled.program.shared;
  BlockMapping& mapping = scheduled.mapping;
  const bool has_more = mapping.stages > options.stages && !mapping.tile_pipelines;
  const std::int64_t room = has_more ? options.shared_bytes / 2 : options.shared_bytes;
  const bool is_short = use.bytes > room;
  if (mapping.persistent && is_short) {
    mapping.persistent = false;
    return false;
  }
  if (!is_short) return true;
  if (mapping.programs > 1) {
    mapping.programs /= 2;
    return false;
  }
  const bool has_stages = mapping.stages > 1 && !mapping.tile_pipelines;
  const std::int64_t stage = has_stages ? stage_bytes(*scheduled.planned) : 0;
  if (stage == 0) {
    return Diagnostic{
        .id = "ptx-shared-memory",
        .where = {.file = {}, .item = scheduled.kernel.name},
        .message = fmt::format("a program needs {} bytes of shared memory", use.bytes),
        .note = fmt::format("a block has {}", options.shared_bytes),
        .help = "cut the tiles into smaller ones"};
  }
  if (has_more) {
    const auto fitting = static_cast<int>(mapping.stages * room / use.bytes);
    mapping.stages = std::max(options.stages, fitting);
  } else {
    mapping.stages = fewer_stages(mapping.stages, (use.bytes - room + stage - 1) / stage);
  }
  if (mapping.warp_specialized && !mapping.tile_pipelines &&
      mapping.stages < kLeastSpecializedStages) {
    scheduled.warp_specialization = DeclineReason{
        fmt::format("{} stages have no room in shared memory", kLeastSpecializedStages)};
    mapping.warp_specialized = false;
    mapping.maps = 0;
    mapping.stages = most_stages(options);
  }
  return false;
}

/// Register limit of a kernel with matmuls, such that two blocks share an SM where tiles leave room
/// for it: one computes on vectors while the other one multiplies.
int registers_for_two_blocks(const ScheduledKernel& scheduled, const Options& options) {
  constexpr int kUnit = 8, kAddresses = 32;
  constexpr std::int64_t kReserved = 1 << 10;  // shared memory of a block that the system takes
  const int limit = kRegistersOfAMultiprocessor / (2 * scheduled.threads()) / kUnit * kUnit;
  const bool fits =
      2 * (scheduled.program.shared.bytes + kReserved) <= options.shared_bytes + kReserved;
  if (!fits || register_pressure(*scheduled.planned, scheduled.mapping.stages) + kAddresses > limit)
    return 0;
  return limit;
}

}  // namespace

int ScheduledKernel::threads() const {
  if (!mapping.warp_specialized) return plan->threads() * mapping.programs;
  return plan->threads() * consumer_groups_of(plan->threads()).count + kProducerThreads;
}

std::vector<runtime::cuda::TensorMap> ScheduledKernel::maps() const {
  if (mapping.tile_pipelines) return tile_pipelines->maps;
  return mapping.warp_specialized ? warp_specialization->maps
                                  : std::vector<runtime::cuda::TensorMap>{};
}

Expected<std::unique_ptr<ScheduledKernel>> schedule(const Kernel& given, const Options& allowed) {
  const Options options = with_request(allowed, given.block);
  auto made = std::make_unique<ScheduledKernel>();
  Kernel& kernel = made->kernel;
  RowSchedule& rows = made->rows;
  kernel = simplify(given);
  if (options.fast_precision) kernel = simplify(fuse_exponents(simplify(simplify_reals(kernel))));
  kernel = simplify(recover(simplify(version_loops(version_indices(kernel)))));
  kernel = simplify(hoist_views(kernel));
  kernel.block = given.block;
  rows = wished_rows(kernel, options);
  made->cut = cut_into_parts(kernel, rows, options);
  if (made->cut) kernel = made->cut->kernel;
  if (rows.coarsening > 1) {
    if (const auto coarse = rows.any ? coarsen(kernel, rows.coarsening) : std::nullopt) {
      kernel = simplify(*coarse);
    } else {
      rows.coarsening = 1;
    }
  }
  if (rows.any && !made->cut) gather_reductions(kernel);
  TESSERA_TRY(made->plan, Plan::make(kernel, {.wgmma = options.wgmma,
                                              .tf32 = options.tf32,
                                              .bytes_per_thread = rows.bytes_per_thread,
                                              .coarsening = rows.coarsening > 1,
                                              .rows = rows.any,
                                              .threads = rows.any ? 0 : options.threads,
                                              .exact_threads = given.block.warps > 0 &&
                                                               given.block.producers ==
                                                                   BlockRequest::Producers::Tma}));
  made->planned.emplace(kernel, *made->plan);
  made->warp_specialization = specialization_of(*made->planned, options);
  made->tile_pipelines =
      tile_pipelines_of(*made->planned, options, static_cast<bool>(made->warp_specialization));
  made->fast_erf = options.fast_precision;
  for (std::size_t i = 0; i < options.constants.size(); ++i)
    if (options.constants[i]) made->constants.insert(kernel.params()[i]);
  // A program of one warp shares a block with others: its barriers are those of a warp, and it has
  // its own part of the shared memory.
  const bool small = !options.block_per_program && made->plan->threads() == kWarp && !made->cut;
  made->mapping = {.programs = !small     ? 1
                               : rows.any ? programs_of_block(rows)
                                          : kProgramsOfABlock,
                   .coarsening = rows.coarsening,
                   .persistent = options.persistent && rows.persistent,
                   .prefetched = rows.prefetched,
                   .rows = rows.any,
                   .packed = rows.packed,
                   .cut = made->cut ? &*made->cut : nullptr,
                   .cached_bytes = rows.cached_bytes,
                   .warp_specialized = made->warp_specialization || made->tile_pipelines,
                   .tile_pipelines = static_cast<bool>(made->tile_pipelines),
                   .stages = most_stages(options),
                   .maps = 0};
  made->mapping.maps = static_cast<int>(made->maps().size());
  for (bool fits = false; !fits;) {
    TESSERA_TRY(made->program, BlockLowering(*made).run());
    TESSERA_TRY(fits, fit(*made, options));
  }
  TESSERA_TRY_DONE(check_request(*made));
  const bool multiplies = made->plan->any_wgmma() && !made->mapping.warp_specialized;
  made->registers = multiplies ? registers_for_two_blocks(*made, options) : rows.registers;
  // Two blocks on an SM alternate by themselves.
  if (multiplies && made->registers == 0)
    if (const auto alternating = alternate_warpgroups(made->program, *made->planned))
      made->program = *alternating;
  if (options.programmatic_launch)
    made->program = programmatic_launch(std::move(made->program), *made->planned, made->constants);
  TESSERA_TRY_DONE(verify(made->program, kernel));
  return made;
}

}  // namespace tessera::tile::gpu
