#include "tessera/lower/group.h"

#include <algorithm>

#include "tessera/lower/product_dtype.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/passes/for_grid.h"

namespace tessera::lower {
namespace {

/// Programs along the first axis alone where there are too many along the others.
void fit_grid(Lowered& lowered, std::int64_t most_across) {
  tile::Grid& grid = lowered.grid;
  if (grid[1] <= most_across && grid[2] <= most_across) return;
  lowered.kernel = tile::along_one_axis(lowered.kernel, grid);
  grid = {grid[0] * grid[1] * grid[2], 1, 1};
}

/// Operands that are 16-bit floats stay so where the machine multiplies them faster than f32.
GroupOptions with_exact_products(const Group& group, const machine::Machine& machine,
                                 GroupOptions options) {
  if (options.exact || options.contraction_dtype != DType::F32) return options;
  const std::vector<DType> fast = machine::fast_product_types(machine);
  const auto dtype = product_dtype(group);
  if (dtype && std::ranges::find(fast, *dtype) != fast.end()) {
    options.contraction_dtype = *dtype;
    options.exact_operands = true;
  }
  return options;
}

}  // namespace

Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& given) {
  const GroupOptions options = with_exact_products(group, machine, given);
  Diagnostic why{.id = "lower-unsupported",
                 .message = "no code generation for this group",
                 .note = "interpreter fallback"};
  // The special ones first: what two of them can do, the earlier does faster.
  for (const auto strategy : {lower_scatter, lower_attention, lower_winograd, lower_contraction,
                              lower_copy, lower_rows, lower_elementwise}) {
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
      fit_grid(lowered, traits_of(machine).most_programs_across);
      lowered.kernel = tile::for_grid(lowered.kernel, lowered.grid);
      if (accepted && options.accept) accepted = options.accept(lowered.kernel);
    }
    if (accepted) return code;
    why = std::move(accepted).error();
  }
  return why;
}

}  // namespace tessera::lower
