#include "tessera/lower/group.h"

#include "tessera/tile/passes/for_grid.h"

namespace tessera::lower {

Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& options) {
  // The special ones first: what two of them can do, the earlier does faster.
  for (const auto strategy :
       {lower_attention, lower_winograd, lower_contraction, lower_rows, lower_elements}) {
    TESSERA_TRY(Attempt code, strategy(group, machine, options));
    if (!code) continue;
    for (Lowered& lowered : code->kernels)
      lowered.kernel = tile::for_grid(lowered.kernel, lowered.grid);
    return *std::move(code);
  }
  return Diagnostic{.id = "lower-unsupported",
                    .message = "the group has no form as tile programs",
                    .note = "the interpreter computes it"};
}

}  // namespace tessera::lower
