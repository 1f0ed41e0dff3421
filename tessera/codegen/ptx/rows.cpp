#include "tessera/codegen/ptx/rows.h"

#include <algorithm>
#include <set>

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Operation;
using tile::ValueId;

namespace {

/// Whether one program after the other can be run by a block: straight code that reads views,
/// reduces and writes views.
bool is_rows(const tile::Kernel& kernel) {
  bool reduces = false;
  for (const tile::OpId id : kernel.body.ops) {
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

}  // namespace

Rows rows_of(const tile::Kernel& kernel) {
  Rows rows;
  rows.any = is_rows(kernel);
  if (!rows.any) return rows;
  std::int64_t bytes = 0;
  bool parameters = false;       // tiles that all programs read
  std::set<ValueId> by_program;  // what differs between them
  for (const tile::OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    const bool differs =
        op.code == Code::Pid || std::any_of(op.in.begin(), op.in.end(),
                                            [&](ValueId in) { return by_program.count(in) != 0; });
    if (differs) by_program.insert(op.out.begin(), op.out.end());
    if (op.code != Code::Vload) continue;
    const tile::Type& tile = kernel.type(op.out[0]);
    bytes = std::max(bytes, tile.count() * byte_width(tile.dtype));
    parameters = parameters || !differs;
  }
  constexpr std::int64_t kKilo = 1024;
  // So many bytes of a row leave a multiprocessor no room for a second one.
  const bool alone = bytes > 32 * kKilo;
  rows.loops = parameters || bytes > 16 * kKilo;
  if (bytes <= kKilo) return rows;  // in a warp
  if (bytes <= 8 * kKilo) {
    rows.bytes_per_thread = 32;
    rows.loops = parameters && bytes > 2 * kKilo;
  } else if (parameters) {
    rows.bytes_per_thread = 128;
    rows.registers = 128;
    rows.ahead = bytes <= 16 * kKilo ? 2 : 1;
  } else if (!alone) {
    rows.ahead = 2;
    rows.registers = 128;
  }
  return rows;
}

}  // namespace tessera::codegen::ptx
