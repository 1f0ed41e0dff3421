#include "tessera/superopt/prune/prune.h"

#include <gmock/gmock.h>

#include "tessera/rules/proof.h"
#include "tessera/rules/taso.h"
#include "tessera/superopt/generate/generate.h"
#include "tessera/superopt/prune/canonical.h"
#include "tessera/superopt/prune/common.h"
#include "tessera/support/file.h"
#include "tests/rules/rule_check.h"

namespace tessera::superopt {
namespace {

using rules::Rule;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::rules_of;

Rule rule_of(std::string_view text) {
  return rules_of(text).at(0);
}

/// A rule from its inputs and sides.
struct Equation {
  std::string_view inputs, source, target;
  std::string_view lines = "";
};
Rule rule_of(const Equation& e) {
  return rule_of(fmt::format("rule r {{ {} source ({}) {{ return {} }} target {{ return {} }} }}",
                             e.lines, e.inputs, e.source, e.target));
}

std::vector<std::string> names(const std::vector<Rule>& rules) {
  std::vector<std::string> all;
  for (const Rule& rule : rules) all.push_back(rule.name);
  return all;
}

Basis pruned(std::string_view text) {
  auto basis = prune(rules_of(text), {});
  EXPECT_TRUE(basis) << to_string(basis.error());
  return basis ? *std::move(basis) : Basis{};
}

Coverage::Kind cover_of(const Rule& rule, std::string_view basis) {
  const auto all = covers({rule}, rules_of(basis), {});
  EXPECT_TRUE(all) << to_string(all.error());
  return all ? all->at(0).kind : Coverage::Kind::Missing;
}

void expect_same(const Equation& a, const Equation& b) {
  EXPECT_EQ(canonical(rule_of(a)), canonical(rule_of(b)));
}
void expect_different(const Equation& a, const Equation& b) {
  EXPECT_NE(canonical(rule_of(a)), canonical(rule_of(b)));
}

constexpr Equation kDistribute = {"x: f32[m, k], y: f32[k, n], z: f32[k, n]",
                                  "matmul(x, add(y, z))", "add(matmul(x, y), matmul(x, z))"};

TEST(Canonical, NamesDoNotCount) {
  expect_same(kDistribute, {"c: f32[r, t], a: f32[q, r], b: f32[r, t]", "matmul(a, add(b, c))",
                            "add(matmul(a, b), matmul(a, c))"});
}

TEST(Canonical, TheOrderOfOperandsThatCommuteDoesNotCount) {
  expect_same(kDistribute,
              {kDistribute.inputs, "matmul(x, add(z, y))", "add(matmul(x, y), matmul(x, z))"});
  expect_different({"x: f32[n], y: f32[n]", "sub(x, y)", "neg(sub(y, x))"},
                   {"x: f32[n], y: f32[n]", "sub(x, y)", "neg(sub(x, y))"});
}

TEST(Canonical, TheDirectionDoesNotCount) {
  expect_same(kDistribute, {kDistribute.inputs, kDistribute.target, kDistribute.source});
}

TEST(Canonical, TheOrderOfOutputsDoesNotCount) {
  expect_same({"x: f32[n], y: f32[n]", "relu(x), neg(y)", "relu(x), neg(y)"},
              {"x: f32[n], y: f32[n]", "neg(x), relu(y)", "neg(x), relu(y)"});
}

TEST(Canonical, SharedInputsAttributesTypesAndGuardsCount) {
  expect_different({"x: f32[n], y: f32[n]", "add(relu(x), y)", "add(y, relu(x))"},
                   {"x: f32[n]", "add(relu(x), x)", "add(x, relu(x))"});
  expect_different({"x: f32[n, n]", "relu(x)", "neg(x)"}, {"x: f32[n, m]", "relu(x)", "neg(x)"});
  expect_different({"x: f32[n, m]", "concat(x, x) {axis=0}", "x"},
                   {"x: f32[n, m]", "concat(x, x) {axis=1}", "x"});
  expect_different({"x: f32[n, m]", "relu(x)", "neg(x)"},
                   {"x: f32[n, m]", "relu(x)", "neg(x)", "where n <= m"});
  expect_same({"x: f32[n, m]", "relu(x)", "neg(x)", "where n <= m"},
              {"x: f32[b, a]", "relu(x)", "neg(x)", "where b <= a"});
}

TEST(Canonical, SizesThatHaveToAgreeGoByOneName) {
  const auto plain = resolved(
      rule_of({"x: f32[m, k], y: f32[l, n]", "relu(matmul(x, y))", "relu(relu(matmul(x, y)))"}));
  const auto stated = resolved(
      rule_of({"x: f32[m, k], y: f32[k, n]", "relu(matmul(x, y))", "relu(relu(matmul(x, y)))"}));
  ASSERT_TRUE(plain && stated);
  EXPECT_EQ(canonical(*plain), canonical(*stated));
}

TEST(Common, TakesOffWhatIsTheSameAroundAndInsideBothSides) {
  const auto around =
      without_common(rule_of({"x: f32[n], y: f32[n], z: f32[n]", "relu(mul(add(x, y), z))",
                              "relu(mul(z, sub(x, neg(y))))"}));
  ASSERT_TRUE(around);
  EXPECT_EQ(canonical(*around),
            canonical(rule_of({"x: f32[n], y: f32[n]", "add(x, y)", "sub(x, neg(y))"})));
  const auto inside =
      without_common(rule_of({"x: f32[n, m]", "neg(neg(relu(x)))", "mul(relu(x), 1.0)"}));
  ASSERT_TRUE(inside);
  EXPECT_EQ(canonical(*inside), canonical(rule_of({"x: f32[n, m]", "neg(neg(x))", "mul(x, 1.0)"})));
  EXPECT_FALSE(without_common(rule_of(kDistribute)));
}

constexpr std::string_view kRing = R"(
  rule add_again { source (x: f32[*s], y: f32[*s], z: f32[*s]) { return add(add(x, y), z) }
                   target { return add(x, add(y, z)) } }
  rule distribute { source (x: f32[*s], y: f32[*s], z: f32[*s]) { return mul(x, add(y, z)) }
                    target { return add(mul(x, y), mul(x, z)) } }
)";

TEST(Prune, DropsRenamedOnes) {
  const Basis basis = pruned(R"(
    rule a { source (x: f32[n], y: f32[n], z: f32[n]) { return add(add(x, y), z) }
             target { return add(x, add(y, z)) } }
    rule b { source (p: f32[k], q: f32[k], r: f32[k]) { return add(p, add(q, r)) }
             target { return add(r, add(p, q)) } }
    rule c { source (x: f32[n], y: f32[n]) { return add(x, y) } target { return add(y, x) } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("a"));
  EXPECT_EQ(basis.renamed, 2u);
}

TEST(Prune, DropsWhatHasTheSameAroundOrInside) {
  const Basis basis = pruned(R"(
    rule deep { source (x: f32[n], y: f32[n], z: f32[n]) { return exp(add(add(relu(x), y), z)) }
                target { return exp(add(relu(x), add(y, z))) } }
    rule small { source (x: f32[n], y: f32[n], z: f32[n]) { return add(add(x, y), z) }
                 target { return add(x, add(y, z)) } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("small"));
  EXPECT_EQ(basis.common, 1u);
}

TEST(Prune, DropsWhatFollowsFromSmallerOnes) {
  const Basis basis = pruned(std::string(kRing) + R"(
    rule twice { source (a: f32[n], b: f32[n], c: f32[n], d: f32[n]) { return mul(add(a, b), add(c, d)) }
                 target { return add(add(mul(a, d), mul(b, c)), add(mul(c, a), mul(d, b))) } }
    rule other { source (x: f32[n]) { return relu(relu(x)) } target { return relu(x) } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("other", "add_again", "distribute"));
  EXPECT_EQ(basis.derived, 1u);
}

TEST(Prune, KeepsWhatFollowsOnlyWhereMoreHolds) {
  // Each says what the one before it does, for more sizes.
  const Basis basis = pruned(R"(
    rule square { where m == n source (x: f32[m, n]) { return relu(relu(x)) } target { return relu(x) } }
    rule wide { where m <= n source (x: f32[m, n]) { return relu(neg(neg(relu(x)))) } target { return relu(x) } }
    rule any { source (x: f32[m, n]) { return neg(relu(neg(neg(relu(x))))) } target { return neg(relu(x)) } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("square", "wide", "any"));
}

TEST(Prune, KeepsAnExactRuleThatFollowsOverTheRealsAlone) {
  constexpr std::string_view text = R"(
    rule real { numerics reals source (x: f32[n]) { return neg(neg(x)) } target { return relu(x) } }
    rule exact { numerics exact source (x: f32[n]) { return exp(neg(neg(x))) } target { return exp(relu(x)) } })";
  EXPECT_THAT(names(pruned(text).rules), ElementsAre("real", "exact"));
}

TEST(Prune, WhatNeedsConstantsDoesNotMakeTheGeneralRuleSuperfluous) {
  const Basis basis = pruned(R"(
    rule of_constants { source (x: f32[n], c: const f32[n], d: const f32[n]) { return add(add(x, c), d) }
                        target { return add(x, add(c, d)) } }
    rule of_all { source (x: f32[n], y: f32[n], z: f32[n]) { return neg(add(add(x, y), z)) }
                  target { return neg(add(x, add(y, z))) } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("of_constants", "of_all"));
}

TEST(Prune, DropsRulesOfSeveralOutputsThatFollowOneByOne) {
  const Basis basis = pruned(R"(
    rule pieces {
      source (x: f32[a, n], y: f32[b, n]) {
        p, q = split(concat(x, y) {axis=0}, concat(shape(x) {start=0, end=1}, shape(y) {start=0, end=1}) {axis=0}) {axis=0}
        return p, q
      }
      target { return x, y } }
    rule columns { source (x: f32[a, k], y: f32[b, k], z: f32[k, n]) { return matmul(concat(x, y) {axis=0}, z) }
                   target { return concat(matmul(x, z), matmul(y, z)) {axis=0} } }
    rule joined {
      source (x: f32[a, k], y: f32[b, k], z: f32[k, n]) { return matmul(x, z), matmul(y, z) }
      target {
        p, q = split(matmul(concat(x, y) {axis=0}, z), concat(shape(x) {start=0, end=1}, shape(y) {start=0, end=1}) {axis=0}) {axis=0}
        return p, q
      } })");
  EXPECT_THAT(names(basis.rules), ElementsAre("columns", "pieces"));
  EXPECT_EQ(basis.derived, 1u);
}

TEST(Prune, SaysTheSameEachTime) {
  const Basis a = pruned(kRing), b = pruned(kRing);
  EXPECT_EQ(names(a.rules), names(b.rules));
}

TEST(Prune, KeepsWhatItDidNotLookAtWhenItIsStopped) {
  const std::atomic<bool> stop = true;
  PruneOptions options;
  options.theory.limits.stop = &stop;
  const auto basis = prune(rules_of(kRing), options);
  ASSERT_TRUE(basis);
  EXPECT_TRUE(basis->stopped);
  EXPECT_EQ(basis->rules.size(), 2u);
}

/// A rule whose sides have nothing to do with each other's inputs, or the other way round.
Rule from_sides(std::string_view inputs, std::string_view source, std::string_view target) {
  Rule rule = rule_of({inputs, source, source});
  rule.target = rule_of({inputs, target, target}).target;
  return rule;
}

TEST(Prune, TurnsARuleRoundThatTellsTooLittle) {
  const auto basis =
      prune({from_sides("x: f32[n], y: f32[n]", "relu(x)", "relu(sub(add(x, y), y))")}, {});
  ASSERT_TRUE(basis);
  ASSERT_EQ(basis->rules.size(), 1u);
  EXPECT_TRUE(check(basis->rules[0]));
  EXPECT_EQ(basis->rules[0].source.nodes().size(), 3u);
}

TEST(Prune, DropsARuleThatTellsTooLittleEitherWay) {
  const auto basis = prune({from_sides("x: f32[n], y: f32[n]", "sub(x, x)", "sub(y, y)")}, {});
  ASSERT_TRUE(basis);
  EXPECT_TRUE(basis->rules.empty());
  EXPECT_EQ(basis->unusable, 1u);
}

TEST(Covers, TellsWhatIsThereFromWhatFollows) {
  EXPECT_EQ(cover_of(rule_of({"x: f32[*t], y: f32[*t], z: f32[*t]", "add(y, add(x, z))",
                              "add(x, add(z, y))"}),
                     kRing),
            Coverage::Kind::Direct);
  EXPECT_EQ(cover_of(rule_of({"x: f32[m, n], y: f32[m, n], z: f32[m, n]", "add(y, add(x, z))",
                              "add(x, add(z, y))"}),
                     kRing),
            Coverage::Kind::Derivable);
  EXPECT_EQ(cover_of(rule_of({"x: f32[*t], y: f32[*t], z: f32[*t]", "mul(y, mul(x, z))",
                              "mul(x, mul(z, y))"}),
                     kRing),
            Coverage::Kind::Missing);
}

TEST(Covers, DoesNotTakeARuleForMoreThanItSays) {
  constexpr std::string_view one_group =
      "rule g { source (x: f32[n, c, h, w], y: f32[n, c, h, w], k: f32[f, c, u, v]) { return "
      "add(conv(x, k), conv(y, k)) } target { return conv(add(x, y), k) } }";
  const Equation grouped = {"x: f32[n, c, h, w], y: f32[n, c, h, w], k: f32[f, d, u, v]",
                            "add(conv(x, k) {group=$g}, conv(y, k) {group=$g})",
                            "conv(add(x, y), k) {group=$g}"};
  EXPECT_EQ(cover_of(rule_of(grouped), one_group), Coverage::Kind::Missing);
  EXPECT_EQ(cover_of(rule_of({"x: f32[2, 4, h, h], y: f32[2, 4, h, h], k: f32[3, 4, 3, 3]",
                              "add(conv(x, k), conv(y, k))", "conv(add(x, y), k)"}),
                     one_group),
            Coverage::Kind::Derivable);
}

TEST(Covers, NamesTheRulesThatItFollowsFrom) {
  const auto all =
      covers({rule_of({"a: f32[n], b: f32[n], c: f32[n], d: f32[n]", "mul(add(a, b), add(c, d))",
                       "add(add(mul(a, d), mul(b, c)), add(mul(c, a), mul(d, b)))"}),
              rule_of({"x: f32[n], y: f32[n]", "add(x, y)", "add(y, x)"})},
             rules_of(kRing), {});
  ASSERT_TRUE(all);
  EXPECT_THAT(all->at(0).by, ::testing::UnorderedElementsAre("add_again", "distribute"));
  EXPECT_EQ(all->at(1).kind, Coverage::Kind::Derivable);
  EXPECT_THAT(all->at(1).by, IsEmpty());
}

/// TASO's rules with the guards that the proofs find.
std::vector<Rule> taso_rules(const std::filesystem::path& path) {
  const auto text = read_text(path);
  EXPECT_TRUE(text) << to_string(text.error());
  auto rules = rules::parse_taso(*text);
  EXPECT_TRUE(rules) << to_string(rules.error());
  for (Rule& rule : *rules) {
    const rules::RuleProof proof = prove_rule(rule, rules::Guards::Found, {});
    const auto* proved = std::get_if<prove::Proved>(&proof.verdict);
    EXPECT_NE(proved, nullptr) << rule.name;
    if (proved != nullptr) rule.guard = proved->guard;
  }
  return *rules;
}

/// What is kept of rules covers all of them.
void expect_basis(const std::vector<Rule>& rules) {
  const auto basis = prune(rules, {});
  ASSERT_TRUE(basis) << to_string(basis.error());
  EXPECT_LT(basis->rules.size(), rules.size());
  EXPECT_EQ(basis->rules.size() + basis->renamed + basis->common + basis->derived, rules.size());
  const auto all = covers(rules, basis->rules, {});
  ASSERT_TRUE(all);
  for (const Coverage& cover : *all) EXPECT_NE(cover.kind, Coverage::Kind::Missing) << cover.name;
}

std::filesystem::path some_rules_of_taso() {
  return std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/fixtures/taso_small.txt";
}

/// All that TASO published, where the file is beside the repository, or else some of them.
std::filesystem::path rules_of_taso() {
  const auto all = std::filesystem::path(TESSERA_SOURCE_DIR) / "../shared/data/taso_rules.txt";
  return std::filesystem::exists(all) ? all : some_rules_of_taso();
}

TEST(Prune, ABasisCoversWhatItWasMadeOf) {
  expect_basis(taso_rules(some_rules_of_taso()));
}

TEST(SlowPrune, ABasisOfThePublishedRulesCoversThem) {
  expect_basis(taso_rules(rules_of_taso()));
}

TEST(SlowPrune, WhatIsFoundCoversThePublishedRules) {
  const auto set = load_set("taso");
  ASSERT_TRUE(set) << to_string(set.error());
  const auto made = generate(*set, {.max_ops = 3});
  ASSERT_TRUE(made) << to_string(made.error());
  const auto basis = prune(made->rules, {});
  ASSERT_TRUE(basis) << to_string(basis.error());
  std::vector<Rule> published = taso_rules(rules_of_taso());
  // In the fixture alone: the set's ones are matrices, this rule's an image.
  if (rules_of_taso() == some_rules_of_taso())
    std::erase_if(published, [](const Rule& rule) { return rule.name == "taso_9"; });
  ASSERT_THAT(published, Not(IsEmpty()));
  const auto found = covers(published, basis->rules, {});
  ASSERT_TRUE(found) << to_string(found.error());
  for (const Coverage& cover : *found) EXPECT_NE(cover.kind, Coverage::Kind::Missing) << cover.name;
}

}  // namespace
}  // namespace tessera::superopt
