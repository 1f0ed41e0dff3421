#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/egraph/egraph.h"
#include "tessera/rules/match.h"

namespace tessera::egraph {

/// A rule, one way, as it is looked for in e-graphs.
class Rewrite {
 public:
  /// Takes a rule without `*s` whose source is computed.
  explicit Rewrite(std::shared_ptr<const rules::Pattern> pattern);

  const rules::Rule& rule() const { return pattern_->rule; }
  /// What computes the first output of the source.
  const OpDef& root() const;

  /// A place where the source was found, as far as operators and wiring go.
  struct Match {
    std::vector<ClassId> values;  // by value of the source; none for what was not looked at
    std::vector<const Application*> nodes;  // by node of the source, likewise null
    Premises premises;                      // what was equal for the source to be there
  };
  /// Calls `found` with every match whose first output is a member of this class, until it says
  /// false.
  void match(EGraph& graph, ClassId root, const std::function<bool(const Match&)>& found) const;

  /// Adds the target where sizes, attributes and the guard fit, and unites its outputs with those
  /// of the source; whether it did.
  bool apply(EGraph& graph, const Match& match, std::uint32_t origin);

 private:
  friend class Matching;

  /// A node of the source in the order in which they are looked for.
  struct Step {
    std::size_t node = 0;
    ValueId at = {};         // its result that is known by then
    std::size_t output = 0;  // which that is
    bool anywhere = false;   // it is not: all nodes of the operator are tried
  };
  /// What comes of a rule on values of some types: nothing where it does not fit.
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

/// Rules for e-graphs, found by the operator that computes the first output of their source.
/// Remembers what it found out about types, so it is worth keeping; belongs to one thread and to
/// one `Facts`.
class Rewrites {
 public:
  explicit Rewrites(std::shared_ptr<Facts> facts = std::make_shared<Facts>())
      : facts_(std::move(facts)) {}

  /// Adds a rule in all its instances, both ways if it holds both ways. A way that the source does
  /// not tell enough for is never taken; a rule whose source is an input or a constant never
  /// matches, and false is the answer.
  bool add(const rules::Rule& rule);

  /// For e-graphs that these rules are to be used on.
  const std::shared_ptr<Facts>& facts() const { return facts_; }
  std::vector<std::unique_ptr<Rewrite>>& all() { return all_; }

 private:
  bool add_one_way(const rules::Rule& rule);

  std::shared_ptr<Facts> facts_;
  std::vector<std::unique_ptr<Rewrite>> all_;
};

}  // namespace tessera::egraph
