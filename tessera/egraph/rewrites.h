#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/egraph/egraph.h"
#include "tessera/rules/occurrence.h"

namespace tessera::egraph {

/// An e-graph as a view for the matcher (`rules/occurrence.h`): values are classes, and every
/// member of a class produces it.
class EGraphView {
 public:
  using Value = ClassId;
  using Node = const ENode*;

  explicit EGraphView(const EGraph& graph) : graph_(&graph) {}

  const Type& type(ClassId value) const { return *graph_->at(value).type; }
  const Tensor* constant(ClassId value) const { return graph_->at(value).constant; }
  bool is_constant(ClassId value) const { return graph_->at(value).from_constants; }
  bool equal(ClassId a, ClassId b) const { return graph_->equal(a, b); }
  bool may_be_result_of(ClassId, const OpDef&) const { return true; }

  template <class Visit>
  void for_each_producer(ClassId value, std::size_t output, const Visit& visit) const {
    for (const Member& member : graph_->at(value).members)
      if (member.output == output && !visit(&graph_->node(member.node))) return;
  }
  template <class Visit>
  void for_each_node(const OpDef& op, const Visit& visit) const {
    for (const NodeId id : graph_->nodes_of(op))
      if (graph_->is_live(id) && !visit(&graph_->node(id))) return;
  }

  const OpDef& op(Node node) const { return node->op(); }
  const Attrs& attrs(Node node) const { return node->attrs(); }
  const std::vector<ClassId>& inputs(Node node) const { return node->inputs; }
  const std::vector<ClassId>& outputs(Node node) const { return node->outputs; }
  bool has_subgraphs(Node node) const { return !node->subgraphs.empty(); }
  const std::vector<ValueInfo>& known_inputs(Node node) const { return node->application->inputs; }
  bool means(Node node, const Attrs& other) const {
    return graph_->analysis().means(*node->application, other);
  }

 private:
  const EGraph* graph_;
};

/// Rewrite rule in one direction, for e-graphs.
class Rewrite {
 public:
  /// The source of the rule is the result of a node, and it has no `*s`.
  explicit Rewrite(std::shared_ptr<const rules::Pattern> pattern) : pattern_(std::move(pattern)) {}

  const rules::Rule& rule() const { return pattern_->rule; }
  const OpDef& root() const { return pattern_->root(); }

  /// Match of the source by operators and operands; sizes, attributes and guards are checked later.
  using Match = rules::Occurrence<EGraphView>;
  /// Calls the visitor with every match whose first output is in this class, until it returns
  /// false.
  template <class Visitor>
  void match(const EGraph& graph, ClassId root, const Visitor& visitor) const {
    rules::for_each_occurrence(*pattern_, EGraphView(graph), root, visitor);
  }

  /// Checks sizes, attributes and the guard, adds the target and unites its outputs with those of
  /// the source; returns whether it did.
  bool apply(EGraph& graph, const Match& match, std::uint32_t origin);

 private:
  /// Target of a rule on values of certain types; none where the rule does not apply.
  using Target = std::optional<Graph>;
  Target target_on(EGraph& graph, const Match& match) const;

  std::shared_ptr<const rules::Pattern> pattern_;

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
