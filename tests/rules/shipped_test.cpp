#include "tessera/ir/verify.h"

#include <algorithm>

#include "tessera/prove/instances.h"
#include "tessera/rules/shipped.h"
#include "tests/rules/rule_check.h"

namespace tessera {
namespace {

using rules::Rule;
using testing::expect_same;

const std::filesystem::path kRules = std::filesystem::path(TESSERA_SOURCE_DIR) / "rules";

std::vector<Rule> shipped() {
  auto rules = rules::load_rules(kRules);
  EXPECT_TRUE(rules) << to_string(rules.error());
  return rules ? *std::move(rules) : std::vector<Rule>{};
}

void collect_symbols(const Graph& graph, std::set<std::string>& sizes) {
  for (const ValueId id : graph.inputs())
    for (const Dim& dim : *graph.type(id).shape) dim.collect_symbols(sizes);
  for (const GraphNode& node : graph.nodes())
    for (const auto& [name, attr] : node.attrs->entries())
      if (const auto* symbol = std::get_if<Symbol>(&attr)) {
        const auto spec = std::ranges::find(node.op->attrs, name, &AttrSpec::name);
        if (std::holds_alternative<double>(spec->value)) continue;
        const bool is_list = std::holds_alternative<Ints>(spec->value);
        if (!is_list) sizes.insert(symbol->name);
        // Lists have an entry for each spatial axis of the first operand, or two.
        const std::size_t spatial = graph.type(graph.inputs(node)[0]).shape->size() - 2;
        for (std::size_t i = 0; is_list && i < (name == "pads" ? 2 : 1) * spatial; ++i)
          sizes.insert(symbol->name + std::to_string(i));
      }
}

/// A rule whose float attributes are operands of what its operators mean.
Rule with_real_operands(Rule rule) {
  rule.source = *prove::with_real_operands(rule.source);
  rule.target = *prove::with_real_operands(rule.target);
  return rule;
}

/// A rule whose float attributes are numbers.
Rule with_real_numbers(Rule rule) {
  Binding binding;
  for (const GraphNode& node : rule.source.nodes())
    for (const Attrs::Entry& attribute : node.attrs->entries())
      if (const auto input = rules::attribute_input(rule.source, *node.op, attribute))
        binding.bind_attr(rule.source.name(*input), 0.25, 0);
  rule.source = *bound(rule.source, binding);
  return rule;
}

/// A rule at sizes that its source takes; nothing if none are found.
std::optional<std::pair<Graph, Graph>> at_random_sizes(const Rule& rule, Rng& rng) {
  std::set<std::string> symbols;
  collect_symbols(rule.source, symbols);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    SizeValues sizes;
    for (const std::string& symbol : symbols)
      sizes[symbol] = 1 + static_cast<std::int64_t>(rng.below(4));
    if (const auto holds = tessera::holds(rule.guard, sizes); !holds || !*holds) continue;
    auto source = bound(rule.source, sizes);
    if (!source || !verify(*source)) continue;
    auto target = bound(rule.target, sizes);
    EXPECT_TRUE(target) << to_string(target.error());
    if (!target) return std::nullopt;
    return std::pair(*std::move(source), *std::move(target));
  }
  return std::nullopt;
}

TEST(ShippedRules, SayWhatTheyAre) {
  for (const Rule& rule : shipped()) {
    EXPECT_FALSE(rule.about.empty()) << rule.name;
    EXPECT_FALSE(rule.found.empty()) << rule.name;
    EXPECT_FALSE(instances(rule).empty()) << rule.name;
  }
}

TEST(ShippedRules, OfEnumerationStandBesideThoseByHand) {
  const auto all = rules::shipped(), by_hand = rules::shipped_by_hand();
  ASSERT_TRUE(all && by_hand);
  ASSERT_GT(all->size(), by_hand->size());
  std::set<std::string> names;
  for (const Rule& rule : *all) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
  for (std::size_t i = by_hand->size(); i < all->size(); ++i) {
    EXPECT_EQ((*all)[i].found, "by enumeration");
    EXPECT_FALSE((*all)[i].about.empty()) << (*all)[i].name;
    // Whether they help is for the search to find out.
    EXPECT_EQ((*all)[i].helps, rules::Helps::Unknown) << (*all)[i].name;
  }
}

TEST(ShippedRules, PrintAsTheyParse) {
  for (const Rule& rule : shipped()) {
    const std::string text = to_text(rule);
    const std::vector<Rule> again = testing::rules_of(text);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(to_text(again[0]), text);
    EXPECT_EQ(again[0].source.hash(), rule.source.hash());
    EXPECT_EQ(again[0].target.hash(), rule.target.hash());
  }
}

TEST(ShippedRules, ComputeTheSameOnRandomShapes) {
  Rng rng(7);
  for (const Rule& rule : shipped())
    for (const Rule& instance : instances(rule))
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + to_text(rule));
        const auto graphs = at_random_sizes(with_real_operands(instance), rng);
        ASSERT_TRUE(graphs) << "no sizes fit";
        expect_same(graphs->first, graphs->second, seed, 1e-4);
        if (::testing::Test::HasFailure()) return;
      }
}

/// A graph with those of its inputs that a rule wants so as constants.
Graph with_constants(const Graph& graph, const Rule& rule, std::uint64_t seed) {
  GraphBuilder out;
  Vals values;
  const std::vector<Tensor> tensors = testing::tensors_for(graph, seed);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    const bool constant = std::ranges::find(rule.constants, graph.name(id)) != rule.constants.end();
    values.push_back(constant ? out.constant(tensors[i], graph.name(id))
                              : out.input(graph.name(id), {.type = graph.type(id)}));
  }
  return *out.finish(*placed(out, graph, values, {}, KnownSizes::Constant));
}

TEST(ShippedRules, MatchTheirOwnSourceAndKeepItsMeaning) {
  Rng rng(11);
  for (const Rule& rule : shipped())
    for (const Rule& instance : instances(rule)) {
      SCOPED_TRACE(to_text(rule));
      const auto graphs = at_random_sizes(with_real_numbers(instance), rng);
      ASSERT_TRUE(graphs) << "no sizes fit";
      const Graph graph = with_constants(graphs->first, rule, 2);
      const std::vector<rules::Match> found = matches(graph, rules::RuleSet({instance}));
      ASSERT_FALSE(found.empty()) << to_text(graph);
      for (const rules::Match& match : found) {
        const auto after = apply(graph, match);
        ASSERT_TRUE(after) << to_string(after.error());
        expect_same(graph, *after, 2, 1e-4);
      }
      if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace tessera
