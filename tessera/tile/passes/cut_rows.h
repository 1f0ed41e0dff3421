#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// What a program does with a row, of a part of it: a step on the way to code, not a kernel that
/// means what its source does.
///
///   x: f16[1, 50257] = vload(v, row, 0)  =>  x: f16[1, 8192] = vload(v, row, column)
///
/// A reduction along the row is one of a part; who runs it for every `column` that is a multiple of
/// `part` joins the results.
struct CutRows {
  Kernel kernel = {};
  ValueId column = 0;                 // of the kernel: where the part begins
  std::int64_t extent = 0, part = 0;  // elements of a row, and of a part
  std::map<ValueId, int> axes = {};   // of tiles along a row: which axis is cut
};

/// Cuts every tile that lies along rows of so many elements.
///
/// Needs:  straight code.
/// Keeps:  the order of operations.
/// Nothing where a program does more with rows than read, compute element by element, reduce by a
/// function that has a neutral number, and write one of them; or where it writes before it has read
/// all, or what it has reduced says where.
std::optional<CutRows> cut_rows(const Kernel& kernel, std::int64_t extent, std::int64_t part);

/// What a reduction may join with any number, which stays as it is: for a maximum that passes over
/// NaN, NaN. Nothing for functions that have none.
std::optional<Literal> neutral_of(Function function, DType dtype);

}  // namespace tessera::tile
