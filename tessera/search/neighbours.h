#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/rules/match.h"
#include "tessera/support/expected.h"

namespace tessera::search {

/// A rule that was applied.
struct Applied {
  std::string rule;
  int times = 1;                       // one after the other, the first at `where`
  std::string where;                   // the first value that it computes in another way
  std::vector<std::string> also = {};  // rules that help everywhere, applied to what came out
  double before = 0, after = 0;        // seconds, as the cost model expects
};

/// A graph that is one rule away from another.
struct Neighbour {
  Graph graph;
  Applied by;
};

/// Rules as a search uses them.
///
/// Those that help everywhere are applied wherever they match, after every
/// other rule: they are no choice. What is left to choose is the rest, in both
/// directions where a rule holds in both.
class Moves {
 public:
  /// With `exact`, only rules that keep every bit.
  static Expected<Moves> make(const std::vector<rules::Rule>& rules, bool exact);

  /// All graphs that one rule leads to, in the order of places and rules. A rule that joins values
  /// that are alike also leads to the graph in which it has joined all that it can: eight products
  /// that share a factor are one product in one step, not in seven. Work on weights alone is left
  /// as it is, to be done when a graph is chosen.
  std::vector<Neighbour> from(const Graph& graph) const;
  /// One by one, until the visitor says false; those of the rules with these names come first.
  void from(const Graph& graph, const std::set<std::string>& first,
            const std::function<bool(Neighbour)>& visit) const;

  /// The graph after the rules that help everywhere, without what is computed
  /// twice or never.
  Expected<Graph> settled(const Graph& graph, std::vector<std::string>& applied) const;

  /// As they were given.
  const std::vector<rules::Rule>& rules() const { return rules_; }
  std::size_t size() const { return set_.size(); }
  bool exact() const { return exact_; }

 private:
  Moves(const std::vector<rules::Rule>& rules, const std::vector<rules::Rule>& choices, bool exact)
      : rules_(rules), set_(choices), exact_(exact) {}

  std::vector<rules::Rule> rules_;
  rules::RuleSet set_;
  bool exact_;
};

}  // namespace tessera::search
