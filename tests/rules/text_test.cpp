#include "tessera/rules/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/rules/rule_check.h"
#include "tests/support/command.h"

namespace tessera {
namespace {

using rules::Rule;
using testing::rules_of;

constexpr std::string_view kRule =
    "rule sum_into_matmul {\n"
    "  about    \"x·(y + z) = x·y + x·z\"\n"
    "  numerics error 1e-06\n"
    "  found    \"by hand\"\n"
    "  both ways\n"
    "  where    k == 2*r + 1, m <= n\n"
    "  source (x: f32[m, k], y: f32[k, n], z: const f32[k, n], u: f32[r]) "
    "{ return matmul(x, add(y, z)), u }\n"
    "  target { return add(matmul(x, y), matmul(x, z)), u }\n"
    "}\n";

void expect_error(std::string_view text, std::string_view message) {
  const auto rules = rules::parse_rules(text, "a.rules");
  ASSERT_FALSE(rules) << text;
  EXPECT_EQ(to_string(rules.error()), message);
}

TEST(RuleText, PrintsWhatItReads) {
  const std::vector<Rule> rules = rules_of(kRule);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(to_text(rules[0]), kRule);
  EXPECT_EQ(rules[0].constants, std::vector<std::string>{"z"});
  EXPECT_EQ(rules[0].numerics.error, 1e-6);
}

TEST(RuleText, NamesWhatIsUsedTwice) {
  const std::string text =
      "rule square {\n"
      "  numerics reals\n"
      "  source (x: f32[*s]) {\n"
      "    %0 = exp(x)\n"
      "    return mul(%0, %0)\n"
      "  }\n"
      "  target { return exp(mul(x, 2.0)) }\n"
      "}\n";
  EXPECT_EQ(to_text(rules_of(text)[0]), text);
}

TEST(RuleText, ReadsBackWhatHasOneNameTwice) {
  Rule rule = rules_of(
      "rule a { source (x: f32[n]) { p = relu(x)  q = neg(p)  return add(p, q), p, q } "
      "target { return sub(relu(x), relu(x)), relu(x), neg(relu(x)) } }")[0];
  for (std::uint32_t i = 0; i < rule.source.value_count(); ++i)
    if (rule.source.producer(ValueId{i}) != nullptr) rule.source.set_name(ValueId{i}, "same");
  const Rule back = rules_of(to_text(rule))[0];
  EXPECT_EQ(back.source.hash(), rule.source.hash());
}

TEST(RuleText, KeepsAttributesThatAreNames) {
  const std::string text =
      "rule conv {\n"
      "  numerics reals\n"
      "  source (x: f32[n, i, h, w], v: f32[f, c, r, q]) "
      "{ return conv(x, v) {group=$g, strides=$s} }\n"
      "  target { return conv(x, v) {group=$g, strides=$s} }\n"
      "}\n";
  EXPECT_EQ(to_text(rules_of(text)[0]), text);
}

constexpr std::string_view kNorm =
    "rule norm {{ source (x: f32[n, c, h], k: f32[c], {}) {{ return batch_normalization({}, k, k, "
    "k, "
    "k) {{epsilon=$e}} }} target {{ return batch_normalization(x, k, k, k, k) {{epsilon=$e}} }} }}";

TEST(RuleText, RefusesAFloatAttributeWhoseValueIsNotToldOnce) {
  const auto error = [](std::string_view inputs, std::string_view operand) {
    const auto rules = rules::parse_rules(fmt::format(kNorm, inputs, operand));
    return rules ? std::string() : rules.error().message;
  };
  EXPECT_EQ(error("e: const f32[]", "x"), "");
  EXPECT_EQ(error("e: f32[c]", "x"), "the input e is an attribute, so its rank is 0");
  EXPECT_EQ(error("e: f32[], y: f32[e]", "x"), "e is a size and an attribute");
  EXPECT_EQ(error("e: f32[]", "add(x, e)"), "the source has e as attribute and operand");
  EXPECT_EQ(error("y: f32[]", "x"), "the source says nothing of the value of $e");
}

TEST(RuleText, IsOneRuleForEachOperator) {
  const std::vector<Rule> rules = rules_of(
      "rule meet { for op in add, max source (x: f32[*s], c: f32[], d: f32[]) "
      "{ return op(op(x, c), d) } target { return op(x, op(c, d)) } } "
      "rule last { source (x: f32[*s]) { return relu(x) } target { return x } }");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].name, "meet_add");
  EXPECT_EQ(rules::body_text(rules[1].source, 0), "{ return max(max(x, c), d) }");
  EXPECT_EQ(rules[1].name, "meet_max");
  EXPECT_EQ(rules[2].name, "last");
  expect_error("rule a { for op in add, plus source (x: f32[n]) { return x } target { return x } }",
               "a.rules: line 1:25: error[text-syntax]: there is no such operator");
}

TEST(RuleText, IsOneRuleForEachAssociativeOperator) {
  const std::vector<Rule> rules = rules_of(
      "rule law { for op in associative numerics as op helps smaller "
      "source (x: f32[*s], c: f32[], d: f32[]) { return op(op(x, c), d) } "
      "target { return op(x, op(c, d)) } }");
  std::map<std::string, std::string> numerics;
  for (const Rule& rule : rules) {
    numerics[rule.name] = rules::to_text(rule.numerics);
    EXPECT_EQ(rule.helps, rules::Helps::WhereSmaller);
    EXPECT_EQ(to_text(rules_of(to_text(rule))[0]), to_text(rule));
  }
  const std::map<std::string, std::string> expected = {{"law_add", "reals"},
                                                       {"law_max", "exact"},
                                                       {"law_min", "exact"},
                                                       {"law_mul", "reals"},
                                                       {"law_sum", "reals"}};
  EXPECT_EQ(numerics, expected);
}

TEST(RuleText, RefusesNumericsOfAnOperatorThatIsNotAssociative) {
  expect_error("rule a { numerics as add source (x: f32[n]) { return x } target { return x } }",
               "a.rules: line 1:22: error[text-syntax]: this is not the name of an associative "
               "operator");
  expect_error(
      "rule a { for op in sub numerics as op source (x: f32[n]) { return x } target { return x } }",
      "a.rules: line 1:36: error[text-syntax]: this is not the name of an associative operator");
}

TEST(RuleText, KeepsShapesThatBroadcast) {
  const std::string text =
      "rule a {\n"
      "  numerics reals\n"
      "  where    *p <= *s, *q <= *p, n <= 4\n"
      "  source (x: f32[*s, n], c: f32[*p, n], d: f32[*q, n]) { return add(add(x, c), d) }\n"
      "  target { return add(x, add(c, d)) }\n"
      "}\n";
  EXPECT_EQ(to_text(rules_of(text)[0]), text);
}

TEST(RuleText, RefusesConditionsOnShapesThatTellNone) {
  const auto error = [](std::string_view conditions) {
    const auto rules = rules::parse_rules(
        fmt::format("rule a {{ where {} source (x: f32[*s], y: f32[*p]) {{ return add(x, y) }} "
                    "target {{ return add(y, x) }} }}",
                    conditions));
    return rules ? std::string() : rules.error().message;
  };
  EXPECT_EQ(error("*p <= *s"), "");
  EXPECT_EQ(error("*q <= *s"), "no input has the axes *q");
  EXPECT_EQ(error("*p <= *q"), "nothing tells what the shape *p broadcasts to");
  EXPECT_EQ(error("*p <= *s, *s <= *p"), "nothing tells what the shape *p broadcasts to");
}

TEST(RuleText, SaysWhereAMistakeIs) {
  expect_error("rule a {\n  about 3\n}",
               "a.rules: line 2:9: error[text-syntax]: found 3\n"
               "  note: a sentence in quotes is expected");
  expect_error("rule a {\n  source (x: f32[n]) { return relu(y) }\n}",
               "a.rules: line 2:36: error[text-graph]: y is not defined");
  expect_error("rule a {\n  source (x: f32[n]) { return x }\n}",
               "a.rules: line 1:6: error[rule-invalid]: a has no target");
}

TEST(RuleText, RefusesATargetThatTheSourceDoesNotTell) {
  expect_error(
      "rule a { source (x: f32[n], y: f32[n]) { return relu(x) } target { return add(x, y) } }",
      "a.rules: line 1:6: a: error[rule-invalid]: the source says nothing of the input y");
  expect_error("rule a { where k <= n source (x: f32[n]) { return relu(x) } target { return x } }",
               "a.rules: line 1:6: a: error[rule-invalid]: the source says nothing of the size k");
  expect_error("rule a { source (x: f32[n]) { return relu(x) } target { return x, x } }",
               "a.rules: line 1:6: a: error[rule-invalid]: the source has 1 outputs, the target 2");
}

TEST(RuleText, ReadsTheFilesOfAFolderInOrder) {
  const testing::TemporaryFolder folder;
  const auto rule = [](const std::string& name) {
    return "rule " + name + " { source (x: f32[n]) { return relu(x) } target { return x } }\n";
  };
  folder.write("b.rules", rule("b"));
  folder.write("a.rules", rule("z") + rule("y"));
  folder.write("notes.txt", "no rule");
  const auto rules = rules::load_rules(folder.path());
  ASSERT_TRUE(rules) << to_string(rules.error());
  std::vector<std::string> names;
  for (const Rule& r : *rules) names.push_back(r.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "y", "b"}));

  folder.write("c.rules", rule("y"));
  const auto twice = rules::load_rules(folder.path());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().id, "rule-duplicate");
}

TEST(RuleInstances, AreThoseThatTheOperatorsTake) {
  const std::vector<Rule> made = instances(rules_of(
      "rule a { source (x: f32[*s]) { return concat(x, x) {axis=0} } target { return concat(x, x) "
      "{axis=0} } }")[0]);
  EXPECT_EQ(made.size(), 4u);  // not of numbers
}

TEST(RuleInstances, NameTheAxesOfAnyRank) {
  const std::vector<Rule> made = instances(rules_of(
      "rule a { source (x: f32[*s, n]) { return relu(x) } target { return relu(x) } }")[0]);
  ASSERT_EQ(made.size(), 5u);
  EXPECT_EQ(to_string(made[2].source.type(made[2].source.inputs()[0])), "f32[s0, s1, n]");
}

TEST(RuleInstances, HaveEveryShapeThatBroadcasts) {
  std::vector<std::string> shapes;
  for (const Rule& instance : instances(
           rules_of("rule a { where *p <= *s source (x: f32[*s], y: f32[*p]) { return add(x, y) } "
                    "target { return add(y, x) } }")[0]))
    if (const auto inputs = instance.source.inputs();
        instance.source.type(inputs[0]).shape->size() == 2)
      shapes.push_back(to_string(instance.source.type(inputs[1])));
  EXPECT_THAT(shapes, ::testing::UnorderedElementsAre("f32[s0, s1]", "f32[s0, 1]", "f32[1, s1]",
                                                      "f32[1, 1]", "f32[s1]", "f32[1]", "f32[]"));
}

TEST(RuleIsGeneric, UnlessItSpeaksOfSeveralFloatTypes) {
  const auto generic = [](const std::string& source) {
    return is_generic(
        rules_of("rule a { source (x: f32[n]) { return " + source + " } target { return x } }")[0]);
  };
  EXPECT_TRUE(generic("add(x, 0.5)"));
  EXPECT_FALSE(generic("add(x, 0.1)"));
  EXPECT_FALSE(generic("cast(x) {to=\"f32\"}"));
  EXPECT_FALSE(generic("cast(cast(x) {to=\"f64\"}) {to=\"f32\"}"));
}

}  // namespace
}  // namespace tessera
