#pragma once

#include <string>
#include <string_view>

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/block_program.h"

namespace tessera::tile::gpu {

/// Text of form S, beside that of the kernel whose operations (`#3`) and values (`%7`) it names:
///
///   block_program(shared = 2048, own_bytes = 0) {
///     layout L0 = 2 [1:0, 1:1] [1:2, 1:3, 1:4, 1:5, 1:6]
///     compute(op = #0)
///     load_view(op = #2, layout = L0, run = 4)
///     convert(value = %5, from = L0, to = L1, through = f32[16, 36] @ 0)
///     for(op = #9, start = [%6: L0], params = [%8: L0], results = [%12: L0], body = {
///       …
///       yield(values = [%11: L0])
///     })
///   }
///
/// Fields that are empty or false are left out. Printed text parses back to the same program and
/// prints the same.
std::string to_text(const BlockProgram& program);
Expected<BlockProgram> parse_block_program(std::string_view text);

}  // namespace tessera::tile::gpu
