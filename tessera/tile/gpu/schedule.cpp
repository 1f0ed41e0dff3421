#include "tessera/tile/gpu/schedule.h"

#include <fmt/format.h>

#include "tessera/tile/passes/coarsen.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"

namespace tessera::tile::gpu {
namespace {

constexpr int kMostStages = 8, kLeastWithRoles = 3;
constexpr int kMostWithRoles = 256;  // threads of a program: more leave too few registers to each
constexpr int kWarp = 32, kProgramsOfABlock = 4;

int most_stages(const Options& options) {
  return std::min(std::max(options.stages, options.more_stages), kMostStages);
}

Rows wished_rows(const Kernel& kernel, const Options& options) {
  Rows rows = rows_of(kernel);
  if (options.together > 0) rows.together = options.together;
  if (options.registers > 0) rows.registers = options.registers;
  if (options.bytes_per_thread > 0) rows.bytes_per_thread = options.bytes_per_thread;
  if (options.packed >= 0) rows.packed = options.packed != 0;
  if (options.part > 0) rows.part = options.part;
  if (options.keep_bytes >= 0) rows.keep_bytes = options.keep_bytes;
  if (options.rows_ahead >= 0 && rows.any) {
    rows.loops = options.rows_ahead > 0;
    rows.ahead = std::max(1, options.rows_ahead);
  }
  return rows;
}

/// Rows in parts, where they are longer: how parts are spread.
std::optional<CutRows> cut_into_parts(const Kernel& kernel, Rows& rows, const Options& options) {
  if (!rows.any || rows.part == 0 || rows.part >= rows.extent) return {};
  if (options.rows_ahead >= 0 && options.part == 0) return {};  // wished for as a whole
  std::optional<CutRows> cut = cut_rows(kernel, rows.extent, rows.part);
  if (!cut) return {};
  constexpr std::int64_t kExchanged = 2 << 10;  // by threads: has room beside what is kept
  rows = {.any = true,
          .bytes_per_thread =
              options.bytes_per_thread > 0 ? options.bytes_per_thread : rows.part_bytes_per_thread,
          .registers = options.registers > 0 ? options.registers : rows.part_registers,
          .extent = rows.extent,
          .part = rows.part,
          .keep_bytes = std::min(rows.keep_bytes, options.shared_bytes - kExchanged)};
  return cut;
}

Decided<Roles> decided_roles(const Planned& planned, const Options& options) {
  if (!planned.plan.any_warpgroups()) return No{"no product is by warpgroups"};
  if (!options.roles) return No{"none are wanted"};
  if (!options.loops) return No{"blocks do not go on with further programs"};
  if (planned.plan.threads() > kMostWithRoles)
    return No{fmt::format("a program has {} threads", planned.plan.threads())};
  return find_roles(planned, {.stages = most_stages(options), .maps = options.maps});
}

/// Of the largest stage of a ring.
std::int64_t stage_bytes(const Planned& planned) {
  std::int64_t bytes = 0;
  for_each_op(planned.kernel, planned.kernel.body, [&](OpId id) {
    const Operation& op = planned.kernel.ops[id];
    if (op.code != Code::For) return;
    if (const auto ahead = copies_ahead(planned, op, kMostStages))
      bytes = std::max(bytes, ahead->bytes);
  });
  return bytes;
}

/// One stage is none: nothing is copied while it is read.
int fewer_stages(int stages, std::int64_t by) {
  return by > stages - 2 ? 0 : stages - static_cast<int>(by);
}

}  // namespace

int Scheduled::threads() const {
  if (!shape.roles) return plan->threads() * shape.programs;
  return plan->threads() * teams_of(plan->threads()).count + kCopyThreads;
}

Expected<std::unique_ptr<Scheduled>> schedule(const Kernel& given, const Options& options) {
  auto made = std::make_unique<Scheduled>();
  Kernel& kernel = made->kernel;
  Rows& rows = made->rows;
  kernel = simplify(recover(simplify(given)));
  rows = wished_rows(kernel, options);
  made->cut = cut_into_parts(kernel, rows, options);
  if (made->cut) kernel = made->cut->kernel;
  if (rows.together > 1) {
    if (const auto coarse = rows.any ? coarsen(kernel, rows.together) : std::nullopt) {
      kernel = simplify(*coarse);
    } else {
      rows.together = 1;
    }
  }
  if (rows.any && !made->cut) gather_reductions(kernel);
  TESSERA_TRY(made->plan, Plan::make(kernel, {.warpgroups = options.warpgroups,
                                              .tf32 = options.tf32,
                                              .bytes_per_thread = rows.bytes_per_thread,
                                              .together = rows.together > 1}));
  made->planned.emplace(kernel, *made->plan);
  made->roles = decided_roles(*made->planned, options);
  // A program of one warp shares a block with others, if its threads exchange nothing through
  // shared memory: barriers are the block's.
  // One that has rows of several programs has enough to do.
  const bool small =
      made->plan->threads() == kWarp && rows.together < kProgramsOfABlock && !made->cut;
  made->shape = {.programs = small ? kProgramsOfABlock : 1,
                 .together = rows.together,
                 .loops = options.loops && rows.loops,
                 .ahead = rows.ahead,
                 .rows = rows.any,
                 .packed = rows.packed,
                 .cut = made->cut ? &*made->cut : nullptr,
                 .keep_bytes = rows.keep_bytes,
                 .roles = static_cast<bool>(made->roles),
                 .stages = most_stages(options),
                 .maps = made->roles ? static_cast<int>(made->roles->maps.size()) : 0};
  return made;
}

Expected<bool> fit(Scheduled& scheduled, const Options& options, const Taken& taken) {
  Shape& shape = scheduled.shape;
  const bool has_more = shape.stages > options.stages;
  const std::int64_t room = has_more ? options.shared_bytes / 2 : options.shared_bytes;
  const bool is_short = taken.bytes > room;
  if (shape.roles && taken.own_bytes != shape.own_bytes) {
    shape.own_bytes = taken.own_bytes;
    return false;
  }
  if (shape.programs > 1 && taken.exchanges) {
    shape.programs = 1;
    return false;
  }
  if (shape.loops && is_short) {
    shape.loops = false;
    return false;
  }
  scheduled.shared_bytes = taken.bytes;
  if (!is_short) return true;
  const std::int64_t stage = shape.stages > 1 ? stage_bytes(*scheduled.planned) : 0;
  if (stage == 0) {
    return Diagnostic{
        .id = "ptx-shared-memory",
        .where = {.file = {}, .item = scheduled.kernel.name},
        .message = fmt::format("a program needs {} bytes of shared memory", taken.bytes),
        .note = fmt::format("a block has {}", options.shared_bytes),
        .help = "cut the tiles into smaller ones"};
  }
  if (has_more) {
    const auto fitting = static_cast<int>(shape.stages * room / taken.bytes);
    shape.stages = std::max(options.stages, fitting);
  } else {
    shape.stages = fewer_stages(shape.stages, (taken.bytes - room + stage - 1) / stage);
  }
  if (shape.roles && shape.stages < kLeastWithRoles) {
    scheduled.roles = No{fmt::format("{} stages have no room in shared memory", kLeastWithRoles)};
    shape.roles = false;
    shape.maps = 0;
    shape.stages = most_stages(options);
  }
  return false;
}

}  // namespace tessera::tile::gpu
