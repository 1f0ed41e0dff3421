#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tessera/ir/bind.h"
#include "tessera/rules/rule.h"

namespace tessera::rules {

/// Compiled rule: the pattern that the matcher looks for.
struct Pattern {
  /// Matching step: one node of the source.
  struct Step {
    std::size_t node = 0;
    ValueId at = {};         // its result that is matched before
    std::size_t output = 0;  // which that is
    bool anywhere = false;   // none is: all nodes of the operator are tried
  };

  Rule rule = {};                     // without `*s`
  std::vector<ValueInfo> known = {};  // of the values of the source
  std::vector<Step> steps = {};       // in the order of the search
  std::vector<bool> constants = {};   // by value of the source: matches constants only
  bool generic = true;                // f32 is any float type
  std::vector<ValueId> untold = {};  // inputs that the target alone has, for the sake of their type

  /// Operator that computes the first output of the source.
  const OpDef& root() const { return *rule.source.producer(rule.source.outputs()[0])->op; }
  /// Whether the source computes sizes here, which may be numbers where it is found.
  bool is_sizes(ValueId value) const {
    return known[value.index].value && rule.source.producer(value) != nullptr;
  }
};

Pattern pattern_of(const Rule& rule);

/// Rules, found by the operator that computes the first output of their source.
class RuleSet {
 public:
  /// Takes rules without `*s` as they are (their instances, as far as they are proved); those that
  /// hold both ways count twice. A rule whose source is an input or constant never matches.
  explicit RuleSet(const std::vector<Rule>& rules);

  using Patterns = std::vector<std::shared_ptr<const Pattern>>;
  const Patterns& rooted_at(const OpDef& op) const;
  std::size_t size() const { return size_; }

 private:
  void add(const Rule& rule);

  std::map<const OpDef*, Patterns> by_root_;  // looked up, never walked through
  std::size_t size_ = 0;
};

/// Where a rule applies.
struct Match {
  std::shared_ptr<const Pattern> pattern;
  std::vector<ValueId> values;  // by value of the source: what it stands for
  Binding binding;              // of sizes and attributes

  const Rule& rule() const { return pattern->rule; }
};

/// What the matcher has to know of a graph beyond what the graph says.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual const ValueInfo& known(ValueId value) const = 0;
  /// Whether a value is known at compile time: a constant, or computed from constants alone.
  virtual bool is_constant(ValueId value) const = 0;
  /// Whether a value is no output and used by none but these nodes.
  virtual bool is_used_within(ValueId value, const std::set<const GraphNode*>& nodes) const = 0;
};

/// All ways in which a rule applies at one place, the node that computes its first output.
std::vector<Match> matches_at(const Graph& graph, const GraphNode& node,
                              const std::shared_ptr<const Pattern>& pattern,
                              const Surroundings& surroundings);

/// All places where rules apply, by place, then by rule:
///
/// - operands of commutative operators are tried in both orders
/// - attributes have to mean the same; sizes have to be equal, as numbers or as symbols
/// - no value inside the source is used elsewhere or an output of the graph
/// - the guard holds; one that cannot be decided does not
std::vector<Match> matches(const Graph& graph, const RuleSet& rules);

}  // namespace tessera::rules
