#include "tests/support/broken_rules.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/ir/text.h"
#include "tessera/prove/refute.h"
#include "tessera/rules/taso.h"
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

}  // namespace
}  // namespace tessera::testing
