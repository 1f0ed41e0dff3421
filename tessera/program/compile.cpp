#include "tessera/program/compile.h"

#include <algorithm>
#include <chrono>

#include "tessera/codegen/image.h"
#include "tessera/ir/expand.h"
#include "tessera/program/assemble.h"
#include "tessera/program/memory.h"
#include "tessera/program/phases.h"
#include "tessera/program/scan.h"
#include "tessera/program/weights.h"

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

/// Calls visit(value, writes) for every value that a step touches.
template <class Visit>
void for_each_use(const Draft& draft, std::size_t at, const Visit& visit) {
  const runtime::Step& step = draft.program.steps[at];
  if (const auto* launch = std::get_if<runtime::step::Launch>(&step)) {
    for (const auto& patch : launch->patches) visit(patch.at.value);
  } else if (const auto* copy = std::get_if<runtime::step::Copy>(&step)) {
    visit(copy->from.value);
    visit(copy->to.value);
  } else if (const auto* host = std::get_if<runtime::step::Host>(&step)) {
    for (const auto& values : {host->inputs, host->outputs})
      for (const runtime::ValueIndex value : values) visit(value);
  }
}

/// Gives every value of the arena its offset.
void plan(Draft& draft) {
  constexpr int never = -1;
  std::vector<Lifetime> of_value(draft.program.values.size(), {.first = never});
  for (std::size_t at = 0; at < draft.program.steps.size(); ++at)
    for_each_use(draft, at, [&](runtime::ValueIndex value) {
      Lifetime& life = of_value[value];
      if (life.first == never) life.first = static_cast<int>(at);
      life.last = static_cast<int>(at);
    });
  // What is used in a loop and outside of it is needed in every round.
  for (std::size_t at = 0; at < draft.program.steps.size(); ++at) {
    const auto* loop = std::get_if<runtime::step::Loop>(&draft.program.steps[at]);
    if (loop == nullptr) continue;
    const int begin = static_cast<int>(at), end = static_cast<int>(loop->end) - 1;
    for (Lifetime& life : of_value) {
      if (life.first == never || life.last <= begin || life.first > end) continue;
      if (life.first > begin && life.last <= end) continue;
      life.first = std::min(life.first, begin);
      life.last = std::max(life.last, end);
    }
  }
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> values;
  for (std::size_t v = 0; v < of_value.size(); ++v) {
    const runtime::Value& value = draft.program.values[v];
    if (value.home != runtime::Value::Home::Arena || of_value[v].first == never) continue;
    of_value[v].bytes = value.bytes;
    lifetimes.push_back(of_value[v]);
    values.push_back(v);
  }
  const MemoryPlan plan = plan_memory(lifetimes);
  for (std::size_t i = 0; i < values.size(); ++i)
    draft.program.values[values[i]].offset = plan.offsets[i];
  draft.program.arena_bytes = plan.bytes;
  draft.report.arena_bytes = plan.bytes;
  draft.report.arena_lower_bound = plan.lower_bound;
}

}  // namespace

Expected<Compiled> compile(const Graph& graph, const CompileOptions& options) {
  Stopwatch watch;
  TESSERA_TRY(const Graph plain, expand(graph, [](const OpDef&) { return true; }));
  TESSERA_TRY(const Graph phased, with_phases(plain));
  TESSERA_TRY(const Graph core, with_plain_scans(phased));
  TESSERA_TRY(Draft draft, assemble(core, options));
  plan(draft);
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
