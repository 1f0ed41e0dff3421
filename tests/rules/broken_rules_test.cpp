#include "tests/support/broken_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tessera/ir/text.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/refute.h"
#include "tessera/rules/taso.h"
#include "tessera/rules/text.h"
#include "tessera/support/file.h"

namespace tessera::testing {
namespace {

TEST(BrokenRules, EachIsShownByAnInputThatReplays) {
  const auto text = read_text(std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/taso_small.txt");
  ASSERT_TRUE(text) << to_string(text.error());
  const auto rules = rules::parse_taso(*text);
  ASSERT_TRUE(rules) << to_string(rules.error());
  Rng rng(1);
  std::set<std::string> edits;
  int made = 0;
  for (int round = 0; round < 3; ++round) {
    for (const rules::Rule& rule : *rules) {
      const std::optional<BrokenRule> found = broken(rule, rng);
      if (!found) continue;
      ++made;
      edits.insert(found->edit);
      const auto again = prove::replay(found->rule.source, found->rule.target, found->refuted);
      ASSERT_TRUE(again) << to_string(again.error());
      EXPECT_TRUE(*again) << rule.name << ": " << found->edit << "\n"
                          << to_text(found->rule.target);
    }
  }
  EXPECT_GE(made, 40);
  EXPECT_GE(edits.size(), 8u);
}

TEST(SlowBrokenRules, NoneIsProvedAndMostAreRefuted) {
  namespace fs = std::filesystem;
  const fs::path root = TESSERA_SOURCE_DIR;
  const fs::path published = root / "../shared/data/taso_rules.txt";
  const auto text =
      read_text(fs::exists(published) ? published : root / "tests/fixtures/taso_small.txt");
  ASSERT_TRUE(text) << to_string(text.error());
  auto rules = rules::parse_taso(*text);
  ASSERT_TRUE(rules) << to_string(rules.error());
  const auto shipped = rules::load_rules(root / "rules");
  ASSERT_TRUE(shipped) << to_string(shipped.error());
  for (const rules::Rule& rule : *shipped)
    for (const rules::Rule& instance : rules::instances(rule)) rules->push_back(instance);
  Rng rng(5);
  int made = 0, refuted = 0, unknown = 0, guarded = 0;
  while (made < 1000) {
    const rules::Rule& rule = (*rules)[rng.below(rules->size())];
    const std::optional<BrokenRule> found = broken(rule, rng);
    if (!found) continue;
    ++made;
    const Graph &source = found->rule.source, &target = found->rule.target;
    const prove::Verdict verdict = prove::prove(source, target, {});
    if (const auto* proved = std::get_if<prove::Proved>(&verdict)) {
      // Only under a guard that excludes the sizes that show the damage.
      const auto within = holds(proved->guard, found->refuted.sizes);
      EXPECT_TRUE(within && !*within) << rule.name << ": " << found->edit << "\n"
                                      << to_text(source) << to_text(target);
      ++guarded;
    } else if (const auto* shown = std::get_if<prove::Refuted>(&verdict)) {
      const auto again = prove::replay(source, target, *shown);
      ASSERT_TRUE(again) << to_string(again.error());
      EXPECT_TRUE(*again) << rule.name << ": " << found->edit;
      ++refuted;
    } else {
      ++unknown;
    }
  }
  EXPECT_GE(refuted, 950) << unknown << " are unknown, " << guarded << " need a guard";
  EXPECT_LE(guarded, 5);
}

}  // namespace
}  // namespace tessera::testing
