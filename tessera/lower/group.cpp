#include "tessera/lower/group.h"

#include "tessera/tile/passes/for_grid.h"

namespace tessera::lower {

Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& options) {
  Diagnostic why{.id = "lower-unsupported",
                 .message = "the group has no form as tile programs",
                 .note = "the interpreter computes it"};
  // The special ones first: what two of them can do, the earlier does faster.
  for (const auto strategy : {lower_scatter, lower_attention, lower_winograd, lower_contraction,
                              lower_segments, lower_rows, lower_elements}) {
    // One that fails (a tile would be too large) leaves the group to the next.
    Expected<Attempt> attempt = strategy(group, machine, options);
    if (!attempt) {
      why = std::move(attempt).error();
      continue;
    }
    if (!*attempt) continue;
    GroupCode code = **std::move(attempt);
    Expected<Done> accepted = Done{};
    for (Lowered& lowered : code.kernels) {
      lowered.kernel = tile::for_grid(lowered.kernel, lowered.grid);
      if (accepted && options.accept) accepted = options.accept(lowered.kernel);
    }
    if (accepted) return code;
    why = std::move(accepted).error();
  }
  return why;
}

}  // namespace tessera::lower
