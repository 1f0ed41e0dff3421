#include "tessera/superopt/prune/prune.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "tessera/superopt/prune/canonical.h"
#include "tessera/superopt/prune/common.h"

namespace tessera::superopt {
namespace {

using rules::Rule;

/// Size of a rule for sorting: number of operators, then of inputs.
auto size_of(const Rule& rule) {
  const std::size_t source = rule.source.nodes().size(), target = rule.target.nodes().size();
  return std::tuple(source + target, std::max(source, target), rule.source.outputs().size(),
                    rule.source.inputs().size(), rule.guard.size());
}

bool is_stopped(const PruneOptions& options) {
  return options.theory.limits.stop != nullptr &&
         options.theory.limits.stop->load(std::memory_order_relaxed);
}

/// Rules seen so far by canonical text: the numerics class of the most exact one.
using Keys = std::map<std::string, rules::Numerics::Kind>;

bool is_known(const Keys& keys, const std::string& key, const Rule& rule) {
  const auto it = keys.find(key);
  return it != keys.end() && it->second <= rule.numerics.kind;
}
void note(Keys& keys, const std::string& key, const Rule& rule) {
  const auto [it, added] = keys.try_emplace(key, rule.numerics.kind);
  it->second = std::min(it->second, rule.numerics.kind);
}

/// Whether a smaller rule exists that differs by a common context.
bool is_common(const Rule& plain, const Keys& keys) {
  const auto less = without_common(plain);
  return less && is_known(keys, canonical(*less), plain);
}

}  // namespace

Expected<Basis> prune(std::vector<Rule> rules, const PruneOptions& options) {
  std::ranges::stable_sort(rules, {}, size_of);
  Theory theory(options.theory);
  Keys keys;
  Basis basis;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (options.progress) options.progress(i, rules.size());
    if (is_stopped(options)) {
      basis.stopped = true;
      std::move(rules.begin() + static_cast<std::ptrdiff_t>(i), rules.end(),
                std::back_inserter(basis.rules));
      break;
    }
    Rule& rule = rules[i];
    TESSERA_TRY(Rule plain, resolved(rule));
    if (!check(plain)) {
      rule = plain = reversed(plain);
      if (!check(plain)) {
        ++basis.unusable;
        continue;
      }
    }
    const std::string key = canonical(plain);
    if (is_known(keys, key, rule) || is_trivial(plain)) {
      ++basis.renamed;
      continue;
    }
    const bool common = is_common(plain, keys);
    note(keys, key, rule);
    if (common) {
      ++basis.common;
    } else if (theory.derivation(rule)) {
      ++basis.derived;
    } else {
      TESSERA_TRY_DONE(theory.add(rule));
      basis.rules.push_back(check(rule) ? std::move(rule) : plain);
    }
  }
  return basis;
}

std::string_view to_string(Coverage::Kind kind) {
  switch (kind) {
    case Coverage::Kind::Direct: return "direct";
    case Coverage::Kind::Derivable: return "derivable";
    case Coverage::Kind::Missing: return "missing";
  }
  return "";
}

Expected<std::vector<Coverage>> covers(const std::vector<Rule>& rules,
                                       const std::vector<Rule>& basis,
                                       const PruneOptions& options) {
  Theory theory(options.theory);
  std::map<std::string, const Rule*> named;
  for (const Rule& rule : basis) {
    TESSERA_TRY_DONE(theory.add(rule));
    TESSERA_TRY(const Rule plain, resolved(rule));
    const auto [it, added] = named.try_emplace(canonical(plain), &rule);
    if (!added && rule.numerics.kind < it->second->numerics.kind) it->second = &rule;
  }
  std::vector<Coverage> all;
  for (const Rule& rule : rules) {
    if (options.progress) options.progress(all.size(), rules.size());
    if (is_stopped(options))
      return Diagnostic{
          .id = "stopped", .where = {.item = rule.name}, .message = "the work was stopped"};
    Coverage cover{.name = rule.name};
    const auto plain = resolved(rule);
    const auto same = plain ? named.find(canonical(*plain)) : named.end();
    if (same != named.end() && same->second->numerics.kind <= rule.numerics.kind) {
      cover.kind = Coverage::Kind::Direct;
      cover.by = {same->second->name};
    } else if (auto by = theory.derivation(rule)) {
      cover.kind = Coverage::Kind::Derivable;
      cover.by = *std::move(by);
    }
    all.push_back(std::move(cover));
  }
  return all;
}

}  // namespace tessera::superopt
