#include <cstdlib>

#include "tessera/ir/expand.h"
#include "tessera/rules/proof.h"
#include "tessera/rules/shipped.h"
#include "tests/passes/pass_check.h"
#include "tests/passes/respelling.h"

namespace tessera {
namespace {

using testing::expect_pass;
using testing::expect_unchanged;
using testing::only;
using testing::optimized;
using testing::parsed;

/// One way to write a composite.
struct Spelling {
  const char *inputs, *body, *composite;
};

constexpr Spelling kSpellings[] = {
    {"x: f32[2, 3, 8]",
     "d = sub(x, reduce_mean(x, [-1]))  v = reduce_mean(pow(d, 2.0), [-1])  "
     "return add(mul(div(d, sqrt(add(v, 1e-05))), g), b)",
     "return layer_normalization(x, g, b)"},
    {"x: f32[2, 3, 8]",
     "m = reduce_mean(x, [2])  v = sub(reduce_mean(mul(x, x), [2]), mul(m, m))  "
     "return add(mul(mul(sub(x, m), reciprocal(sqrt(add(v, 1e-05)))), g), b)",
     "return layer_normalization(x, g, b)"},
    {"x: f32[2, 3, 8]",
     "return mul(g, mul(x, reciprocal(sqrt(add(reduce_mean(pow(x, 2.0), [-1]), 1e-06)))))",
     "return rms_normalization(x, g) {epsilon=1e-06}"},
    {"x: f32[2, 8]", "e = exp(x)  return div(e, reduce_sum(e, [1]))", "return softmax(x)"},
    {"x: f32[4, 8]", "e = exp(sub(x, reduce_max(x, [0])))  return div(e, reduce_sum(e, [0]))",
     "return softmax(x) {axis=0}"},
    {"x: f32[2, 8]", "return mul(mul(x, 0.5), add(erf(div(x, 1.4142135)), 1.0))", "return gelu(x)"},
    {"x: f32[2, 8]",
     "return mul(mul(x, 0.5), add(tanh(mul(add(x, mul(pow(x, 3.0), 0.044715)), 0.7978846)), 1.0))",
     "return gelu(x) {approximate=\"tanh\"}"},
    {"x: f32[2, 8]", "return mul(x, sigmoid(x))", "return swish(x)"},
    {"x: f32[2, 8]", "return div(x, add(exp(neg(x)), 1.0))", "return swish(x)"},
    {"x: f32[2, 8]", "return mul(x, hard_sigmoid(x) {alpha=0.16666667})", "return hard_swish(x)"},
    {"x: f32[2, 8]", "return div(mul(x, clip(add(x, 3.0), 0.0, 6.0)), 6.0)",
     "return hard_swish(x)"},
    {"x: f32[2, 8]", "return mul(mul(x, min(max(add(x, 3.0), 0.0), 6.0)), 0.16666667)",
     "return hard_swish(x)"},
};

std::string with_weights(const Spelling& spelling, const char* body) {
  return fmt::format(
      "graph({}) {{ g = const f32[8] [1.0, 2.0, 3.0, 1.5, 0.5, -1.0, 2.0, 0.25]  "
      "b = const f32[8] [0.0, 1.0, 0.5, 0.25, -0.5, 1.0, 2.0, 3.0]  {} }}",
      spelling.inputs, body);
}

TEST(Recognize, KnowsCompositesHoweverTheyAreSpelled) {
  for (const Spelling& spelling : kSpellings) {
    SCOPED_TRACE(spelling.body);
    const std::string before = with_weights(spelling, spelling.body);
    const std::string after = with_weights(spelling, spelling.composite);
    expect_pass({.passes = {"dce", "recognize"}, .before = before, .after = after});
  }
}

TEST(Recognize, LeavesWhatIsOnlyAlike) {
  expect_unchanged({"recognize"},
                   "graph(x: f32[2, 8]) "
                   "{ return mul(mul(x, 0.5), add(erf(mul(x, 0.7071)), 1.0)) }");
  expect_unchanged({"recognize"},
                   "graph(x: f32[2, 8]) { e = exp(x)  return div(e, reduce_sum(e, [0, 1])) }");
  // Without a guard against it, a row of minus infinities would become NaN.
  expect_unchanged({"recognize"},
                   "graph(x: f32[2, 8]) { y = softmax(x)  return where(is_nan(y), 0.0, y) }");
}

TEST(Recognize, KeepsWhatIsUsedElsewhere) {
  expect_unchanged({"recognize"},
                   "graph(x: f32[2, 8]) { e = exp(x)  y = div(e, reduce_sum(e, [1]))  "
                   "return y, e }");
}

/// Ways to say the same, beyond what the shipped rules say: of one operand, and of two that have
/// the same shape, one number per row, or one number in all.
constexpr const char* kOfOne[] = {
    "neg(x) = mul(x, -1.0)",
    "neg(x) = sub(0.0, x)",
    "reciprocal(x) = div(1.0, x)",
    "sqrt(x) = pow(x, 0.5)",
    "pow(x, 2.0) = mul(x, x)",
    "mul(x, x) = pow(x, 2.0)",
    "exp(x) = mul(exp(mul(x, 0.5)), exp(mul(x, 0.5)))",
    "exp(x) = reciprocal(exp(neg(x)))",
    "tanh(x) = neg(tanh(neg(x)))",
    "erf(x) = neg(erf(neg(x)))",
    "max(x, 0.0) = relu(x)",
    "exp(x) = reshape(exp(reshape(x, [-1])), shape(x))",
    "neg(x) = reshape(neg(reshape(x, [-1])), shape(x))",
};
constexpr const char* kOfMatrix[] = {
    "reduce_mean(x, [1]) = mul(reduce_sum(x, [1]), 0.125)",
    "reduce_sum(x, [1]) = mul(reduce_mean(x, [1]), 8.0)",
    "reduce_sum(x, [1]) = unsqueeze(reduce_sum(x, [1]) {keepdims=0}, [1])",
    "reduce_mean(x, [1]) = unsqueeze(reduce_mean(x, [1]) {keepdims=0}, [1])",
    "reduce_max(x, [1]) = neg(reduce_min(neg(x), [1]))",
    "exp(x) = transpose(exp(transpose(x) {perm=[1, 0]})) {perm=[1, 0]}",
    "erf(x) = transpose(erf(transpose(x) {perm=[1, 0]})) {perm=[1, 0]}",
};
constexpr const char* kOfTwo[] = {
    "add(x, y) = add(y, x)",
    "add(x, y) = sub(x, neg(y))",
    "sub(x, y) = add(x, neg(y))",
    "sub(x, y) = neg(sub(y, x))",
    "mul(x, y) = mul(y, x)",
    "mul(x, y) = mul(neg(x), neg(y))",
    "mul(x, y) = mul(mul(x, 2.0), mul(y, 0.5))",
    "mul(x, y) = div(x, reciprocal(y))",
    "div(x, y) = mul(x, reciprocal(y))",
    "div(x, y) = div(mul(x, 4.0), mul(y, 4.0))",
    "max(x, y) = neg(min(neg(x), neg(y)))",
    "min(x, y) = neg(max(neg(x), neg(y)))",
};
constexpr const char* kOfThree[] = {
    "mul(add(x, z), y) = add(mul(x, y), mul(z, y))",
    "mul(sub(x, z), y) = sub(mul(x, y), mul(z, y))",
    "mul(mul(x, z), y) = mul(x, mul(z, y))",
    "add(add(x, z), y) = add(x, add(z, y))",
    "div(add(x, z), y) = add(div(x, y), div(z, y))",
};

std::vector<rules::Rule> respelling_rules() {
  testing::Equations all;
  for (const char* equation : kOfOne) all.add("x: f32[*s]", equation);
  for (const char* equation : kOfMatrix) all.add("x: f32[m, 8]", equation);
  for (const char* other : {"*s", "", "m, 1", "n"}) {
    const bool rows = *other == 'm' || *other == 'n';
    const std::string x = rows ? "m, n" : "*s";
    for (const char* equation : kOfTwo)
      all.add(fmt::format("x: f32[{}], y: f32[{}]", x, other), equation);
    for (const char* equation : kOfThree)
      all.add(fmt::format("x: f32[{0}], z: f32[{0}], y: f32[{1}]", x, other), equation);
  }
  return all.rules();
}

TEST(SlowRecognize, RulesThatRespellAreProved) {
  for (const rules::Rule& rule : respelling_rules()) {
    const rules::RuleProof proof = prove_rule(rule, rules::Guards::Stated, {});
    EXPECT_TRUE(std::holds_alternative<prove::Proved>(proof.verdict)) << rules::to_text(rule);
  }
}

TEST(SlowRecognize, KnowsCompositesRespelledByRandomRules) {
  const char* const composites[] = {
      "softmax(x)",    "layer_normalization(x, g, b)",   "rms_normalization(x, g)",
      "gelu(x)",       "gelu(x) {approximate=\"tanh\"}", "swish(x)",
      "hard_swish(x)",
  };
  // The elementwise ones are definitions, not bodies: written out here once.
  const std::map<std::string, std::string> written = {
      {composites[3], "mul(mul(x, 0.5), add(erf(mul(x, 0.70710677)), 1.0))"},
      {composites[4],
       "mul(mul(x, 0.5), add(tanh(mul(add(x, mul(mul(mul(x, x), x), 0.044715)), 0.7978846)), "
       "1.0))"},
      {composites[5], "mul(x, div(1.0, add(exp(neg(x)), 1.0)))"},
      {composites[6], "mul(x, clip(add(mul(x, 0.16666667), 0.5), 0.0, 1.0))"}};
  const int count = testing::respellings_asked_for(1000);
  std::vector<rules::Rule> rules = respelling_rules();
  const auto shipped = rules::shipped_by_hand();
  rules.insert(rules.end(), shipped->begin(), shipped->end());
  const rules::RuleSet instances = testing::all_instances(rules);
  std::map<std::string, std::pair<int, int>> known;
  int all = 0;
  std::set<std::uint64_t> spellings;
  for (int i = 0; i < count; ++i) {
    const std::string name = composites[static_cast<std::size_t>(i) % std::size(composites)];
    const auto it = written.find(name);
    const Spelling spelling{"x: f32[3, 8]", "", ""};
    const std::string body = "return " + (it != written.end() ? it->second : name);
    const auto expanded = expand(parsed(with_weights(spelling, body.c_str())), [](const OpDef& op) {
      return op.kind() == OpDef::Kind::Composite;
    });
    ASSERT_TRUE(expanded);
    Rng rng(static_cast<std::uint64_t>(i));
    const Graph respelled = testing::respelled(*expanded, instances, rng, 1 + i % 12);
    spellings.insert(respelled.hash());
    const Graph after = optimized(respelled);
    testing::expect_same_results(*expanded, after, 1e-4);
    ++known[name].second;
    const std::string op = name.substr(0, name.find('('));
    bool found = false;
    for (const GraphNode& node : after.nodes()) found |= node.op->name == op;
    if (found)
      ++known[name].first, ++all;
    else if (std::getenv("TESSERA_VERBOSE") != nullptr)
      fmt::print("{}\n{}", name, to_text(after));
  }
  for (const auto& [name, counts] : known)
    fmt::print("{:<36} {} of {}\n", name, counts.first, counts.second);
  fmt::print("{} of {}, in {} different spellings\n", all, count, spellings.size());
  EXPECT_GE(all, count * 95 / 100);
}

}  // namespace
}  // namespace tessera
