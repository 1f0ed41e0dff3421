#include "tessera/rules/region.h"

#include <gtest/gtest.h>

#include "tessera/rules/proof.h"
#include "tessera/rules/region_picture.h"
#include "tests/rules/rule_check.h"

namespace tessera::rules {
namespace {

using testing::rules_of;

/// Two convolutions of one filter as one over the concatenation along the width, with columns on
/// both sides of the seam corrected.
std::string seam(std::string_view wrong) {
  return fmt::format(R"(rule seam {{
  numerics reals
  where    r <= w
  wrong    {}
  source (x: f32[n, c, h, w], y: f32[n, c, h, w], k: f32[f, c, 2*s + 1, 2*r + 1]) {{
    return concat(conv(x, k) {{auto_pad="SAME_UPPER"}}, conv(y, k) {{auto_pad="SAME_UPPER"}}) {{axis=3}}
  }}
  target {{ return conv(concat(x, y) {{axis=3}}, k) {{auto_pad="SAME_UPPER"}} }}
}}
)",
                     wrong);
}

std::string_view verdict_on(const Rule& rule) {
  return prove::to_string(prove_rule(rule, Guards::Stated, {}).verdict);
}

TEST(Region, OfAMutantRuleIsCorrectedAndProvedForAllSizesAndWindows) {
  const std::vector<Rule> rules = rules_of(seam("[_, _, _, w - r : w + r]"));
  ASSERT_EQ(rules.size(), 1u);
  ASSERT_TRUE(rules[0].mutant);
  EXPECT_EQ(rules[0].mutant->target.nodes().size(), 2u);
  EXPECT_EQ(verdict_on(rules[0]), "proved");
}

TEST(Region, ThatIsTooSmallIsRefutedWithSizesPositionAndInput) {
  for (const char* wrong : {"[_, _, _, w - r : w]", "[_, _, _, w : w + r]", "[_, _, 0 : 1, _]",
                            "[_, _, _, w - 1 : w + 1]"}) {
    SCOPED_TRACE(wrong);
    const std::vector<Rule> rules = rules_of(seam(wrong));
    ASSERT_EQ(rules.size(), 1u);
    const prove::Verdict verdict = prove_rule(rules[0], Guards::Stated, {}).verdict;
    const auto* refuted = std::get_if<prove::Refuted>(&verdict);
    ASSERT_NE(refuted, nullptr);
    EXPECT_FALSE(refuted->sizes.empty());
    EXPECT_EQ(refuted->position.size(), 4u);
    EXPECT_EQ(refuted->inputs.size(), 3u);
  }
}

TEST(Region, ThatIsLargerThanNeededIsStillRight) {
  EXPECT_EQ(verdict_on(rules_of(seam("[_, _, _, _]")).at(0)), "proved");
}

TEST(Region, PrintsAsItIsRead) {
  const Rule rule = rules_of(seam("[_, _, _, w - r : w + r]")).at(0);
  const std::string text = to_text(rule);
  EXPECT_NE(text.find("wrong    [_, _, _, -r + w : r + w]"), std::string::npos) << text;
  EXPECT_EQ(to_text(rules_of(text).at(0)), text);
  EXPECT_EQ(in_words(rule.mutant->wrong[0]), "output 0 where -r + w <= axis 3 < r + w");
}

TEST(Region, NamesTheOutputThatItIsOf) {
  const std::vector<Rule> rules = rules_of(R"(rule second_output {
  numerics reals
  wrong    1[0 : 1, _]
  source (x: f32[4, n], y: f32[1, n]) { return relu(x), add(x, pad(y, [0, 0, 3, 0])) }
  target { return relu(x), x }
}
)");
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(verdict_on(rules[0]), "proved");
}

TEST(Region, IsDrawn) {
  const Rule rule = rules_of(seam("[_, _, _, w - r : w + r]")).at(0);
  const auto grids = region_grids(rule);
  ASSERT_TRUE(grids) << to_string(grids.error());
  ASSERT_EQ(grids->size(), 1u);
  const RegionGrid& grid = grids->front();
  // Six rows, twelve columns, and a window of three columns.
  EXPECT_EQ(grid.row_axis, 2u);
  EXPECT_EQ(grid.column_axis, 3u);
  EXPECT_EQ(grid.rows, 6);
  EXPECT_EQ(grid.columns, 12);
  using Box = std::array<std::int64_t, 4>;
  EXPECT_EQ(grid.boxes, std::vector<Box>{(Box{0, 6, 5, 7})});
  const auto picture = region_picture(rule);
  ASSERT_TRUE(picture) << to_string(picture.error());
  EXPECT_NE(picture->find("width='28' height='84' fill='#e4572e'"), std::string::npos) << *picture;
}

}  // namespace
}  // namespace tessera::rules
