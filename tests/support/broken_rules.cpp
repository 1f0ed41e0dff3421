#include "tests/support/broken_rules.h"

#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"
#include "tests/support/graph_edit.h"

namespace tessera::testing {
namespace {

/// Where source and target take the sizes; with `ungrouped`, where all attributes are 1.
std::optional<prove::Refuted> shown(const rules::Rule& rule, bool ungrouped, std::uint64_t seed) {
  const auto relations = [&]() -> Expected<std::pair<prove::SizeRelations, prove::SizeRelations>> {
    TESSERA_TRY(const prove::SizeRelations own, prove::relate_sizes(rule.source));
    Guard assumed = rule.guard;
    for (const std::string& name : own.symbols.attributes)
      if (ungrouped) assumed.push_back(equal(Dim::symbol(name), 1));
    TESSERA_TRY(const prove::SizeRelations narrow, prove::relate_sizes(assumed, own));
    TESSERA_TRY(const prove::SizeRelations both, prove::relate_sizes(rule.target, narrow));
    TESSERA_TRY(prove::SizeRelations all, prove::relate_outputs(rule.source, rule.target, both));
    return std::pair(own, std::move(all));
  }();
  if (!relations) return std::nullopt;
  const prove::Verdict verdict =
      prove::refute(rule.source, rule.target, prove::beyond(relations->first, relations->second),
                    {.seed = seed, .tries = 12});
  const auto* refuted = std::get_if<prove::Refuted>(&verdict);
  if (refuted == nullptr || refuted->position.empty()) return std::nullopt;
  return *refuted;
}

}  // namespace

std::optional<BrokenRule> broken(const rules::Rule& rule, Rng& rng) {
  constexpr int kTries = 12;
  for (int i = 0; i < kTries; ++i) {
    std::optional<EditedGraph> edited = edited_graph(rule.target, rng);
    if (!edited) continue;
    BrokenRule result{.rule = rule, .edit = std::move(edited->edit), .refuted = {}};
    result.rule.target = std::move(edited->graph);
    auto refuted = shown(result.rule, false, rng.next());
    if (!refuted || !shown(result.rule, true, rng.next())) continue;
    result.refuted = *std::move(refuted);
    return result;
  }
  return std::nullopt;
}

}  // namespace tessera::testing
