#include "tessera/driver/rewrite_gains.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tessera {
namespace {

bool has_static_inputs(const Graph& graph) {
  return std::ranges::all_of(graph.inputs(),
                             [&](ValueId id) { return static_shape(graph.type(id)).has_value(); });
}

/// Rules that were applied and passes that changed the graph, each once.
std::set<std::pair<std::string, std::string>> rewrites_of(const std::vector<passes::Record>& log) {
  std::set<std::pair<std::string, std::string>> all;
  for (const passes::Record& record : log) {
    const auto info = std::ranges::find_if(passes::pass_list(), [&](const passes::PassInfo& entry) {
      return entry.name == record.pass && entry.stage == passes::Stage::Algebra;
    });
    if (!record.changed || info == passes::pass_list().end()) continue;
    all.emplace(record.pass, "");
    if (info->numerics != passes::NumericsClass::PerRule) continue;
    for (const passes::Change& change : record.changes) all.emplace(record.pass, change.what);
  }
  return all;
}

double modelled(const cost::Estimate& estimate) {
  double seconds = 0;
  for (const cost::Kernel& kernel : estimate.kernels) seconds += kernel.modelled;
  return seconds;
}

}  // namespace

Expected<std::vector<RewriteGain>> rewrite_gains(const Graph& graph,
                                                 const std::vector<passes::Record>& log,
                                                 const GainOptions& options) {
  std::vector<RewriteGain> gains;
  const auto rewrites = rewrites_of(log);
  if (rewrites.empty() || !has_static_inputs(graph)) return gains;
  program::CompileOptions code = options.code;
  code.passes.validate = false;
  code.passes.observe = {};
  code.progress = {};
  TESSERA_TRY(const std::unique_ptr<cost::Model> model,
              cost::open_model({.code = code, .store = options.store}));
  const auto estimate = [&](const passes::Options& how) -> Expected<cost::Estimate> {
    TESSERA_TRY(const passes::Optimized made, passes::optimize(graph, how));
    return model->estimate(made.graph);
  };
  TESSERA_TRY(const cost::Estimate with, estimate(code.passes));
  for (const auto& [pass, rule] : rewrites) {
    passes::Options how = code.passes;
    if (rule.empty())
      how.disabled.insert(pass);
    else
      how.disabled_rules.insert(rule);
    TESSERA_TRY(const cost::Estimate without, estimate(how));
    // Measurements and the model are not mixed: the difference would be that of the two methods.
    const bool measured = with.measured && without.measured;
    gains.push_back({.pass = pass,
                     .rule = rule,
                     .before = measured ? without.seconds : modelled(without),
                     .after = measured ? with.seconds : modelled(with),
                     .measured = measured});
  }
  return gains;
}

}  // namespace tessera
