#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/rules/match.h"
#include "tessera/support/expected.h"

namespace tessera::search {

/// Application of a rewrite rule, for reports.
struct RuleApplication {
  std::string rule;
  int times = 1;                       // number of consecutive applications, the first at `where`
  std::string where;                   // first value that is rewritten
  std::vector<std::string> also = {};  // normalization rules that were applied to the result
  double before = 0, after = 0;        // seconds by the cost model
};

/// Graph that is one rule application away from another.
struct Neighbour {
  Graph graph;
  RuleApplication by;
};

/// Rewrite rules as the successor function of a search.
///
/// Normalization rules, which are always beneficial, are applied wherever they match after every
/// other rule, and are not a choice. The choices are the other rules, in both directions where a
/// rule is bidirectional. With mutants, a rule that `helps mutants` and one that it makes match are
/// one choice: a mutant of a convolution applies to one with a bias too.
class RewriteMoves {
 public:
  /// With `exact`, only rules that preserve results bit for bit are used.
  static Expected<RewriteMoves> make(const std::vector<rules::Rule>& rules, bool exact);

  /// All successors of a graph, in the order of places and rules. A rule that merges similar values
  /// also leads to the graph in which it has merged all it can: eight matmuls that share a factor
  /// become one in one step, not in seven. Work on weights only is left unfolded until a graph is
  /// chosen.
  std::vector<Neighbour> from(const Graph& graph) const;
  /// Visits successors until the visitor returns false; rules named in `first` are tried first.
  void from(const Graph& graph, const std::set<std::string>& first,
            const std::function<bool(Neighbour)>& visit) const;

  /// Normal form of a graph: after the normalization rules, common subexpression elimination and
  /// dead code elimination.
  Expected<Graph> normalized(const Graph& graph, std::vector<std::string>& applied) const;

  /// All rules, as passed to make().
  const std::vector<rules::Rule>& rules() const { return rules_; }
  std::size_t size() const { return set_.size(); }
  bool exact() const { return exact_; }

 private:
  RewriteMoves(const std::vector<rules::Rule>& rules, const std::vector<rules::Rule>& choices,
               const std::vector<rules::Rule>& exposing, bool exact)
      : rules_(rules), set_(choices), exposing_(exposing), exact_(exact) {}
  /// Visits the successors by two rules, of which the first makes the second one match.
  void from_exposed(const Graph& graph, const std::function<bool(Neighbour)>& visit) const;

  std::vector<rules::Rule> rules_;
  rules::RuleSet set_;
  rules::RuleSet exposing_;  // rules that help mutants; none without mutants
  bool exact_;
};

}  // namespace tessera::search
