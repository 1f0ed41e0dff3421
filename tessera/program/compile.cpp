#include "tessera/program/compile.h"

#include <fmt/format.h>

#include <set>

#include "tessera/program/arena.h"
#include "tessera/program/backend.h"
#include "tessera/program/constants.h"
#include "tessera/program/limit.h"
#include "tessera/program/plan.h"
#include "tessera/program/weights.h"
#include "tessera/support/stopwatch.h"

namespace tessera::program {
namespace {

/// Records which groups were lowered by given schedules.
void report_schedules(CompileReport& report) {
  std::set<const Lowering*> seen;
  for (const CompileReport::Step& step : report.steps) {
    if (step.group == nullptr || !seen.insert(step.group.get()).second) continue;
    if (step.group->is_scheduled) ++report.scheduled_groups;
    if (step.group->illegal)
      report.illegal_schedules.push_back(
          fmt::format("{} ({}): {}", step.group->key, step.what, step.group->illegal->message));
  }
}

}  // namespace

Lowerings lowerings_for(const CompileOptions& options) {
  return backend_of(options.machine).lowerings(options);
}

Expected<Draft> plan(const Graph& graph, const PlanContext& planning) {
  const CompileOptions& options = planning.options;
  TESSERA_TRY(const passes::Optimized optimized,
              passes::optimize_for_target(graph, options.passes,
                                          {.machine = options.machine,
                                           .evaluate_constants = assume_constants,
                                           .assumes_constants = true}));
  return assemble(optimized.graph, planning);
}

Expected<Compiled> compile(const Graph& graph, const CompileOptions& options) {
  const auto constants = [&](const Graph& given) { return evaluate_constants(given, options); };
  TESSERA_TRY(
      passes::Optimized optimized,
      passes::optimize_for_target(graph, options.passes,
                                  {.machine = options.machine, .evaluate_constants = constants}));
  TESSERA_TRY(Compiled compiled, compile_core_graph(optimized.graph, options));
  compiled.report.passes = std::move(optimized.log);
  return compiled;
}

Expected<Compiled> compile_core_graph(const Graph& graph, const CompileOptions& options) {
  Stopwatch watch;
  Lowerings lowerings = lowerings_for(options);
  TESSERA_TRY(Draft draft, assemble(graph, {.options = options, .lowerings = lowerings}));
  if (options.memory_limit > 0) {
    TESSERA_TRY_DONE(limit_memory(draft, options.memory_limit));
  } else {
    plan_arena(draft);
  }
  report_schedules(draft.report);
  draft.report.seconds_lowering = watch.lap();

  TESSERA_TRY(const std::int64_t from_cache, backend_of(options.machine).add_code(options, draft));
  draft.report.kernels = draft.kernels.size();
  draft.report.kernels_from_cache = static_cast<std::size_t>(from_cache);
  draft.report.seconds_code = watch.lap();

  TESSERA_TRY_DONE(lay_out_weights(options, draft));
  draft.report.seconds_weights = watch.lap();
  return Compiled{std::move(draft.program), std::move(draft.report), std::move(draft.kernels)};
}

}  // namespace tessera::program
