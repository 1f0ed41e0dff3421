#include "tessera/superopt/generate/generate.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/rules/text.h"
#include "tessera/superopt/generate/checkpoint.h"
#include "tessera/superopt/generate/derive.h"
#include "tessera/support/hash.h"
#include "tessera/support/stopwatch.h"

namespace tessera::superopt {
namespace {

/// Hash of the inputs of a run.
std::uint64_t run_key(const OperatorSet& set, int max_ops) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(max_ops));
  hasher.add_text(set.name);
  for (const SizeValues& sizes : set.sizes)
    for (const auto& [name, size] : sizes) hasher.add_text(fmt::format("{}={}", name, size));
  for (const OperatorSet::Input& input : set.inputs) {
    for (const std::string& name : input.names) hasher.add_text(name);
    hasher.add_text(to_string(input.type));
    for (const Dim& dim : input.general) hasher.add_text(dim.to_string());
  }
  for (const OperatorSet::Operator& op : set.operators) {
    hasher.add_text(op.name);
    hasher.add(op.body.hash());
  }
  return hasher.value();
}

std::uint64_t key_of(const Terms& terms, const Candidate& candidate) {
  Hasher hasher;
  for (const auto* side : {&candidate.source, &candidate.target})
    for (const NamedTerm& output : *side) hasher.add(terms.structure(output));
  return hasher.value();
}

/// `matmul_add`: the operators of the source, outermost first.
std::string name_of(const Terms& terms, const Candidate& candidate) {
  std::string name;
  std::vector<NamedTerm> open(candidate.source.rbegin(), candidate.source.rend());
  std::set<std::string> seen;
  while (!open.empty() && seen.size() < 3) {
    const NamedTerm named = open.back();
    open.pop_back();
    const Term& term = terms[named.term];
    if (term.op == Term::kVariable) continue;
    const std::string& op = terms.set().operators[term.op].name;
    if (seen.insert(op).second) name += (name.empty() ? "" : "_of_") + op;
    for (std::size_t i = term.args; i-- > 0;) open.push_back(terms.arg(named, i));
  }
  return name;
}

/// Counts the verdicts and adds the rules that were proved, each text once, with names of their
/// own.
void add_rules(const Terms& terms, const std::vector<Candidate>& candidates,
               const std::vector<std::optional<Decision>>& decisions, GenerateResult& result) {
  std::map<std::string, int> names;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!decisions[i]) continue;
    switch (decisions[i]->verdict) {
      case Decision::Verdict::Refuted: ++result.refuted; continue;
      case Decision::Verdict::Unknown: ++result.unknown; continue;
      case Decision::Verdict::Trivial: ++result.trivial; continue;
      case Decision::Verdict::Derivable: continue;
      case Decision::Verdict::Proved: ++result.proved; break;
    }
    const std::string name = name_of(terms, candidates[i]);
    for (rules::Rule& rule : rules_of(terms, candidates[i], *decisions[i])) {
      if (!texts.insert(to_text(rule)).second) continue;
      rule.name = fmt::format("{}_{}", name, ++names[name]);
      result.rules.push_back(std::move(rule));
    }
  }
}

}  // namespace

Expected<GenerateResult> generate(const OperatorSet& set, const GenerateOptions& options) {
  const Stopwatch watch;
  std::unique_ptr<Checkpoint> checkpoint;
  if (!options.checkpoint.empty()) {
    TESSERA_TRY(checkpoint, Checkpoint::open(options.checkpoint, run_key(set, options.max_ops),
                                             options.resume));
  }
  EnumerateOptions how = enumerate_options(options, "terms");
  TESSERA_TRY(Enumeration made, enumerate(set, how));
  GenerateResult result;
  result.graphs = made.terms->size() - set.inputs.size();
  if (options.progress)
    how.progress = [&](int, std::size_t done, std::size_t of) {
      options.progress("classes", done, of);
    };
  const std::vector<Candidate> all = candidates(made, how, result.counts);

  const Terms& terms = *made.terms;
  std::vector<std::optional<Decision>> decisions(all.size());
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  const auto settle = [&](std::size_t i, Decision decision) {
    if (checkpoint) checkpoint->add(key_of(terms, all[i]), decision);
    decisions[i] = std::move(decision);
  };
  const auto is = [&](std::size_t i, std::initializer_list<Decision::Verdict> verdicts) {
    return decisions[i] && std::ranges::find(verdicts, decisions[i]->verdict) != verdicts.end();
  };
  using enum Decision::Verdict;

  // Processes candidates in order of size. Those of a batch that are not derivable are assumed to
  // hold while the others are filtered, then proved; candidates that were filtered by one that
  // could not be proved are tried again.
  Derivations known(made);
  constexpr std::size_t kBatch = 64;
  for (std::size_t start = 0; start < all.size() && !stopped(); start += kBatch) {
    const std::size_t count = std::min(kBatch, all.size() - start);
    std::vector<Derivations::Attempt> attempts(count);
    parallel_for(count, options.threads, [&](std::size_t n) {
      const std::size_t i = start + n;
      if (checkpoint) decisions[i] = checkpoint->find(key_of(terms, all[i]));
      if (decisions[i] || stopped()) return;
      if (known.derivable(all[i], attempts[n])) settle(i, {.verdict = Derivable});
    });
    std::vector<std::size_t> open;
    for (std::size_t i = start; i < start + count; ++i)
      if (!is(i, {Derivable})) open.push_back(i);
    while (!open.empty() && !stopped()) {
      std::vector<std::size_t> kept, rest;
      for (const std::size_t i : open) {
        const bool decided = is(i, {Proved, Refuted, Unknown, Trivial});
        const bool follows = !decided && known.derivable(all[i], attempts[i - start]);
        (follows ? rest : kept).push_back(i);
        if (!follows && !is(i, {Refuted, Unknown})) known.add(all[i], i);
      }
      const Stopwatch proofs;
      parallel_for(kept.size(), options.threads, [&](std::size_t n) {
        if (decisions[kept[n]] || stopped()) return;
        Decision decision = decide(terms, all[kept[n]], options.stop);
        if (!stopped()) settle(kept[n], std::move(decision));
      });
      result.proof_seconds += proofs.seconds();
      open.clear();
      for (const std::size_t i : kept)
        if (is(i, {Refuted, Unknown})) {
          known.remove(i);
          open = rest;
        }
      for (const std::size_t i : open) attempts[i - start] = {};
      if (open.empty() && !stopped())
        for (const std::size_t i : rest) settle(i, {.verdict = Derivable});
    }
    if (options.progress) options.progress("candidates", start + count, all.size());
  }
  result.stopped = stopped();
  for (std::size_t i = 0; i < all.size(); ++i) {
    result.candidates += is(i, {Proved, Refuted, Unknown, Trivial}) ? 1 : 0;
    result.derivable += is(i, {Derivable}) ? 1 : 0;
  }
  add_rules(terms, all, decisions, result);
  result.enumeration_seconds = watch.seconds() - result.proof_seconds;
  return result;
}

}  // namespace tessera::superopt
