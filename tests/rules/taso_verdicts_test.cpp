#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tessera/certify/check.h"
#include "tessera/prove/prove.h"
#include "tessera/rules/taso.h"
#include "tessera/support/file.h"

namespace tessera::rules {
namespace {

namespace fs = std::filesystem;

/// Whether a guard asks that a convolution has one group.
bool asks_for_one_group(const Guard& guard, const Rule& rule) {
  std::set<Dim> groups;
  for (const GraphNode& node : rule.source.nodes())
    for (const auto& [name, attr] : node.attrs->entries())
      if (const auto* symbol = std::get_if<Symbol>(&attr); symbol != nullptr && name == "group")
        groups.insert(Dim::symbol(symbol->name));
  return std::ranges::any_of(guard, [&](const Condition& condition) {
    return condition.kind == Condition::Kind::Equal && condition.right.is(1) &&
           groups.contains(condition.left);
  });
}

struct Proofs {
  std::size_t total = 0, proved = 0;
  std::set<std::string> only_without_groups;
};

Proofs proofs_of(const fs::path& path) {
  const auto text = read_text(path);
  EXPECT_TRUE(text) << to_string(text.error());
  const auto rules = parse_taso(*text, path.filename().string());
  EXPECT_TRUE(rules) << to_string(rules.error());
  Proofs result{.total = rules->size(), .only_without_groups = {}};
  for (const Rule& rule : *rules) {
    const prove::Verdict verdict = prove::prove(rule.source, rule.target, {});
    const auto* proved = std::get_if<prove::Proved>(&verdict);
    EXPECT_NE(proved, nullptr) << rule.name << " is " << to_string(verdict);
    if (proved == nullptr) continue;
    ++result.proved;
    const auto accepted = certify::check(proved->certificate);
    EXPECT_TRUE(accepted) << rule.name << ": " << to_string(accepted.error());
    if (asks_for_one_group(proved->guard, rule)) result.only_without_groups.insert(rule.name);
  }
  return result;
}

TEST(TasoVerdicts, AllOfASmallFileAreProved) {
  const Proofs proofs = proofs_of(fs::path(TESSERA_SOURCE_DIR) / "tests/fixtures/taso_small.txt");
  EXPECT_EQ(proofs.proved, proofs.total);
  EXPECT_GT(proofs.total, 10u);
}

TEST(SlowTasoVerdicts, AllPublishedRulesAreProvedAndElevenOnlyWithoutGroups) {
  const fs::path path = fs::path(TESSERA_SOURCE_DIR) / "../shared/data/taso_rules.txt";
  if (!fs::exists(path)) GTEST_SKIP() << "the published rules are not here";
  const Proofs proofs = proofs_of(path);
  EXPECT_EQ(proofs.total, 133u);
  EXPECT_EQ(proofs.proved, 133u);
  std::set<std::string> unsound;
  for (const int rule : {98, 99, 100, 105, 125, 126, 127, 128, 129, 130, 131})
    unsound.insert("taso_" + std::to_string(rule));
  EXPECT_EQ(proofs.only_without_groups, unsound);
}

}  // namespace
}  // namespace tessera::rules
