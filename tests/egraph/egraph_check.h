#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tessera/egraph/saturate.h"
#include "tests/rules/rule_check.h"

namespace tessera::testing {

/// Rules both ways, for e-graphs.
inline egraph::Rewrites rewrites_of(std::string_view text) {
  egraph::Rewrites rewrites;
  for (rules::Rule& rule : rules_of(text)) {
    rule.both_ways = true;
    rewrites.add(rule);
  }
  return rewrites;
}

/// All members of every class have the same value: every node is run on the values of its classes.
/// `inputs` are tensors for the inputs in the order in which they were added.
inline void expect_equal_members(const egraph::EGraph& graph, const std::vector<Tensor>& inputs,
                                 double tolerance) {
  using egraph::ClassId;
  using egraph::EClass;
  using egraph::NodeId;
  std::map<ClassId, Tensor> values;
  for (const ClassId id : graph.classes()) {
    const EClass& c = graph.at(id);
    if (c.input) values[id] = inputs[*c.input];
    if (c.constant == nullptr) continue;
    if (c.input)
      expect_near(*c.constant, values[id], tolerance);
    else
      values[id] = *c.constant;
  }
  std::vector<NodeId> open;
  for (const ClassId id : graph.classes())
    for (const egraph::Member& member : graph.at(id).members)
      if (member.output == 0) open.push_back(member.node);
  for (bool changed = true; changed && !open.empty();) {
    changed = false;
    for (const NodeId id : std::exchange(open, {})) {
      const egraph::ENode& node = graph.node(id);
      std::vector<interp::Value> operands;
      bool ready = true;
      for (const ClassId input : node.inputs) {
        const auto value = values.find(graph.find(input));
        ready &= !input.present() || value != values.end();
        operands.push_back({.datum = value == values.end() ? Datum() : Datum(value->second)});
      }
      if (!ready) {
        open.push_back(id);
        continue;
      }
      changed = true;
      const auto results = interp::run_op<double>(node.op(), node.attrs(), operands,
                                                  static_cast<int>(node.outputs.size()), {});
      ASSERT_TRUE(results) << to_string(results.error());
      for (std::size_t i = 0; i < results->size(); ++i) {
        const Tensor result = (*results)[i].datum.tensor();
        const auto [it, added] = values.try_emplace(graph.find(node.outputs[i]), result);
        if (!added) {
          SCOPED_TRACE(node.op().name + " made by " + graph.origin_name(node.origin));
          expect_near(result, it->second, tolerance);
        }
      }
    }
  }
}

}  // namespace tessera::testing
