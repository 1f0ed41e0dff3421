#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"
#include "tessera/ops/body.h"

namespace tessera {

/// Graph construction with type inference:
///
///   GraphBuilder g;
///   Val x = g.input("x", DType::F32, {Dim::symbol("n"), 64});
///   Val w = g.constant(weights, "w");
///   Val y = g.op("relu", {g.op("matmul", {x, w}) + 1.0});
///   Expected<Graph> graph = g.finish({{"y", y}});
///
/// The first error is kept and returned by `finish`; values that are built after it have unknown
/// types.
class GraphBuilder final : public Body {
 public:
  /// `scope` is a prefix that keeps the size symbols that this graph introduces apart from those of
  /// others.
  explicit GraphBuilder(std::string scope = {}) : scope_(std::move(scope)) {}

  Val input(std::string name, DType dtype, Shape shape);
  Val input(std::string name, const ValueInfo& known);
  Val constant(Tensor tensor) override { return constant(std::move(tensor), {}); }
  Val constant(Tensor tensor, std::string name);
  std::optional<Val> find_input(std::string_view name);
  Val named_real(const std::string& name, DType dtype) override;

  Vals call(std::string_view op, const Vals& inputs, const Attrs& attrs, int outputs) override;
  Vals call(const OpDef& op, const Vals& inputs, const Attrs& attrs, int outputs) override;
  Vals scan(const Vals& states, const Vals& elements, const Step& step) override;

  /// Adds the nodes of a graph without control flow on these inputs; returns its outputs, nothing
  /// after an error.
  Vals inlined(const Graph& graph, const Vals& inputs);

  using Subgraphs = std::vector<std::shared_ptr<const Graph>>;
  /// Adds a control-flow node; `results` are the types of its results.
  Vals call_control(const OpDef& op, const Vals& inputs, const Attrs& attrs, Subgraphs subgraphs,
                    const std::vector<Type>& results);

  const Argument& argument(const Val& value) const override;
  const ValueInfo& known(const Val& value) const;
  /// Adds a declared type to what inference knows of a value. A value is refined before it is used.
  void refine(const Val& value, const Type& declared);

  void name(const Val& value, std::string name);
  void name_last_node(std::string name);
  bool failed() const { return error_.has_value(); }
  const std::optional<Diagnostic>& error() const { return error_; }
  void fail(Diagnostic diagnostic) const;

  /// Completes the graph with these outputs (named where a name is given), or returns the first
  /// error.
  Expected<Graph> finish(const std::vector<std::pair<std::string, Val>>& outputs);
  Expected<Graph> finish(const Vals& outputs);

 private:
  Val add(ValueId id, ValueInfo known);
  Dim made_up(std::size_t value, std::size_t axis) const;
  ValueInfo named_sizes(ValueInfo known, std::size_t value) const;
  Vals add_node(const OpDef& op, const Attrs& attrs, const Vals& inputs,
                std::vector<ValueInfo> results, Subgraphs subgraphs = {});

  std::string scope_;
  Graph graph_;
  std::deque<ValueInfo> known_;                            // by value
  mutable std::deque<std::optional<Argument>> arguments_;  // by value, built on demand
  mutable std::optional<Diagnostic> error_;
};

}  // namespace tessera
