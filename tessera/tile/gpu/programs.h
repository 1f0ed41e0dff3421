#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/tile/gpu/planned.h"

namespace tessera::tile::gpu {

/// Numbers and views that follow from parameters and the grid alone: whether they are the same in
/// all programs along axis 0, or differ. Views that differ are none of them.
enum class ByProgram : std::uint8_t { Same, Differs };
using Courses = std::map<ValueId, ByProgram>;
Courses courses_of(const Kernel& kernel);

/// The argument that a view is one of, where the kernel moved none of its pointers.
std::optional<ValueId> root_of(const Planned& planned, ValueId view);

/// A load that all programs do before they write. Where a block goes on with further programs, each
/// thread copies what it will read itself, for the next program while this one runs, or once, if it
/// is the same for all.
struct Stream {
  OpId load = 0;
  std::int64_t bytes = 0;  // of a program
  bool fixed = false;
};
std::vector<Stream> streams_of(const Planned& planned, const Courses& courses);

/// An access whose place is known before the program runs, with what the launch may find to be so;
/// code is written for that, without branches, and again for all else.
struct Sure {
  int run = 1;            // elements that are taken at once; from two on, they are aligned
  bool constant = false;  // read by all programs, of which there are several, and written by none
  bool anywhere = false;  // where it is not aligned, two words are read for one
  bool edge = false;      // some elements may lie outside of the row, where nobody looks
  std::vector<bool> inside = {};  // by axis
  bool aligned() const { return run > 1; }
};
/// By access, in the order of the kernel.
std::vector<std::pair<OpId, Sure>> sure_accesses(const Planned& planned, const Courses& courses);

}  // namespace tessera::tile::gpu
