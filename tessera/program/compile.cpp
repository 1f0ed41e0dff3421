#include "tessera/program/compile.h"

#include <algorithm>

#include "tessera/codegen/gpu_image.h"
#include "tessera/codegen/image.h"
#include "tessera/program/arena.h"
#include "tessera/program/constants.h"
#include "tessera/program/limit.h"
#include "tessera/program/plan.h"
#include "tessera/program/weights.h"
#include "tessera/support/stopwatch.h"

namespace tessera::program {
namespace {

/// Whether functions of elements are exact or a little faster.
codegen::Precision precision_of(const CompileOptions& options) {
  return options.passes.exact ? codegen::Precision::Exact : codegen::Precision::Fast;
}

/// Code of all kernels: one image of a processor's, or texts of PTX.
Expected<Done> add_code(const CompileOptions& options, Draft& draft) {
  const std::size_t all = draft.kernels.size();
  const codegen::ImageOptions how = image_options(options, all);
  std::vector<tile::Kernel> kernels;
  for (const auto& kernel : draft.kernels) kernels.push_back(*kernel);
  runtime::Program& program = draft.program;
  std::int64_t from_cache = 0;
  if (options.machine.is_gpu()) {
    TESSERA_TRY(codegen::GpuImage image, codegen::build_gpu_image(kernels, options.machine, how));
    for (std::size_t k = 0; k < all; ++k) {
      image.kernels[k].name = std::move(program.kernels[k].name);
      program.kernels[k] = std::move(image.kernels[k]);
    }
    program.image = std::move(image.text);
    program.architecture = options.machine.features.front();
    from_cache = image.from_cache;
  } else {
    TESSERA_TRY(codegen::Image image, codegen::build_image(kernels, options.machine, how));
    for (std::size_t k = 0; k < all; ++k) {
      program.kernels[k].entry = image.entries[k].offset;
      program.kernels[k].scratch_bytes = image.entries[k].scratch_bytes;
    }
    program.image = std::move(image.code);
    program.architecture = machine::to_string(options.machine.architecture);
    program.features = options.machine.features;
    from_cache = image.from_cache;
  }
  draft.report.kernels = all;
  draft.report.kernels_from_cache = static_cast<std::size_t>(from_cache);
  return Done{};
}

}  // namespace

codegen::ImageOptions image_options(const CompileOptions& options, std::size_t all) {
  codegen::ImageOptions how{.kernel = {.precision = precision_of(options), .cache = options.cache},
                            .threads = options.threads,
                            .stop = options.stop};
  if (options.progress)
    how.progress = [told = options.progress, all](std::size_t done) { told(done, all); };
  return how;
}

Lowerings lowerings_for(const CompileOptions& options) {
  machine::Machine machine = options.machine;
  lower::GroupOptions how{.exact = options.passes.exact, .products = options.products};
  if (machine.is_gpu()) {
    const codegen::PtxOptions ptx = codegen::ptx_options(machine, precision_of(options));
    how.accept = [ptx](const tile::Kernel& kernel) { return codegen::check_ptx(kernel, ptx); };
  } else {
    machine.cores = std::max(1, options.threads);
  }
  return {std::move(machine), how};
}

Expected<Draft> plan(const Graph& graph, const Planning& planning) {
  const CompileOptions& options = planning.options;
  TESSERA_TRY(const passes::Optimized optimized,
              passes::optimize_for_target(graph, options.passes,
                                          {.machine = options.machine,
                                           .evaluate_constants = with_assumed_constants,
                                           .assumes_constants = true}));
  return assemble(optimized.graph, planning);
}

Expected<Compiled> compile(const Graph& graph, const CompileOptions& options) {
  const auto constants = [&](const Graph& given) {
    return with_computed_constants(given, options);
  };
  TESSERA_TRY(
      passes::Optimized optimized,
      passes::optimize_for_target(graph, options.passes,
                                  {.machine = options.machine, .evaluate_constants = constants}));
  TESSERA_TRY(Compiled compiled, compile_as_it_is(optimized.graph, options));
  compiled.report.passes = std::move(optimized.log);
  return compiled;
}

Expected<Compiled> compile_as_it_is(const Graph& graph, const CompileOptions& options) {
  Stopwatch watch;
  Lowerings lowerings = lowerings_for(options);
  TESSERA_TRY(Draft draft, assemble(graph, {.options = options, .lowerings = lowerings}));
  if (options.memory_limit > 0) {
    TESSERA_TRY_DONE(limit_memory(draft, options.memory_limit));
  } else {
    plan_arena(draft);
  }
  draft.report.seconds_lowering = watch.lap();

  TESSERA_TRY_DONE(add_code(options, draft));
  draft.report.seconds_code = watch.lap();

  TESSERA_TRY_DONE(lay_out_weights(options, draft));
  draft.report.seconds_weights = watch.lap();
  return Compiled{std::move(draft.program), std::move(draft.report), std::move(draft.kernels)};
}

}  // namespace tessera::program
