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

/// What the decisions of a run are about.
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
    for (const Named& output : *side) hasher.add(terms.structure(output));
  return hasher.value();
}

/// `matmul_add`: the operators of the source, outermost first.
std::string name_of(const Terms& terms, const Candidate& candidate) {
  std::string name;
  std::vector<Named> open(candidate.source.rbegin(), candidate.source.rend());
  std::set<std::string> seen;
  while (!open.empty() && seen.size() < 3) {
    const Named named = open.back();
    open.pop_back();
    const Term& term = terms[named.term];
    if (term.op == Term::kVariable) continue;
    const std::string& op = terms.set().operators[term.op].name;
    if (seen.insert(op).second) name += (name.empty() ? "" : "_of_") + op;
    for (std::size_t i = term.args; i-- > 0;) open.push_back(terms.arg(named, i));
  }
  return name;
}

}  // namespace

Expected<Generated> generate(const OperatorSet& set, const GenerateOptions& options) {
  const Stopwatch watch;
  std::unique_ptr<Checkpoint> checkpoint;
  if (!options.checkpoint.empty()) {
    TESSERA_TRY(checkpoint, Checkpoint::open(options.checkpoint, run_key(set, options.max_ops),
                                             options.resume));
  }
  EnumerateOptions how{.max_ops = options.max_ops,
                       .threads = options.threads,
                       .memory_limit = options.memory_limit,
                       .stop = options.stop,
                       .progress = {}};
  if (options.progress)
    how.progress = [&](int level, std::size_t done, std::size_t all) {
      options.progress(fmt::format("terms of {} operators", level), done, all);
    };
  TESSERA_TRY(Enumeration made, enumerate(set, how));
  Generated result;
  result.graphs = made.terms->size() - set.inputs.size();
  const std::vector<Candidate> all = candidates(made, how, result.counts);
  if (options.progress)
    how.progress = [&](int, std::size_t done, std::size_t of) {
      options.progress("candidates", done, of);
    };

  const Terms& terms = *made.terms;
  std::vector<std::optional<Decision>> decisions(all.size());
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  const auto decide_all = [&](const std::vector<std::size_t>& numbers) {
    const Stopwatch proofs;
    std::atomic<std::size_t> done = 0;
    std::mutex mutex;
    parallel_for(numbers.size(), options.threads, [&](std::size_t n) {
      const std::size_t i = numbers[n];
      if (stopped()) return;
      const std::uint64_t key = key_of(terms, all[i]);
      if (checkpoint) decisions[i] = checkpoint->find(key);
      if (!decisions[i]) {
        Decision decision = decide(terms, all[i], options.stop);
        if (stopped()) return;
        if (checkpoint) checkpoint->add(key, decision);
        decisions[i] = std::move(decision);
      }
      ++done;
      if (!options.progress) return;
      const std::lock_guard lock(mutex);
      options.progress("proofs", done, numbers.size());
    });
    result.proof_seconds += proofs.seconds();
  };

  // What could not be proved is no reason to leave out others.
  std::set<std::size_t> excluded;
  std::vector<std::size_t> kept;
  for (bool more = true; more && !stopped();) {
    kept = underivable(made, all, excluded, how);
    std::vector<std::size_t> open;
    for (const std::size_t i : kept)
      if (!decisions[i]) open.push_back(i);
    decide_all(open);
    more = false;
    for (const std::size_t i : kept)
      if (decisions[i] && (decisions[i]->verdict == Decision::Verdict::Refuted ||
                           decisions[i]->verdict == Decision::Verdict::Unknown))
        more = excluded.insert(i).second || more;
  }
  result.stopped = stopped();
  result.derivable = all.size() - kept.size() - excluded.size();
  result.candidates = kept.size() + excluded.size();
  const Stopwatch writing;

  std::map<std::string, int> names;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!decisions[i]) continue;
    switch (decisions[i]->verdict) {
      case Decision::Verdict::Refuted: ++result.refuted; continue;
      case Decision::Verdict::Unknown: ++result.unknown; continue;
      case Decision::Verdict::Trivial: ++result.trivial; continue;
      case Decision::Verdict::Proved: ++result.proved; break;
    }
    const std::string name = name_of(terms, all[i]);
    for (rules::Rule& rule : rules_of(terms, all[i], *decisions[i])) {
      if (!texts.insert(to_text(rule)).second) continue;
      rule.name = fmt::format("{}_{}", name, ++names[name]);
      result.rules.push_back(std::move(rule));
    }
  }
  result.proof_seconds += writing.seconds();
  result.enumeration_seconds = watch.seconds() - result.proof_seconds;
  return result;
}

}  // namespace tessera::superopt
