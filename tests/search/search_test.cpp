#include "tests/search/search_check.h"

namespace tessera {
namespace {

using search::SearchResult;
using testing::parsed;
using testing::rules_named;
using testing::searched;
using testing::TableModel;

std::size_t count_of(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const GraphNode& node) { return node.op->name == op; }));
}

/// Numbers that are all different.
std::string weights(const std::string& name, const std::vector<int>& shape, int seed) {
  int count = 1;
  std::string sizes, numbers;
  for (const int size : shape) {
    count *= size;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  for (int i = 0; i < count; ++i)
    numbers += (i == 0 ? "" : ", ") + std::to_string(0.001 * ((i * 37 + seed * 11) % 101) + 0.01);
  return name + " = const f32[" + sizes + "] [" + numbers + "]\n";
}

/// Blocks of two products that share an input, as the text of a graph.
std::string blocks(int count) {
  std::string text = "graph(x0: f32[4, 6]) {\n";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += weights("v" + n, {6, 6}, 2 * i) + weights("w" + n, {6, 6}, 2 * i + 1);
    text += "a" + n + " = matmul(x" + n + ", v" + n + ")\n";
    text += "b" + n + " = matmul(x" + n + ", w" + n + ")\n";
    text += "c" + n + " = tanh(a" + n + ")\n d" + n + " = sigmoid(b" + n + ")\n";
    text += "x" + std::to_string(i + 1) + " = mul(c" + n + ", d" + n + ")\n";
  }
  return text + "return x" + std::to_string(count) + "\n}";
}

/// Dear products, cheap moves.
TableModel products_count() {
  return TableModel({{"matmul", 10}, {"split", 0.1}});
}

TEST(Search, JoinsProductsThatShareAFactor) {
  const Graph graph = parsed(blocks(1));
  TableModel model = products_count();
  const SearchResult found = searched(graph, rules_named({}), model, {.steps = 100});
  EXPECT_TRUE(found.better);
  EXPECT_EQ(count_of(found.graph, "matmul"), 1U);
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_EQ(found.choices[0].rules[0].rule, "parallel_matmuls_share_left");
  EXPECT_EQ(found.choices[0].rules[0].where, "a0");
  EXPECT_LT(found.after, found.before);
}

TEST(Search, LeavesTheWorkOnWeightsToTheCompiler) {
  const Graph graph = parsed(blocks(1));
  TableModel model = products_count();
  const SearchResult found = searched(graph, rules_named({}), model, {.steps = 100});
  EXPECT_EQ(count_of(found.graph, "concat"), 1U);
}

TEST(Search, SearchesRegionsThatDifferInWeightsAloneOnce) {
  const Graph graph = parsed(blocks(6));
  TableModel model = products_count();
  const SearchResult found = searched(graph, rules_named({}), model, {.steps = 400});
  EXPECT_EQ(found.regions, 6U);
  EXPECT_EQ(found.distinct, 1U);
  EXPECT_EQ(count_of(found.graph, "matmul"), 6U);
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_EQ(found.choices[0].places, 6U);
}

TEST(Search, SaysThatNothingBetterWasFound) {
  const Graph graph = parsed("graph(x: f32[4, 6]) { return tanh(x) }");
  TableModel model = products_count();
  const SearchResult found = searched(graph, rules_named({}), model, {.steps = 100});
  EXPECT_FALSE(found.better);
  EXPECT_EQ(found.why, search::StopReason::Exhausted);
  EXPECT_TRUE(same_graph(found.graph, graph));
}

TEST(Search, TakesMoreRulesWhereTheOthersLeadNoFurther) {
  const Graph graph = parsed(blocks(1));
  TableModel model = products_count();
  const std::vector<rules::Rule> none, one = rules_named({"parallel_matmuls_share_left"});
  EXPECT_FALSE(searched(graph, none, model, {.steps = 100}).better);
  const SearchResult found = searched(graph, none, model, {.steps = 100, .more = one});
  EXPECT_TRUE(found.better);
  EXPECT_EQ(count_of(found.graph, "matmul"), 1U);
}

TEST(RewriteMoves, ThoseOfChosenRulesComeFirst) {
  const auto moves = search::RewriteMoves::make(rules_named({}), false);
  ASSERT_TRUE(moves) << to_string(moves.error());
  const Graph graph = parsed(
      "graph(x: f32[4, 6], y: f32[6, 8], z: f32[8, 2]) {"
      " return matmul(matmul(x, y), z), matmul(x, concat(y, y) {axis=1}) }");
  const std::string last = moves->from(graph).back().by.rule;
  ASSERT_NE(moves->from(graph).front().by.rule, last);
  std::string first;
  moves->from(graph, {last}, [&](const search::Neighbour& neighbour) {
    first = neighbour.by.rule;
    return false;
  });
  EXPECT_EQ(first, last);
}

/// Two convs that share an image: to make them one costs more than it saves, as the split is dear;
/// but then the relus become one as well.
constexpr std::string_view kReluConvs = R"(graph(x: f32[1, 2, 4, 4]) {
  v = const f32[2, 2, 1, 1] [0.1, 0.2, 0.3, 0.4]
  w = const f32[2, 2, 1, 1] [0.5, -0.6, 0.7, 0.8]
  a = const f32[2] [0.1, 0.2]
  b = const f32[2] [0.3, 0.4]
  p = relu(conv(x, v, a))
  q = relu(conv(x, w, b))
  return p, q
})";
const std::vector<std::string> kTwoSteps = {"parallel_convs_with_bias", "relu_of_split"};
/// A split is a little dearer than the conv that it saves.
TableModel first_costs_then_pays() {
  return TableModel({{"conv", 10}, {"split", 11}, {"relu", 5}});
}

TEST(Search, FindsWhatFirstCostsAndThenPays) {
  const Graph graph = parsed(kReluConvs);
  TableModel model = first_costs_then_pays();
  const SearchResult found =
      searched(graph, rules_named(kTwoSteps), model, {.alpha = 1.1, .steps = 100});
  EXPECT_TRUE(found.better);
  EXPECT_EQ(count_of(found.graph, "relu"), 1U);
  ASSERT_EQ(found.choices[0].rules.size(), 2U);
  EXPECT_GT(found.choices[0].rules[0].after, found.choices[0].rules[0].before);
}

TEST(Search, GreedyDescentDoesNotFindIt) {
  const Graph graph = parsed(kReluConvs);
  TableModel model = first_costs_then_pays();
  const SearchResult found =
      searched(graph, rules_named(kTwoSteps), model, {.alpha = 1.0, .steps = 100});
  EXPECT_FALSE(found.better);
}

TEST(Search, GivesAnotherGraphOnAnotherComputer) {
  const Graph graph = parsed(blocks(1));
  TableModel products = products_count(), moves({{"split", 50}});
  const SearchResult one = searched(graph, rules_named({}), products, {.steps = 100});
  const SearchResult other = searched(graph, rules_named({}), moves, {.steps = 100});
  EXPECT_FALSE(same_graph(one.graph, other.graph));
}

/// Expects one thing and measures another.
class MistakenModel final : public cost::Model {
 public:
  MistakenModel(TableModel expected, TableModel measured)
      : expected_(std::move(expected)), measured_(std::move(measured)) {}
  Expected<cost::Estimate> estimate(const Graph& graph, cost::Boundary boundary) override {
    return expected_.estimate(graph, boundary);
  }
  cost::Estimate estimate(const runtime::Program&, const program::CompileReport&) const override {
    return {};
  }
  Expected<cost::Estimate> measure(const Graph& graph, cost::Boundary boundary) override {
    return measured_.estimate(graph, boundary);
  }
  bool can_measure() const override { return true; }

 private:
  TableModel expected_, measured_;
};

/// One rule, which leads to few graphs: the search ends before its time does.
const std::vector<std::string> kJoin = {"parallel_matmuls_share_left"};

TEST(Search, AsksTheComputerBeforeItChooses) {
  const Graph graph = parsed(blocks(1));
  MistakenModel model(products_count(), TableModel({{"split", 50}}));
  const SearchResult found = searched(graph, rules_named(kJoin), model, {.seconds = 600});
  EXPECT_EQ(found.why, search::StopReason::Exhausted);
  EXPECT_TRUE(found.choices.empty());
}

TEST(Search, SaysWhatWasMeasured) {
  const Graph graph = parsed(blocks(1));
  MistakenModel model(products_count(), TableModel({{"matmul", 20}, {"split", 0.1}}));
  const SearchResult found = searched(graph, rules_named(kJoin), model, {.seconds = 600});
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_TRUE(found.choices[0].measured);
  EXPECT_GT(found.choices[0].before, 40);
}

TEST(Search, GivesTheSameTextEveryTime) {
  const Graph graph = parsed(blocks(3));
  std::string text;
  for (int i = 0; i < 3; ++i) {
    TableModel model = products_count();
    const std::string again =
        to_text(searched(graph, rules_named({}), model, {.steps = 150}).graph);
    if (i > 0) {
      EXPECT_EQ(again, text);
    }
    text = again;
  }
}

TEST(Search, KeepsEveryBitIfAskedTo) {
  const Graph graph = parsed(blocks(1));
  TableModel model = products_count();
  const SearchResult found = searched(graph, rules_named({}), model, {.steps = 100, .exact = true});
  for (const search::Choice& choice : found.choices)
    for (const search::RuleApplication& step : choice.rules) {
      const auto rule = rules_named({step.rule});
      EXPECT_EQ(rule[0].numerics.kind, rules::Numerics::Kind::Exact) << step.rule;
    }
}

TEST(Search, StopsWhenToldTo) {
  const Graph graph = parsed(blocks(2));
  TableModel model = products_count();
  const std::atomic<bool> stop = true;
  const SearchResult found =
      searched(graph, rules_named({}), model, {.seconds = 1000, .stop = &stop});
  EXPECT_EQ(found.why, search::StopReason::Stopped);
}

TEST(Search, LooksAtNoMoreGraphsThanItMay) {
  const Graph graph = parsed(blocks(4));
  TableModel model = products_count();
  EXPECT_LE(searched(graph, rules_named({}), model, {.steps = 30}).steps, 30);
}

TEST(Search, KeepsTheMeaningOfAnyGraph) {
  const std::vector<rules::Rule> rules = rules_named({});
  TableModel model({{"add", 3}, {"matmul", 5}, {"relu", 2}, {"split", 0.5}, {"concat", 0.5}});
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Graph graph = testing::random_graph(seed, 12);
    const auto found = search::optimize(graph, rules, model, {.alpha = 1.3, .steps = 40});
    if (!found) continue;  // sizes that are not known
    testing::expect_valid(found->graph);
    testing::expect_same_results(graph, found->graph, 1e-3);
  }
}

}  // namespace
}  // namespace tessera
