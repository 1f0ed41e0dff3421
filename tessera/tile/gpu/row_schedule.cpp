#include "tessera/tile/gpu/row_schedule.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

/// Whether a persistent block can run the programs in turn: straight-line code that loads views,
/// reduces and stores to views.
bool is_rows(const Kernel& kernel) {
  bool reduces = false;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    reduces = reduces || op.code == Code::Reduce;
    switch (op.code) {
      case Code::Dot:
      case Code::For:
      case Code::While:
      case Code::If:
      case Code::Atomic:
      case Code::Cas:
      case Code::Barrier:
      case Code::Load: return false;
      default: break;
    }
  }
  return reduces;
}

struct Row {
  std::int64_t bytes;
  int width;        // of an element
  bool parameters;  // whether it also loads parameters
};

/// The GPU starts about one block per cycle, in which its memory moves 2.5 KB: a block moves more.
constexpr std::int64_t kBlockBytes = 8 << 10;
/// Largest power of two by which `one` may be multiplied without exceeding `all`, at most `most`.
int times_within(std::int64_t all, std::int64_t one, int most) {
  const auto times = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(all / std::max<std::int64_t>(one, 1), 1, most));
  return static_cast<int>(std::bit_floor(times));
}

std::int64_t bytes_of(const Type& tile) {
  return tile.count() * byte_width(tile.dtype);
}

/// Whether there may be so many rows: no view has fewer along the axis that the program selects.
bool has_many_programs(const Kernel& kernel) {
  constexpr std::int64_t kMany = 4096;  // some on each scheduler of 132 multiprocessors
  std::set<ValueId> programs;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::Pid && op.ints[0] == 0) programs.insert(op.out[0]);
    if (op.code != Code::Vload && op.code != Code::Vstore) continue;
    const Extents& extents = kernel.type(op.in[0]).shape;
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      if (programs.contains(op.in[1 + axis]) && extents[axis] != kDynamic && extents[axis] < kMany)
        return false;
  }
  return true;
}

/// Rows in parts, for rows that exceed the registers of a block or are unaligned: then parts start
/// at aligned addresses.
void cut(RowSchedule& rows, const Row& row) {
  constexpr std::int64_t kKilo = 1024, kAccess = 16;
  const auto parts = [&](std::int64_t bytes, int per_thread, std::int64_t keep) {
    rows.part = bytes / row.width;
    rows.part_bytes_per_thread = per_thread;
    rows.part_registers = 64;
    rows.cached_bytes = keep;
  };
  const std::int64_t half = 112 * kKilo;  // of shared memory
  if (row.bytes > 128 * kKilo) return parts(16 * kKilo, 32, half);
  if (row.bytes > half) return parts(32 * kKilo, 64, half);
  if (row.bytes == 64 * kKilo && !row.parameters) return;  // faster if prefetched as a whole
  if (row.bytes > 32 * kKilo) return parts(16 * kKilo, 32, half);
  // Elements of 2 bytes are accessed one by one as fast.
  if (row.bytes % kAccess == 0 || row.bytes <= 4 * kKilo || row.width < 4) return;
  const auto quarter =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(row.bytes / 4)));
  parts(quarter, 32, row.bytes + 2 * quarter);
}

}  // namespace

RowSchedule row_schedule(const Kernel& kernel, bool may_persist) {
  RowSchedule rows;
  rows.any = is_rows(kernel);
  if (!rows.any) return rows;
  std::int64_t bytes = 0;
  int width = 1;
  bool parameters = false;  // whether there are tiles that all programs load
  int loads = 0;
  std::set<ValueId> by_program;  // values that vary between programs
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    const bool differs =
        op.code == Code::Pid || std::any_of(op.in.begin(), op.in.end(),
                                            [&](ValueId in) { return by_program.count(in) != 0; });
    if (differs) by_program.insert(op.out.begin(), op.out.end());
    if (op.code == Code::Vstore) rows.moved += bytes_of(kernel.type(op.in.back()));
    if (op.code != Code::Vload) continue;
    const Type& tile = kernel.type(op.out[0]);
    if (differs) rows.moved += bytes_of(tile);
    if (bytes_of(tile) > bytes) {
      width = byte_width(tile.dtype);
      bytes = bytes_of(tile);
      rows.extent = tile.count();
    }
    parameters = parameters || !differs;
    loads += tile.count() > 1 ? 1 : 0;
  }
  constexpr std::int64_t kKilo = 1024;
  constexpr int kMostTogether = 8;
  // Vectors of rows of any length are as wide as their alignment.
  std::int64_t access = 16;
  while (bytes % access != 0) access /= 2;
  access = std::max<std::int64_t>(access, width);
  const auto held = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
  rows.many = has_many_programs(kernel);
  cut(rows, {bytes, width, parameters});
  if (held <= kKilo) {  // one warp
    // More accesses of a thread are not all under way at once: ptxas spares registers.
    constexpr std::int64_t kMostAccesses = 16, kWarp = 32;
    rows.coarsening = std::min(times_within(2 * kKilo, rows.moved, kMostTogether),
                               times_within(kMostAccesses * kWarp * access, bytes, kMostTogether));
    // Each load besides a row and two parameters needs registers of its own.
    if (parameters) rows.registers = 40 + 8 * std::max(0, loads - 3);
    rows.packed = parameters && rows.coarsening > 1;
    return rows;
  }
  if (held > 32 * kKilo) {  // an SM has no room for a second one, if a row has all of its threads
    rows.persistent = may_persist;
    rows.bytes_per_thread = may_persist ? 64 : 128;
    rows.registers = 64;
    return rows;
  }
  // Parameters are live beside the row: of elements of 4 bytes, a thread holds half as many.
  rows.bytes_per_thread = held <= 8 * kKilo   ? 32
                          : parameters        ? (width < 4 ? 128 : 64)
                          : held > 16 * kKilo ? 128
                                              : 64;
  if (held == 2 * kKilo && bytes < held && bytes * 20 >= held * 19) {
    // One warp: bounds checks at the end of the row then cause no divergence between warps.
    rows.bytes_per_thread = 64;
    rows.registers = parameters ? 64 : 48;
    rows.packed = !parameters;
    return rows;
  }
  if (rows.many) rows.coarsening = times_within(kBlockBytes - 1, rows.moved, kMostTogether);
  // A row that is not a power of two leaves some threads idle at its end. Fewer threads with more
  // accesses each finish at about the same time.
  const auto accesses = [&] {
    return (bytes * rows.bytes_per_thread + held * access - 1) / (held * access);
  };
  const auto is_even = [&] {
    return bytes * rows.bytes_per_thread * 20 >= accesses() * held * access * 19;
  };
  while (!is_even() && rows.bytes_per_thread < 128) rows.bytes_per_thread *= 2;
  const std::int64_t row_bytes = accesses() * access;  // of a thread
  if (parameters) {
    rows.registers = held <= 2 * kKilo ? 0
                     : row_bytes <= 32 ? 40
                     : row_bytes <= 64 ? 64
                     : row_bytes <= 96 ? 80
                                       : 128;
  } else {
    rows.registers = row_bytes / width <= 32 ? 0 : 80;
  }
  return rows;
}

int programs_of_block(const RowSchedule& rows) {
  constexpr int kLeast = 4, kMost = 16;
  const std::int64_t bytes = rows.moved * rows.coarsening;
  if (!rows.many) return kLeast;
  return std::max(kLeast, times_within(2 * kBlockBytes - 1, bytes, kMost));
}

void gather_reductions(Kernel& kernel) {
  std::map<ValueId, int> depths;  // by value: number of reductions that it depends on
  std::vector<std::pair<int, OpId>> order;
  int deepest = 0;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    int depth = is_pure(kernel, op) ? 0 : deepest;
    for (const ValueId in : op.in)
      if (const auto found = depths.find(in); found != depths.end())
        depth = std::max(depth, found->second);
    const bool reduces = op.code == Code::Reduce;
    order.emplace_back(2 * depth + (reduces ? 1 : 0), id);
    for (const ValueId out : op.out) depths[out] = depth + (reduces ? 1 : 0);
    deepest = std::max(deepest, depth + (reduces ? 1 : 0));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < order.size(); ++i) kernel.body.ops[i] = order[i].second;
}

}  // namespace tessera::tile::gpu
