#pragma once

#include <string>
#include <string_view>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Text form of tile IR; docs/tile.md specifies it. Printed text parses back to the same kernel and
/// prints the same.
///
///   kernel softmax(x: view f32[?, 1024], out: view f32[?, 1024]) {
///     row: i64 = pid() {axis = 0}
///     zero: i64 = 0
///     t: f32[1, 1024] = vload(x, row, zero) {pad = -inf}
///     m: f32[1] = reduce(t) {fn = max, axis = 1}
///     …
///     sum: f32[64] = for (i: i64 = from to n step s, acc: f32[64] = start) {
///       next: f32[64] = add(acc, part)
///       yield(next)
///     }
///     vstore(out, row, zero, y)
///   }
///
/// A map is written by the name of its function. In hand-written text, more can be left out: types
/// that follow from the operands, types of numbers that follow from the other operands, broadcasts
/// of scalars, names of values that are used once (`vload(x, mul(pid(), 64), 0)`). All of it is
/// printed in full.
std::string to_text(const Kernel& kernel);

/// Parses and verifies a kernel. Operations keep their source lines. Constants that the text
/// declares, `BLOCK: const = 1024`, have the given values in place of their defaults; values for
/// other names are ignored.
Expected<Kernel> parse_kernel(std::string_view text, const std::string& file = {},
                              const std::vector<Constant>& values = {});

}  // namespace tessera::tile
