#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/egraph/egraph.h"
#include "tessera/rules/match.h"

namespace tessera::egraph {

/// Rewrite rule in one direction, compiled for e-matching.
class Rewrite {
 public:
  /// The source of the rule is the result of a node, and it has no `*s`.
  explicit Rewrite(std::shared_ptr<const rules::Pattern> pattern);

  const rules::Rule& rule() const { return pattern_->rule; }
  /// Operator that computes the first output of the source.
  const OpDef& root() const;

  /// Match of the source by operators and operands; sizes, attributes and guards are checked later.
  struct Match {
    std::vector<ClassId> values;            // by value of the source; none if not matched
    std::vector<const Application*> nodes;  // by node of the source, likewise null
    Premises premises;                      // equalities that the match depends on
  };
  /// Calls `found` with every match whose first output is in this class, until it returns false.
  void match(EGraph& graph, ClassId root, const std::function<bool(const Match&)>& found) const;

  /// Checks sizes, attributes and the guard, adds the target and unites its outputs with those of
  /// the source; returns whether it did.
  bool apply(EGraph& graph, const Match& match, std::uint32_t origin);

 private:
  friend class Matching;

  /// Matching step: one node of the source.
  struct Step {
    std::size_t node = 0;
    ValueId at = {};         // its result that is matched already
    std::size_t output = 0;  // which that is
    bool anywhere = false;   // none is: all nodes of the operator are tried
  };
  /// Target of a rule on values of certain types; none where the rule does not apply.
  using Target = std::optional<Graph>;

  bool is_sizes(ValueId value) const;
  void plan(ValueId value, std::vector<bool>& planned);
  Target target_on(EGraph& graph, const Match& match) const;

  std::shared_ptr<const rules::Pattern> pattern_;
  std::vector<Step> steps_;
  std::vector<bool> constant_;  // by value of the source: stands for constants only

  struct Hash {
    std::size_t operator()(const std::vector<const void*>& words) const;
  };
  std::unordered_map<std::vector<const void*>, Target, Hash> targets_;
};

/// Set of rewrites for e-graphs. Caches targets by operand types, so reuse it; belongs to one
/// thread and to one `OperatorAnalysis`.
class Rewrites {
 public:
  explicit Rewrites(
      std::shared_ptr<OperatorAnalysis> analysis = std::make_shared<OperatorAnalysis>())
      : analysis_(std::move(analysis)) {}

  /// Adds all instances of a rule, in both directions if it is bidirectional. A direction whose
  /// source does not determine the target is skipped; returns false for a rule whose source is an
  /// input or a constant, which never matches.
  bool add(const rules::Rule& rule);

  /// Analysis that e-graphs for these rules share.
  const std::shared_ptr<OperatorAnalysis>& analysis() const { return analysis_; }
  std::vector<std::unique_ptr<Rewrite>>& all() { return all_; }

 private:
  bool add_one_way(const rules::Rule& rule);

  std::shared_ptr<OperatorAnalysis> analysis_;
  std::vector<std::unique_ptr<Rewrite>> all_;
};

}  // namespace tessera::egraph
