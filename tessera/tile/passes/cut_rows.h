#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// A kernel that processes one part of a row per pass, for rows that exceed the registers of a
/// block. Intermediate form of code generation: on its own it is not equivalent to its source.
///
///   x: f16[1, 50257] = vload(v, row, 0)  =>  x: f16[1, 8192] = vload(v, row, column)
///
/// A reduction along the row covers one part; the code generator runs the kernel for every multiple
/// of `part` as `column` and combines the results.
struct CutRows {
  Kernel kernel = {};
  ValueId column = 0;                 // value of the kernel: start of the part
  std::int64_t extent = 0, part = 0;  // elements of a row, and of a part
  std::map<ValueId, int> axes = {};   // by tile along a row: the axis that is cut
};

/// Cuts every tile along rows of `extent` elements into parts of `part` elements.
///
/// Needs:  straight-line code.
/// Keeps:  the order of operations.
/// Returns nothing where a program does more with rows than load, compute elementwise, reduce by a
/// function with a neutral element, and store one of them; or where it stores before the last load,
/// or an address depends on a reduction.
std::optional<CutRows> cut_rows(const Kernel& kernel, std::int64_t extent, std::int64_t part);

/// Neutral element of a reduction: combining it with x gives x (NaN for a maximum that ignores
/// NaN). None for functions without one.
std::optional<Literal> neutral_of(Function function, DType dtype);

}  // namespace tessera::tile
