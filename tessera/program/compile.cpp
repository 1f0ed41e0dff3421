#include "tessera/program/compile.h"

#include <algorithm>

#include "tessera/codegen/gpu_image.h"
#include "tessera/codegen/image.h"
#include "tessera/ir/expand.h"
#include "tessera/program/affine_norms.h"
#include "tessera/program/arena.h"
#include "tessera/program/constants.h"
#include "tessera/program/integer_products.h"
#include "tessera/program/joined_products.h"
#include "tessera/program/limit.h"
#include "tessera/program/phases.h"
#include "tessera/program/plan.h"
#include "tessera/program/scan.h"
#include "tessera/program/stage.h"
#include "tessera/program/transforms.h"
#include "tessera/program/weights.h"
#include "tessera/program/wide_groups.h"
#include "tessera/support/stopwatch.h"

namespace tessera::program {
namespace {

/// Whether functions of elements are exact or a little faster.
codegen::Precision precision_of(const CompileOptions& options) {
  return options.exact ? codegen::Precision::Exact : codegen::Precision::Fast;
}

/// Core operators, and composites whose bodies depend on values that are known at run time alone,
/// which the host computes.
Expected<Graph> expanded(const Graph& given, const CompileOptions& options) {
  const Graph graph = options.exact ? given : with_affine_norms(given);
  // Expansion infers all types again, which graphs that know theirs can do without.
  bool plain = std::ranges::all_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->kind() == OpDef::Kind::Core && graph.subgraphs(node).empty();
  });
  for (std::uint32_t v = 0; plain && v < graph.value_count(); ++v)
    plain = numbers(graph.type(ValueId{v})).has_value();
  if (plain) return graph;
  return expand(
      graph, [](const OpDef&) { return true; }, NeedsValue::Keep);
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

/// Core operators alone, as the machine computes them best.
Expected<Graph> prepared(const Graph& graph, const CompileOptions& options) {
  TESSERA_TRY(Graph core, expanded(graph, options));
  return options.exact ? core : with_integer_products(core);
}

Expected<Draft> drafted(const Graph& graph, const Planning& planning) {
  TESSERA_TRY(const Graph products, with_transforms(graph));
  TESSERA_TRY(const Graph phased, with_phases(products, planning.options.exact));
  // Zeros times infinity would be seen.
  const Graph wide =
      planning.options.exact ? phased : with_wide_groups(phased, planning.options.machine);
  TESSERA_TRY(const Graph core, with_plain_scans(wide));
  return assemble(planning.options.machine.is_gpu() ? with_joined_products(core) : core, planning);
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
  lower::GroupOptions how{.exact = options.exact, .products = options.products};
  if (machine.is_gpu()) {
    const codegen::PtxOptions ptx = codegen::ptx_options(machine, precision_of(options));
    how.accept = [ptx](const tile::Kernel& kernel) { return codegen::check_ptx(kernel, ptx); };
  } else {
    machine.cores = std::max(1, options.threads);
  }
  return {std::move(machine), how};
}

Expected<Draft> plan(const Graph& graph, const Planning& planning) {
  TESSERA_TRY(const Graph plain, prepared(graph, planning.options));
  return drafted(with_assumed_constants(plain), planning);
}

Expected<Compiled> compile(const Graph& graph, const CompileOptions& options) {
  TESSERA_TRY(const Graph plain, prepared(graph, options));
  TESSERA_TRY(const Graph computed, with_computed_constants(plain, options));
  return compile_as_it_is(computed, options);
}

Expected<Compiled> compile_as_it_is(const Graph& graph, const CompileOptions& options) {
  Stopwatch watch;
  Lowerings lowerings = lowerings_for(options);
  TESSERA_TRY(Draft draft, drafted(graph, {.options = options, .lowerings = lowerings}));
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
