#include "tessera/superopt/generate/generate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/proof.h"
#include "tessera/rules/text.h"
#include "tessera/superopt/generate/enumerate.h"
#include "tessera/support/file.h"

namespace tessera::superopt {
namespace {

constexpr const char* kSmall = R"(
set small
sizes n=2 k=3
sizes n=4 k=5
input x, y: f32[n, k]
input s: f32[]
op neg(a) { return neg(a) }
op add(a: [*s], b: [*s]) { return add(a, b) }
op scale(a: [_, _], b: []) { return mul(a, b) }
op concat(a: [_, m], b: [_, m]) { return concat(a, b) {axis=0} }
op split(a: [_, _]) cut p, q = a.0 {
  b, c = split(a, concat(p, q) {axis=0}) {axis=0}
  return b, c
}
)";

OperatorSet set_of(const char* text) {
  auto set = parse_set(text, "small.set");
  EXPECT_TRUE(set) << to_string(set.error());
  return *std::move(set);
}

OperatorSet small_set() {
  return set_of(kSmall);
}

std::string text_of(const GenerateResult& made) {
  std::string text;
  for (const rules::Rule& rule : made.rules) text += to_text(rule) + "\n";
  return text;
}

std::vector<std::string> equations_of(const GenerateResult& made) {
  std::vector<std::string> equations;
  for (const rules::Rule& rule : made.rules) equations.push_back(rules::equation(rule));
  return equations;
}

std::string generated(const OperatorSet& set, const GenerateOptions& options) {
  const auto made = generate(set, options);
  EXPECT_TRUE(made) << to_string(made.error());
  EXPECT_FALSE(made->stopped);
  return text_of(*made);
}

TEST(Generate, FindsEveryRuleOfASmallSet) {
  const auto made = generate(set_of(R"(
set tiny
sizes n=2 k=3
sizes n=4 k=5
input x, y: f32[n, k]
input s, t: f32[]
op neg(a) { return neg(a) }
op scale(a: [_, _], b: []) { return mul(a, b) }
)"),
                             {.max_ops = 2});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(equations_of(*made),
              ::testing::UnorderedElementsAre("--x = x", "--s = s", "-x * s = -(x * s)",
                                              "x * -s = -x * s", "x * t * s = x * s * t"));
  EXPECT_EQ(made->refuted + made->unknown, 0U);
}

TEST(Generate, DoesNotDependOnThreads) {
  const OperatorSet set = small_set();
  EXPECT_EQ(generated(set, {.max_ops = 3, .threads = 1}),
            generated(set, {.max_ops = 3, .threads = 2}));
}

TEST(Generate, EveryRuleIsProvedAsItIsStated) {
  const auto made = generate(small_set(), {.max_ops = 3});
  ASSERT_TRUE(made);
  ASSERT_GT(made->rules.size(), 10U);
  for (const rules::Rule& rule : made->rules) {
    const auto parsed = rules::parse_rules(to_text(rule));
    ASSERT_TRUE(parsed) << to_string(parsed.error()) << to_text(rule);
    const auto proof = prove_rule((*parsed)[0], rules::Guards::Stated, {});
    EXPECT_TRUE(std::holds_alternative<prove::Proved>(proof.verdict)) << to_text(rule);
  }
}

// Summed in four lanes, as rows of four are, both sides take the same steps; rows of three do not.
TEST(Generate, WhatIsExactForSomeSizesAloneIsNotExact) {
  const auto made = generate(set_of(R"(
set sums
sizes n=2 k=4
sizes n=2 k=3
input x, y: f32[n, k]
op add(a: [*s], b: [*s]) { return add(a, b) }
op sum(a: [n, _]) { return reduce_sum(a, [1]) }
op concat(a: [m, _], b: [m, _]) { return concat(a, b) {axis=1} }
)"),
                             {.max_ops = 2});
  ASSERT_TRUE(made) << to_string(made.error());
  const auto rule = std::ranges::find_if(made->rules, [](const rules::Rule& found) {
    return rules::equation(found) ==
           "reduce_sum(concat(x, y) {axis=1}, [1]) = reduce_sum(x + y, [1])";
  });
  ASSERT_NE(rule, made->rules.end()) << text_of(*made);
  EXPECT_EQ(rule->numerics.kind, rules::Numerics::Kind::Reals);
}

// Where numbers have one sign, all that is multiplied by relu(s) looks like nothing, or like s.
TEST(Generate, NumbersHaveEitherSign) {
  const auto made = generate(set_of(R"(
set signs
sizes n=2 k=3
sizes n=4 k=5
input x, y: f32[n, k]
input s: f32[]
op relu(a) { return relu(a) }
op scale(a: [_, _], b: []) { return mul(a, b) }
)"),
                             {.max_ops = 3});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(equations_of(*made),
              ::testing::IsSupersetOf({"relu(relu(x)) = relu(x)", "relu(relu(s)) = relu(s)",
                                       "x * relu(s) * relu(s) = x * s * relu(s)"}));
  EXPECT_EQ(made->refuted + made->unknown, 0U);
}

TEST(Generate, JoinsTermsIntoRulesOfTwoOutputs) {
  const auto made = generate(small_set(), {.max_ops = 3});
  ASSERT_TRUE(made);
  EXPECT_TRUE(std::ranges::any_of(made->rules, [](const rules::Rule& rule) {
    return rule.source.outputs().size() == 2 &&
           rules::equation(rule).starts_with("-x, -y = split(-concat(x, y) {axis=0}");
  })) << text_of(*made);
}

class Interrupted : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  // One of its own for each test: they run at the same time.
  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) /
      fmt::format("tessera_generate_{}.progress",
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Interrupted, TakesUpWhatWasDecided) {
  const OperatorSet set = small_set();
  const std::string whole = generated(set, {.max_ops = 3, .checkpoint = path_});
  const std::string lines = *read_text(path_);
  // As if it had been killed in the middle of a line.
  std::ofstream(path_) << lines.substr(0, lines.size() / 2);
  EXPECT_EQ(generated(set, {.max_ops = 3, .checkpoint = path_, .resume = true}), whole);
}

TEST_F(Interrupted, ADamagedFileIsADiagnostic) {
  const OperatorSet set = small_set();
  generated(set, {.max_ops = 2, .checkpoint = path_});
  std::string lines = *read_text(path_);
  lines[lines.size() / 2] = lines[lines.size() / 2] == '0' ? '1' : '0';
  std::ofstream(path_) << lines;
  const auto damaged = generate(set, {.max_ops = 2, .checkpoint = path_, .resume = true});
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().id, "generate-checkpoint");
  const auto other = generate(set, {.max_ops = 1, .checkpoint = path_, .resume = true});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().id, "generate-checkpoint");
}

TEST(Generate, MoreMemoryThanAllowedIsADiagnostic) {
  const auto made = generate(small_set(), {.max_ops = 3, .memory_limit = 1000});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().id, "generate-memory");
}

TEST(OperatorSets, ShippedOnesAreRead) {
  ASSERT_FALSE(shipped_sets().empty());
  for (const ShippedSet& shipped : shipped_sets()) {
    const auto set = parse_set(shipped.text, std::string(shipped.name));
    EXPECT_TRUE(set) << to_string(set.error());
  }
  const auto taso = load_set("taso");
  ASSERT_TRUE(taso);
  EXPECT_EQ(taso->operators.size(), 26U);
}

TEST(SlowGenerate, FindsAndProvesRulesOfTheModernSet) {
  const auto set = load_set("modern");
  ASSERT_TRUE(set) << to_string(set.error());
  const auto made = generate(*set, {.max_ops = 2, .threads = 2});
  ASSERT_TRUE(made) << to_string(made.error());
  std::set<std::string> equations;
  for (const rules::Rule& rule : made->rules) equations.insert(rules::equation(rule));
  for (const char* known :
       {"matmul(x, matmul(u, v)) = matmul(matmul(x, u), v)",
        "reduce_sum(matmul(x, z), [2]) = matmul(x, reduce_sum(z, [2]))",
        "transpose(relu(x)) {perm=[0, 2, 1]} = relu(transpose(x) {perm=[0, 2, 1]})",
        "conv(pad(i, [0, 0, 1, 1, 0, 0, 1, 1]), k) {group=$g} = conv(i, k) {group=$g, pads=[1, 1, "
        "1, 1]}"})
    EXPECT_TRUE(equations.contains(known)) << known;
}

TEST(OperatorSets, WhatIsWrongIsNamed) {
  const std::string sizes = "set s\nsizes n=2 k=3\nsizes n=4 k=5\n";
  const std::string rest = "input x: f32[n]\nop neg(a) { return neg(a) }";
  EXPECT_TRUE(parse_set(sizes + rest));
  for (const std::string& text :
       {"set s\nsizes n=2\n" + rest, "set s\nsizes n=1\nsizes n=3\n" + rest,
        "set s\nsizes n=2 k=2\nsizes n=4 k=5\n" + rest, sizes,
        sizes + "input x: f32[q]\nop neg(a) { return neg(a) }",
        sizes + "input x: i64[n]\nop neg(a) { return neg(a) }",
        sizes + rest + "\nop neg(b) { return neg(b) }",
        sizes + rest + "\nop f(a) where g = a.9999 / a.0 { return neg(a) }",
        sizes + rest + "\nop f() { return 1.0 }", sizes + rest + "\nop f(a) { return nothing(a) }",
        sizes + rest + "\nop f(a: [*s, *t]) { return neg(a) }", std::string("set"),
        std::string(2000, '(')}) {
    EXPECT_FALSE(parse_set(text)) << text;
  }
}

/// A recorded evaluation gives what the interpreter gives in the field itself.
TEST(Instances, ComputeWhatTheInterpreterComputes) {
  const auto set = load_set("taso");
  ASSERT_TRUE(set);
  const auto made = enumerate(*set, {.max_ops = 1});
  ASSERT_TRUE(made);
  Values<FieldA> values(*made->terms, {});
  std::size_t compared = 0;
  for (TermId id = 0; id < made->terms->size(); ++id) {
    const Term& term = (*made->terms)[id];
    if (term.op == Term::kVariable) continue;
    const OperatorSet::Operator& op = set->operators[term.op];
    if (op.cut || !op.quotients.empty()) continue;
    std::vector<interp::Value> inputs;
    for (std::size_t i = 0; i < term.args; ++i) {
      const NamedTerm arg = made->terms->arg({id, term.own}, i);
      std::vector<std::int64_t> shape;
      for (const Dim& dim : made->instances->shape((*made->terms)[arg.term].shape)) {
        std::string text = dim.to_string();
        shape.push_back(dim.constant() ? *dim.constant() : set->sizes[0].at(text));
      }
      const std::vector<FieldA>& elements = values.of(arg).elements;
      inputs.push_back({Tensor::of<FieldA>(DType::F32, shape, elements), true});
    }
    const auto run = interp::run_as<FieldA>(op.body, inputs, {});
    ASSERT_TRUE(run) << op.name << to_string(run.error());
    const auto expected = run->at(term.result).datum.tensor().as<FieldA>();
    EXPECT_TRUE(std::ranges::equal(values.of({id, term.own}).elements, expected)) << op.name;
    ++compared;
  }
  EXPECT_GT(compared, 30U);
}

}  // namespace
}  // namespace tessera::superopt
