#include "tests/adversary/judgement.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json.h"
#include "tessera/driver/model.h"
#include "tessera/driver/prove.h"
#include "tessera/prove/alarm.h"
#include "tessera/prove/refute.h"
#include "tessera/prove/sizes.h"
#include "tessera/rules/proof.h"
#include "tessera/support/cpu_time.h"
#include "tests/adversary/evaluation.h"

namespace tessera::testing {
namespace {

/// The assumption, as `--json` names it, under which an entry of a truth may be proved.
const std::map<std::string, std::string, std::less<>> kAssumptionOf = {
    {"wrap-around", "wrap-around"}, {"rounding", "rounding"},
    {"non-finite", "non-finite"},   {"empty", "empty"},
    {"domain", "domain"},           {"sizes", "sizes"},
};

View view_of(std::string way, const prove::Verdict& verdict) {
  View view{.way = std::move(way), .verdict = std::string(prove::to_string(verdict))};
  const nlohmann::json object = cli::verdict_json(verdict);
  if (object.contains("assumptions"))
    for (const nlohmann::json& assumption : object["assumptions"]) {
      view.assumptions.insert(assumption.is_object() ? assumption["kind"].get<std::string>() : "");
      view.why += assumption.dump() + " ";
    }
  if (object.contains("why")) view.why = object["why"];
  if (object.contains("counterexample")) view.why = object["counterexample"]["what"];
  return view;
}

View rule_view(const rules::Rule& rule, const std::atomic<bool>* stop) {
  const rules::RuleProof proof = rules::prove_rule(rule, rules::Guards::Stated, {.stop = stop});
  View view = view_of("rule", proof.verdict);
  if (const auto* refuted = std::get_if<prove::Refuted>(&proof.verdict)) {
    const rules::Rule& instance = proof.instances[proof.verdicts.size() - 1];
    const auto again = prove::replay(instance.source, instance.target, *refuted);
    view.replayed = again && *again;
  }
  return view;
}

View models_view(std::string way, const Model& source, const Model& target,
                 const std::atomic<bool>* stop) {
  const prove::AlignOptions names = {.source_outputs = source.output_names,
                                     .target_outputs = target.output_names};
  const auto result = prove::sweep(source.graph, target.graph, {.names = names, .stop = stop});
  // Models that cannot be the same function are refused by a diagnostic.
  if (!result)
    return {.way = std::move(way),
            .verdict = "refuted",
            .why = to_string(result.error()),
            .replayed = true};
  View view = view_of(std::move(way), result->verdict);
  if (const auto* refuted = std::get_if<prove::Refuted>(&result->verdict))
    if (const auto aligned = prove::align(source.graph, target.graph, names))
      view.replayed =
          difference_on(aligned->source, aligned->target, refuted->inputs, Closeness::Bits)
              .has_value();
  return view;
}

bool is_pair_of_models(const rules::Rule& rule) {
  const std::vector<rules::Rule> instances = rules::instances(rule);
  const prove::GraphSymbols symbols = prove::symbols_of(rule.source);
  const bool any_rank = instances.size() != 1 || instances[0].source.hash() != rule.source.hash();
  return rule.guard.empty() && !any_rank && symbols.attributes.empty() && symbols.entries.empty();
}

/// A side of a rule, its outputs named by position.
Model model_of(const Graph& graph) {
  Model model{.graph = graph, .output_names = {}};
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    model.output_names.push_back(fmt::format("output{}", i));
  return model;
}

Expected<std::pair<Model, Model>> models_of(const Entry& entry) {
  if (const auto* rule = std::get_if<rules::Rule>(&entry.pair))
    return std::pair(model_of(rule->source), model_of(rule->target));
  const auto& [source, target] = std::get<ModelPair>(entry.pair);
  TESSERA_TRY(Model a, load_model(source));
  TESSERA_TRY(Model b, load_model(target));
  return std::pair(std::move(a), std::move(b));
}

std::string listed(const std::set<std::string>& kinds) {
  return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, ", "));
}

std::optional<std::string> difference_of(const Entry& entry) {
  const auto* rule = std::get_if<rules::Rule>(&entry.pair);
  if (!entry.witness.empty()) {
    const auto models = models_of(entry);
    if (!models) return std::nullopt;
    return difference_on(models->first.graph, models->second.graph, entry.witness, Closeness::Bits);
  }
  if (rule == nullptr) return std::nullopt;
  for (const rules::Rule& instance : rules::instances(*rule))
    if (auto found = find_difference(instance.source, instance.target, {.guard = instance.guard}))
      return found;
  return std::nullopt;
}

}  // namespace

std::vector<View> views_of(const Entry& entry) {
  std::vector<View> views;
  const auto add = [&](const auto& view_by) {
    prove::Alarm alarm(nullptr);
    alarm.set(3 * kMostSeconds);
    const CpuStopwatch watch;
    views.push_back(view_by(alarm.flag()));
    views.back().seconds = watch.seconds();
  };
  if (const auto* rule = std::get_if<rules::Rule>(&entry.pair)) {
    add([&](auto stop) { return rule_view(*rule, stop); });
    if (!is_pair_of_models(*rule)) return views;
  }
  const auto models = models_of(entry);
  if (!models) {
    views.push_back({.way = "models", .verdict = "unreadable", .why = to_string(models.error())});
    return views;
  }
  const auto& [a, b] = *models;
  add([&](auto stop) { return models_view("models", a, b, stop); });
  add([&](auto stop) { return models_view("models reversed", b, a, stop); });
  return views;
}

Judgement judged(const Entry& entry) {
  Judgement judgement{.views = views_of(entry)};
  // What a view has shown to be false needs no more evidence.
  if (entry.is_true() || std::ranges::none_of(judgement.views, &View::replayed))
    judgement.difference = difference_of(entry);
  return judgement;
}

std::vector<std::string> faults(const Entry& entry, const Judgement& judgement) {
  const std::vector<View>& views = judgement.views;
  std::vector<std::string> found;
  for (const View& view : views) {
    if (view.verdict == "unreadable") found.push_back("unreadable: " + view.why);
    if (entry.is_true() && view.verdict == "refuted")
      found.push_back(fmt::format("{}: refuted though true, {}", view.way, view.why));
    if (entry.truth == "reals" && view.verdict == "proved")
      found.push_back(fmt::format("{}: proved though false", view.way));
    if (const auto kind = kAssumptionOf.find(entry.truth); kind != kAssumptionOf.end() &&
                                                           view.verdict == "proved" &&
                                                           !view.assumptions.contains(kind->second))
      found.push_back(fmt::format("{}: proved without the assumption {}, but with {}", view.way,
                                  kind->second, listed(view.assumptions)));
    if (view.verdict == "refuted" && !view.replayed)
      found.push_back(fmt::format("{}: the counterexample shows nothing", view.way));
    if (view.seconds > kMostSeconds)
      found.push_back(fmt::format("{}: {:.1f} s", view.way, view.seconds));
  }
  if (entry.is_true() && judgement.difference)
    found.push_back("the interpreter computes different outputs: " + *judgement.difference);
  if (!entry.is_true() && !judgement.difference && std::ranges::none_of(views, &View::replayed))
    found.push_back("nothing shows that it is false; state a witness");
  if (views.size() >= 2 && views[views.size() - 2].verdict != views.back().verdict &&
      views.back().way == "models reversed")
    found.push_back(fmt::format("{}, in the other order {}", views[views.size() - 2].verdict,
                                views.back().verdict));
  return found;
}

bool is_decided(const Entry& entry, const Judgement& judgement) {
  const std::string_view wanted = entry.is_true()          ? "proved"
                                  : entry.truth == "reals" ? "refuted"
                                                           : "";
  return faults(entry, judgement).empty() &&
         (wanted.empty() || std::ranges::all_of(judgement.views, [&](const View& view) {
            return view.verdict == wanted;
          }));
}

}  // namespace tessera::testing
