#include "tessera/codegen/ptx/gpu_form.h"

#include <fmt/format.h>

#include "tessera/tile/gpu/block_program_text.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/remarks.h"

namespace tessera::codegen {

Expected<std::string> gpu_form_of(const tile::Kernel& kernel, const PtxOptions& options) {
  TESSERA_TRY(const auto scheduled, schedule_for_ptx(kernel, options));
  return tile::gpu::to_text(*scheduled);
}

Expected<std::string> block_form_of(const tile::Kernel& kernel, const PtxOptions& options) {
  TESSERA_TRY(const auto scheduled, schedule_for_ptx(kernel, options));
  tile::Remarks numbers;
  tile::for_each_op(scheduled->kernel, scheduled->kernel.body, [&](tile::OpId id) {
    const std::vector<tile::ValueId>& out = scheduled->kernel.ops[id].out;
    numbers[id] = fmt::format("#{}", id);
    for (const tile::ValueId value : out) numbers[id] += fmt::format(" %{}", value);
  });
  return tile::to_text(scheduled->kernel, numbers) + "\n" + tile::gpu::to_text(scheduled->program);
}

}  // namespace tessera::codegen
