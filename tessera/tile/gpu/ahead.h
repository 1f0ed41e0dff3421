#pragma once

#include <set>
#include <vector>

#include "tessera/tile/gpu/decided.h"
#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/gpu/planned.h"

namespace tessera::tile::gpu {

/// An operand of a loop's products that is copied some rounds ahead: each stage of a ring in shared
/// memory has room for one round.
struct Ring {
  OpId load = 0;
  Panels panels = {};
  std::int64_t offset = 0;  // bytes from the beginning of a stage
  /// The axis of the load whose neighbours lie in a row; the others, one after the other, are the
  /// rows.
  std::size_t column = 1;
  std::vector<bool> inside = {};  // axes along which no round leaves the view
  /// What its panels have more than the tile, up to powers of two, is filled with zeros.
};

/// The operands of a loop that are copied ahead.
struct Ahead {
  std::vector<Ring> rings = {};
  std::int64_t bytes = 0;  // of a stage
  /// Products that go on while the next round begins: their sums are read after the loop alone.
  std::set<OpId> pending = {};
};

/// Which loads of a loop are copied ahead: those that only products of tensor cores read, as they
/// are, turned, or as the rows of a box, from places that can be known ahead.
///
/// Needs:  `loop` is a For.
/// Leaves: nothing where the loop writes, because what is read must not come before what is
///         written. With more than two stages, which product may go on into the next round.
Decided<Ahead> copies_ahead(const Planned& planned, const Operation& loop, int stages);

/// How a number changes with the index of a loop. Linear: the first and the last round tell the
/// bounds of all. Known: it can be computed ahead.
enum class Course : std::uint8_t { Fixed, Linear, Known, Unknown };
Course course_of(const Planned& planned, const Operation& loop, ValueId id);

}  // namespace tessera::tile::gpu
