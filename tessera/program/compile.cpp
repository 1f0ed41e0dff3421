#include "tessera/program/compile.h"

#include <algorithm>
#include <chrono>

#include "tessera/codegen/image.h"
#include "tessera/ir/expand.h"
#include "tessera/program/affine_norms.h"
#include "tessera/program/arena.h"
#include "tessera/program/assemble.h"
#include "tessera/program/limit.h"
#include "tessera/program/phases.h"
#include "tessera/program/scan.h"
#include "tessera/program/weights.h"
#include "tessera/program/wide_groups.h"

namespace tessera::program {
namespace {

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Expected<Compiled> compile(const Graph& graph, const CompileOptions& options) {
  Stopwatch watch;
  const Graph affine = options.exact ? graph : with_affine_norms(graph);
  TESSERA_TRY(const Graph plain, expand(affine, [](const OpDef&) { return true; }));
  TESSERA_TRY(const Graph phased, with_phases(plain));
  // Zeros times infinity would be seen.
  const Graph wide = options.exact ? phased : with_wide_groups(phased, options.machine);
  TESSERA_TRY(const Graph core, with_plain_scans(wide));
  TESSERA_TRY(Draft draft, assemble(core, options));
  if (options.memory_limit > 0) {
    TESSERA_TRY_DONE(limit_memory(draft, options.memory_limit));
  } else {
    plan_arena(draft);
  }
  draft.report.seconds_lowering = watch.lap();

  const std::size_t all = draft.kernels.size();
  codegen::ImageOptions image_options{
      .kernel = {.precision = options.exact ? codegen::Precision::Exact : codegen::Precision::Fast,
                 .cache = options.cache},
      .threads = options.threads,
      .stop = options.stop};
  if (options.progress)
    image_options.progress = [&](std::size_t done) { options.progress(done, all); };
  TESSERA_TRY(const codegen::Image image,
              codegen::build_image(draft.kernels, options.machine, image_options));
  for (std::size_t k = 0; k < all; ++k) {
    draft.program.kernels[k].entry = image.entries[k].offset;
    draft.program.kernels[k].scratch_bytes = image.entries[k].scratch_bytes;
  }
  draft.program.image = image.code;
  draft.report.kernels = all;
  draft.report.kernels_from_cache = static_cast<std::size_t>(image.from_cache);
  draft.report.seconds_code = watch.lap();

  TESSERA_TRY_DONE(lay_out_weights(options, draft));
  draft.report.seconds_weights = watch.lap();
  draft.program.architecture = machine::to_string(options.machine.architecture);
  draft.program.features = options.machine.features;
  return Compiled{std::move(draft.program), std::move(draft.report)};
}

}  // namespace tessera::program
