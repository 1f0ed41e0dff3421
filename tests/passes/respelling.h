#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tessera/rules/apply.h"
#include "tessera/rules/text.h"
#include "tessera/support/rng.h"

namespace tessera::testing {

/// How many respellings to try: more by hand.
inline int respellings_asked_for(int otherwise) {
  const char* const text = std::getenv("TESSERA_RESPELLINGS");
  return text != nullptr ? std::atoi(text) : otherwise;
}

/// Equations "a = b" over inputs, to be read from left to right.
class Equations {
 public:
  void add(const std::string& inputs, const std::string& equation) {
    const std::size_t at = equation.find(" = ");
    text_ += fmt::format("rule r{} {{ source ({}) {{ return {} }} target {{ return {} }} }}\n",
                         number_++, inputs, equation.substr(0, at), equation.substr(at + 3));
  }

  std::vector<rules::Rule> rules() const {
    auto rules = rules::parse_rules(text_);
    EXPECT_TRUE(rules) << to_string(rules.error());
    return rules ? *std::move(rules) : std::vector<rules::Rule>();
  }

 private:
  std::string text_;
  int number_ = 0;
};

inline rules::RuleSet all_instances(const std::vector<rules::Rule>& rules) {
  std::vector<rules::Rule> instances;
  for (const rules::Rule& rule : rules)
    for (rules::Rule& one : rules::instances(rule)) instances.push_back(std::move(one));
  return rules::RuleSet(instances);
}

/// Applies rules at random places.
inline Graph respelled(Graph graph, const rules::RuleSet& rules, Rng& rng, int steps) {
  for (int i = 0; i < steps; ++i) {
    const std::vector<rules::Match> found = matches(graph, rules);
    if (found.empty()) break;
    auto next = apply(graph, found[rng.below(found.size())]);
    if (next && next->nodes().size() <= 30) graph = *std::move(next);
  }
  return graph;
}

}  // namespace tessera::testing
