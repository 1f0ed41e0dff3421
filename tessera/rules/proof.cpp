#include "tessera/rules/proof.h"

#include <algorithm>
#include <functional>

#include "tessera/ir/inference_memo.h"
#include "tessera/prove/exactness.h"
#include "tessera/prove/rounding.h"
#include "tessera/prove/sizes.h"
#include "tessera/support/stopwatch.h"

namespace tessera::rules {
namespace {

using prove::Proved;
using prove::Refuted;
using prove::relate_sizes;
using prove::SizeRelations;
using prove::Unknown;
using prove::Verdict;
using prove::with_sizes;

/// What a proof needs beyond what is given, as far as that can be told.
Guard missing(const SizeRelations& given, const Expected<SizeRelations>& needed,
              const Guard& otherwise) {
  return needed ? beyond(given, *needed) : otherwise;
}

/// Whether a graph takes all sizes: then it does so under any further condition.
bool takes_all_sizes(const SizeRelations& relations) {
  return relations.solved.empty() && relations.open.empty() && relations.parts.empty() &&
         relations.broadcasts.empty();
}

/// What the other direction needs: the target is there, so its sizes fit; do those of the source?
/// `source` are its relations, where they are known.
Expected<Guard> missing_backwards(const Rule& rule,
                                  const std::optional<prove::SourceRelations>& source = {}) {
  TESSERA_TRY(const SizeRelations own, relate_sizes(rule.target, {}, prove::Broadcasting::Open));
  if (rule.guard.empty() && source && takes_all_sizes(source->given) && own.solved.empty())
    return Guard{};
  TESSERA_TRY(const SizeRelations given, relate_sizes(rule.guard, own));
  TESSERA_TRY(const SizeRelations all, relate_sizes(rule.source, given));
  return beyond(given, all);
}

/// A difference that satisfies the guard, or why there is neither that nor a proof.
Verdict refuted_or(std::string why, const Rule& rule, const prove::Options& options) {
  Verdict verdict = refute(rule.source, rule.target, rule.guard, options);
  if (std::holds_alternative<Refuted>(verdict)) return verdict;
  return Unknown{std::move(why)};
}

/// Exactness is checked at a few sizes: each of them is for all numbers.
prove::Options exactness_options(prove::Options options) {
  options.tries = std::min(options.tries, 8);
  return options;
}

bool may_wrap_around(const Proved& proved) {
  return std::ranges::any_of(proved.assumptions, [](const prove::Assumption& assumption) {
    return assumption.kind == prove::Assumption::Kind::WrapAround;
  });
}

/// What the source and the guard say of sizes, and both graphs with it put in.
struct Stated {
  SizeRelations given;
  Graph source, target;
  std::optional<prove::SourceRelations> relations = {};  // of `source`, where it is the rule's
};
Expected<Stated> as_stated(const Rule& rule) {
  if (rule.guard.empty()) {
    TESSERA_TRY(prove::SourceRelations relations, prove::source_relations(rule.source));
    return Stated{relations.given, rule.source, rule.target, std::move(relations)};
  }
  TESSERA_TRY(const SizeRelations own, relate_sizes(rule.source, {}, prove::Broadcasting::Open));
  TESSERA_TRY(SizeRelations given, relate_sizes(rule.guard, own));
  TESSERA_TRY(Graph source, with_sizes(rule.source, given.solved));
  TESSERA_TRY(Graph target, with_sizes(rule.target, given.solved));
  return Stated{std::move(given), std::move(source), std::move(target)};
}

Expected<Verdict> verdict_as_stated(const Rule& rule, const prove::Options& options) {
  TESSERA_TRY(const Stated stated, as_stated(rule));
  const auto& [given, source, target, relations] = stated;
  Verdict verdict = relations ? prove::prove_related(source, target, *relations, options)
                              : prove::prove(source, target, options);
  if (!std::holds_alternative<Proved>(verdict)) {
    if (rule.guard.empty()) return verdict;
    const auto* unknown = std::get_if<Unknown>(&verdict);
    return refuted_or(unknown ? unknown->why : "differs where the guard does not hold", rule,
                      options);
  }
  Proved& proved = std::get<Proved>(verdict);
  const Guard more = missing(given, relate_sizes(proved.guard, given), proved.guard);
  if (!more.empty())
    return refuted_or("needs a guard that it does not state: " + to_text(more), rule, options);
  if (rule.both_ways) {
    TESSERA_TRY(const Guard back, missing_backwards(rule, relations));
    if (!back.empty()) return Verdict(Unknown{"holds the other way only where " + to_text(back)});
  }
  proved.guard = rule.guard;
  if (rule.numerics.kind == Numerics::Kind::Exact) {
    if (may_wrap_around(proved))
      return Verdict(Unknown{"equal as integers, but not shown to be exact: they may wrap around"});
    if (prove::rounds_correctly(proved.certificate.claim)) return verdict;
    if (auto inexact = prove::inexactness(source, target, rule.guard, exactness_options(options)))
      return *std::move(inexact);
  }
  return verdict;
}

void add_new(const Proved& from, Proved& into) {
  const auto add = [](const auto& items, auto& all) {
    for (const auto& item : items)
      if (std::ranges::find(all, item) == all.end()) all.push_back(item);
  };
  add(from.guard, into.guard);
  add(from.assumptions, into.assumptions);
}

using Decide = std::function<Verdict(const Rule&)>;

/// Verdicts on the rules that an instance of a rule was decided by: the instance itself or its
/// broadcasting cases.
struct Decision {
  std::vector<Rule> rules;
  std::vector<Verdict> verdicts;
  std::optional<Verdict> of_cases = {};

  const Verdict& verdict() const { return of_cases ? *of_cases : verdicts.front(); }
};

/// An instance that is not proved as a whole is proved by its broadcasting cases, if all of them
/// are proved.
Decision decision_on(const Rule& instance, const Decide& decide) {
  Decision undivided;
  undivided.rules.push_back(instance);
  undivided.verdicts.push_back(decide(instance));
  if (!std::holds_alternative<Unknown>(undivided.verdict())) return undivided;
  Proved all;
  Decision decision;
  for (BroadcastingCase& one : broadcasting_cases(instance)) {
    Verdict verdict = decide(one.rule);
    const auto* proved = std::get_if<Proved>(&verdict);
    if (proved == nullptr) return undivided;
    if (decision.rules.empty())
      all = *proved;
    else
      add_new(*proved, all);
    decision.rules.push_back(std::move(one.rule));
    decision.verdicts.push_back(std::move(verdict));
  }
  if (decision.rules.empty()) return undivided;
  decision.of_cases = std::move(all);
  return decision;
}

/// Verdict on a rule: its first refuted instance, else the first one that is not proved, else what
/// all instances assume together.
RuleProof collected(const Rule& rule, const Decide& decide) {
  const Stopwatch watch;
  const InferenceMemo memo;
  RuleProof proof{.name = rule.name};
  proof.verdict = Unknown{"its operators fit no number of axes"};
  for (const Rule& instance : instances(rule)) {
    Decision decision = decision_on(instance, decide);
    const Verdict& verdict = decision.verdict();
    auto* all = std::get_if<Proved>(&proof.verdict);
    const auto* proved = std::get_if<Proved>(&verdict);
    const bool refuted = std::holds_alternative<Refuted>(verdict);
    if (all != nullptr && proved != nullptr)
      add_new(*proved, *all);
    else if (proof.verdicts.empty() || refuted || all != nullptr)
      proof.verdict = verdict;
    std::ranges::move(decision.rules, std::back_inserter(proof.instances));
    std::ranges::move(decision.verdicts, std::back_inserter(proof.verdicts));
    if (refuted) break;
  }
  proof.seconds = watch.seconds();
  return proof;
}

}  // namespace

std::vector<BroadcastingCase> broadcasting_cases(const Rule& instance) {
  constexpr std::size_t kMostMeetings = 2;
  const auto own = relate_sizes(instance.source);
  if (!own || !instance.guard.empty() || own->broadcasts.empty() ||
      own->broadcasts.size() > kMostMeetings)
    return {};
  std::vector<BroadcastingCase> cases{{instance, {}}};
  for (const Condition& meeting : own->broadcasts) {
    const auto left = meeting.left.as_symbol(), right = meeting.right.as_symbol();
    if (!left || !right) return {};
    std::vector<BroadcastingCase> next;
    for (const BroadcastingCase& one : cases)
      for (const auto& [symbol, size] :
           {std::pair{*left, meeting.right}, std::pair{*left, Dim(1)}, std::pair{*right, Dim(1)}}) {
        const Sizes sizes{{std::string(symbol), size}};
        auto source = with_sizes(one.rule.source, sizes),
             target = with_sizes(one.rule.target, sizes);
        if (!source || !target) return {};
        next.push_back(one);
        next.back().rule.source = *std::move(source);
        next.back().rule.target = *std::move(target);
        next.back().sizes.push_back({.kind = Condition::Kind::Equal,
                                     .left = Dim::symbol(std::string(symbol)),
                                     .right = size});
      }
    cases = std::move(next);
  }
  return cases;
}

Expected<std::vector<prove::GraphClaim>> claims_of(const Rule& instance) {
  std::vector<prove::GraphClaim> claims;
  const auto add = [&](const prove::Setting& setting) -> Expected<Done> {
    TESSERA_TRY(prove::GraphClaim claim,
                prove::bound_claim_of(setting.source, setting.target, setting.facts));
    claims.push_back(std::move(claim));
    return Done{};
  };
  if (instance.both_ways) {
    TESSERA_TRY(const Guard back, missing_backwards(instance));
    if (!back.empty()) return claims;
  }
  if (const auto stated = as_stated(instance)) {
    TESSERA_TRY(const auto settings, prove::settings_of(stated->source, stated->target));
    for (const prove::Setting& setting : settings)
      if (missing(stated->given, relate_sizes(setting.guard, stated->given), setting.guard).empty())
        TESSERA_TRY_DONE(add(setting));
  }
  // The guard that was found for a rule which states none.
  if (!instance.guard.empty()) {
    TESSERA_TRY(const auto settings, prove::settings_of(instance.source, instance.target));
    for (const prove::Setting& setting : settings)
      if (setting.guard == instance.guard) TESSERA_TRY_DONE(add(setting));
  }
  return claims;
}

Verdict verdict_of(const Rule& instance, Guards guards, const prove::Options& options) {
  if (guards == Guards::Found) return prove::prove(instance.source, instance.target, options);
  auto verdict = verdict_as_stated(instance, options);
  return verdict ? *std::move(verdict) : Verdict(Unknown{verdict.error().message});
}

RuleProof prove_rule(const Rule& rule, Guards guards, const prove::Options& options) {
  return collected(rule,
                   [&](const Rule& instance) { return verdict_of(instance, guards, options); });
}

RuleProof fuzz_rule(const Rule& rule, Guards guards, const prove::Options& options) {
  const int count = std::max(1, static_cast<int>(instances(rule).size()));
  prove::Options each = options;
  each.tries = (options.tries + count - 1) / count;
  return collected(rule, [&](const Rule& instance) {
    Guard guard = instance.guard;
    if (guards == Guards::Found)
      if (const Verdict found = verdict_of(instance, guards, options);
          const auto* proved = std::get_if<Proved>(&found))
        guard = proved->guard;
    Verdict verdict = refute(instance.source, instance.target, guard, each);
    if (std::holds_alternative<Refuted>(verdict) || rule.numerics.kind != Numerics::Kind::Exact)
      return verdict;
    return prove::inexactness(instance.source, instance.target, guard, each).value_or(verdict);
  });
}

}  // namespace tessera::rules
