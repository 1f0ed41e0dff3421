#include "tessera/passes/recognize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ir/same_graph.h"
#include "tessera/ops/operators.h"
#include "tessera/passes/candidates.h"
#include "tessera/passes/cone.h"
#include "tessera/passes/dce.h"
#include "tessera/prove/claim.h"
#include "tessera/prove/prove.h"
#include "tessera/support/rng.h"

namespace tessera::passes {
namespace {

Candidates elementwise(const Cone& cone, const Graph& graph, const OpDef& op, const Attrs& attrs) {
  Candidates all;
  if (cone.parameters.empty())
    add_candidate(graph, all,
                  [&](GraphBuilder& out, const Vals& in) { return out.op(op, {in[0]}, attrs); });
  return all;
}

/// The axes along which it folds, then the others: inside, they may have changed places.
std::vector<std::size_t> likely_axes(const Cone& cone, std::size_t rank) {
  std::vector<std::size_t> axes(cone.axes.begin(), cone.axes.end());
  for (std::size_t axis = rank; axis-- > 0;)
    if (!cone.axes.contains(axis)) axes.push_back(axis);
  return axes;
}

Candidates along_axis(const Cone& cone, const Graph& graph, const OpDef& op) {
  Candidates all;
  if (!cone.parameters.empty()) return all;
  const std::size_t rank = graph.type(graph.inputs()[0]).shape->size();
  for (const std::size_t axis : likely_axes(cone, rank))
    add_candidate(graph, all, [&](GraphBuilder& out, const Vals& in) {
      const std::int64_t from_end =
          axis + 1 == rank ? -1 : static_cast<std::int64_t>(axis);  // the last one as most write it
      return out.op(op, {in[0]}, {{"axis", from_end}});
    });
  return all;
}

/// Small numbers as they were written before they were rounded; a sum over an axis that is not
/// divided yet has so many times the epsilon of the mean.
std::set<double> likely_epsilons(const Cone& cone, const Shape& shape) {
  std::set<double> all;
  const auto add = [&](double number) {
    if (number < 0.1) all.insert(std::stod(fmt::format("{}", static_cast<float>(number))));
  };
  for (const double number : cone.numbers) add(std::abs(number));
  for (const std::size_t axis : cone.axes)
    if (const auto size = axis < shape.size() ? shape[axis].constant() : std::nullopt)
      for (const double number : cone.numbers) add(std::abs(number) / static_cast<double>(*size));
  return all;
}

/// Over the last axes, with each small number for epsilon and each parameter as scale and bias.
Candidates normalization(const Cone& cone, const Graph& graph, const OpDef& op, bool centred) {
  Candidates all;
  const Shape& shape = *graph.type(graph.inputs()[0]).shape;
  if (cone.parameters.size() > 2) return all;
  const std::set<double> epsilons = likely_epsilons(cone, shape);

  /// The inputs that are scale and bias; 0 for none.
  std::vector<std::pair<std::size_t, std::size_t>> roles = {{0, 0}};
  if (cone.parameters.size() == 1) roles = {{1, 0}, {0, 1}};
  if (cone.parameters.size() == 2) roles = {{1, 2}, {2, 1}};
  for (const std::size_t first : likely_axes(cone, shape.size())) {
    Ints sizes;
    for (std::size_t i = first; i < shape.size(); ++i)
      sizes.push_back(shape[i].constant().value_or(-1));
    if (std::ranges::find(sizes, -1) != sizes.end()) continue;
    const auto axis = -static_cast<std::int64_t>(sizes.size());
    for (const double epsilon : epsilons)
      for (const auto& [scale, bias] : roles) {
        if (bias != 0 && !centred) continue;
        add_candidate(
            graph, all, [&, scale = scale, bias = bias](GraphBuilder& out, const Vals& in) {
              const auto shaped = [&](std::size_t which) {
                const Val& value = in[which];
                return value.rank() == static_cast<int>(sizes.size())
                           ? value
                           : out.op(*op::reshape, {value, out.ints(sizes)});
              };
              const DType dtype = in[0].dtype();
              Vals operands = {
                  in[0], scale != 0 ? shaped(scale)
                                    : out.op(*op::expand, {out.number(1, dtype), out.ints(sizes)})};
              if (bias != 0) operands.push_back(shaped(bias));
              return out.op(op, operands, {{"axis", axis}, {"epsilon", epsilon}});
            });
      }
  }
  return all;
}

/// Entry of the table of recognized forms: the scalar functions that a cone has to apply, those
/// that it may apply besides arithmetic, and the candidates on its inputs.
struct Composite {
  Functions needs, may;
  Candidates (*candidates)(const Cone& cone, const Graph& graph);
};

const std::vector<Composite>& composites() {
  const Functions bounds = functions({Fn::Max, Fn::Min}), root = functions({Fn::Sqrt, Fn::Pow});
  static const std::vector<Composite> all = {
      {kFolds | functions({Fn::Exp}), bounds,
       [](const Cone& cone, const Graph& graph) { return along_axis(cone, graph, *op::softmax); }},
      {kFolds | functions({Fn::Exp, Fn::Log}), bounds,
       [](const Cone& cone, const Graph& graph) {
         return along_axis(cone, graph, *op::log_softmax);
       }},
      {kFolds, root,
       [](const Cone& cone, const Graph& graph) {
         return normalization(cone, graph, *op::layer_normalization, true);
       }},
      {kFolds, root,
       [](const Cone& cone, const Graph& graph) {
         return normalization(cone, graph, *op::rms_normalization, false);
       }},
      {functions({Fn::Erf}), 0,
       [](const Cone& cone, const Graph& graph) {
         return elementwise(cone, graph, *op::gelu, {});
       }},
      {functions({Fn::Tanh}), functions({Fn::Pow}),
       [](const Cone& cone, const Graph& graph) {
         return elementwise(cone, graph, *op::gelu, {{"approximate", "tanh"}});
       }},
      {functions({Fn::Exp}), 0,
       [](const Cone& cone, const Graph& graph) {
         return elementwise(cone, graph, *op::swish, {});
       }},
      {0, bounds,
       [](const Cone& cone, const Graph& graph) {
         return elementwise(cone, graph, *op::hard_swish, {});
       }},
  };
  return all;
}

bool may_be(const Cone& cone, const Composite& composite) {
  const Functions anything =
      functions({Fn::Add, Fn::Sub, Fn::Mul, Fn::Div, Fn::Neg}) | functions({Fn::Pow});
  if ((cone.applied & composite.needs) != composite.needs) return false;
  return (cone.applied & ~(anything | composite.needs | composite.may)) == 0;
}

bool is_proved(const Graph& cone, const Graph& composite) {
  auto claim = prove::claim_of(cone, composite, {});
  if (!claim) return false;
  // Composites take up to 100 steps. Without cases of maxima and signs: these are proofs inside of
  // proofs, and one that fails takes long.
  const prove::Options options{.tries = 3, .most_terms = 400, .most_steps = 200, .cases = false};
  std::string why;
  for (const bool named : {false, true}) {
    claim->claim.named_reals = named;
    if (prove::prove_claim(claim->claim, options, why)) return true;
  }
  return false;
}

constexpr std::int64_t kMostOfOne = 1 << 17;      // elements of an operand that is tried
constexpr std::int64_t kMostOfSeveral = 1 << 13;  // products are slow
constexpr int kAllProofs = -1;

/// Result of a cone on random inputs, to reject candidates before a proof is attempted: a proof
/// that fails takes long.
class Sample {
 public:
  Sample(const Graph& cone, std::int64_t most) {
    Rng rng(1);
    for (const ValueId id : cone.inputs()) {
      const Type& type = cone.type(id);
      std::vector<std::int64_t> sizes;
      for (const Dim& size : *type.shape) sizes.push_back(size.constant().value_or(-1));
      const auto count = element_count(sizes);
      const bool mask = type.dtype == DType::Bool;
      if ((!is_float(type.dtype) && !mask) || !count || *count > most) return;
      Buffer numbers(static_cast<std::size_t>(*count * byte_width(type.dtype)));
      for (std::int64_t i = 0; i < *count; ++i)
        store_number(type.dtype, numbers.data(), i,
                     mask ? (rng.uniform() < 0.75 ? 1 : 0) : 4 * rng.uniform() - 2);
      inputs_.push_back(Tensor{type.dtype, sizes, std::move(numbers).freeze()});
    }
    results_ = results_of(cone);
  }

  bool differs(const Graph& candidate) const {
    const std::vector<double> others = results_.empty() ? results_ : results_of(candidate);
    if (others.size() != results_.size()) return false;  // nothing is known
    double squares = 0, apart = 0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      squares += results_[i] * results_[i];
      apart = std::max(apart, std::abs(others[i] - results_[i]));
    }
    return apart > 0.01 * std::sqrt(squares / static_cast<double>(others.size()));  // not with NaN
  }

 private:
  std::vector<double> results_of(const Graph& graph) const {
    const auto outputs = interp::run(graph, inputs_, {});
    if (!outputs) return {};
    const Tensor& tensor = (*outputs)[0].tensor();
    std::vector<double> numbers;
    for (std::int64_t i = 0, n = element_count(tensor.shape).value_or(0); i < n; ++i)
      numbers.push_back(number_at(tensor, i));
    return numbers;
  }

  std::vector<Datum> inputs_;
  std::vector<double> results_;  // empty: not evaluated
};

/// Compares candidates with a cone: by a random sample first, then by proof.
class CandidateCheck {
 public:
  CandidateCheck(const Graph& cone, std::int64_t most_elements, int most_proofs)
      : cone_(cone), most_elements_(most_elements), proofs_left_(most_proofs) {}

  std::optional<Graph> first_proved(Candidates candidates) {
    for (Graph& candidate : candidates) {
      if (proofs_left_ == 0) break;
      if (!sample_) sample_.emplace(cone_, most_elements_);
      if (sample_->differs(candidate)) continue;
      --proofs_left_;
      if (is_proved(cone_, candidate)) return std::move(candidate);
    }
    return std::nullopt;
  }

 private:
  const Graph& cone_;
  std::int64_t most_elements_;
  int proofs_left_;
  std::optional<Sample> sample_;
};

class Recognition {
 public:
  explicit Recognition(const Graph& graph) : graph_(graph), cones_(graph) {}

  Expected<Graph> run(Changes& changes) {
    for (std::size_t n = graph_.nodes().size(); n-- > 0;)
      if (!covered_.contains(n)) look_at(n, changes);
    return replaced();
  }

  /// The composites that take several values, where those of one are nodes already.
  Expected<Graph> run_several(Changes& changes) {
    for (std::size_t n = graph_.nodes().size(); n-- > 0;)
      if (!covered_.contains(n)) look_at_several(n, changes);
    return replaced();
  }

 private:
  struct Recognized {
    Cone cone;
    const Graph* composite;
  };
  struct Decision {
    Graph cone;
    std::optional<Graph> composite;
  };

  Graph replaced() {
    if (found_.empty()) return graph_;
    return without_dead(rebuild(graph_, [&](Rebuilder& out, const GraphNode& node) {
      const auto it = found_.find(static_cast<std::size_t>(&node - graph_.nodes().data()));
      return it == found_.end() ? out.copy(node) : placed(out, it->second);
    }));
  }

  std::string result_name(std::size_t node) const {
    const ValueId result = graph_.outputs(graph_.nodes()[node])[0];
    return graph_.is_named(result) ? graph_.name(result) : "";
  }

  /// The largest cone that is something.
  void look_at(std::size_t node, Changes& changes) {
    std::optional<Recognized> best;
    for (Cone& cone : cones_.ending_in(node)) {
      if (is_covered(cone)) break;
      if (const Graph* composite = composite_of(cone))
        best = Recognized{std::move(cone), composite};
    }
    if (!best) return;
    const GraphNode& last = best->composite->nodes().back();
    if (best->cone.nodes.size() == 1 && graph_.nodes()[node].op == last.op) return;
    covered_.insert(best->cone.nodes.begin(), best->cone.nodes.end());
    changes.emplace_back(fmt::format("{} of {} nodes", last.op->name, best->cone.nodes.size()),
                         result_name(node));
    found_.emplace(node, *std::move(best));
  }

  /// Recognizes composites of several inputs: attention, rotary embedding. A cone that has the form
  /// of the composite's body already is reported and left as it is.
  void look_at_several(std::size_t node, Changes& changes) {
    const auto named = [&](Cone& cone, const OpDef& op, auto candidates, int most_proofs) {
      if (is_covered(cone)) return false;
      const Graph graph = cone.graph(graph_);
      const Graph* composite = decided(graph, [&] {
        return CandidateCheck(graph, kMostOfSeveral, most_proofs)
            .first_proved(candidates(cone, graph));
      });
      if (composite == nullptr) return false;
      changes.emplace_back(fmt::format("{} of {} nodes", op.name, cone.nodes.size()),
                           result_name(node));
      covered_.insert(cone.nodes.begin(), cone.nodes.end());
      if (composite->nodes().size() < cone.nodes.size())
        found_.emplace(node, Recognized{std::move(cone), composite});
      return true;
    };
    std::vector<Cone> cones = cones_.after_matmuls(node);
    for (auto cone = cones.rbegin(); cone != cones.rend(); ++cone)
      if (named(*cone, *op::attention, attention_candidates, 12)) return;
    if (auto cone = cones_.rotation(node))
      named(*cone, *op::rotary_embedding, rotary_candidates, 6);
  }

  bool is_covered(const Cone& cone) const {
    return std::ranges::any_of(cone.nodes, [&](std::size_t n) { return covered_.contains(n); });
  }

  /// Memoized decision about a cone; equal graphs are decided once. Null: not recognized.
  template <class Decide>
  const Graph* decided(const Graph& graph, const Decide& decide) {
    std::deque<Decision>& alike = decisions_[graph.hash()];
    auto it = std::ranges::find_if(
        alike, [&](const Decision& one) { return same_graph(one.cone, graph); });
    if (it == alike.end()) it = alike.insert(alike.end(), {graph, decide()});
    return it->composite ? &*it->composite : nullptr;
  }

  /// Composite that a cone computes, or null.
  const Graph* composite_of(const Cone& cone) {
    std::vector<const Composite*> likely;
    for (const Composite& composite : composites())
      if (may_be(cone, composite)) likely.push_back(&composite);
    if (likely.empty()) return nullptr;
    const Graph graph = cone.graph(graph_);
    return decided(graph, [&]() -> std::optional<Graph> {
      CandidateCheck check(graph, kMostOfOne, kAllProofs);
      for (const Composite* composite : likely)
        if (auto proved = check.first_proved(composite->candidates(cone, graph))) return proved;
      return std::nullopt;
    });
  }

  Rebuilder::Results placed(Rebuilder& out, const Recognized& found) {
    const Graph& composite = *found.composite;
    std::vector<ValueId> values(composite.value_count());
    values[composite.inputs()[0].index] = out.mapped(found.cone.input);
    for (std::size_t i = 0; i < found.cone.parameters.size(); ++i)
      values[composite.inputs()[i + 1].index] = out.mapped(found.cone.parameters[i]);
    for (const GraphNode& node : composite.nodes()) {
      Graph::NewNode copy = copied_node(composite, node, [&](ValueId id) {
        if (!values[id.index].present()) values[id.index] = out.constant(*composite.constant(id));
        return values[id.index];
      });
      values[composite.outputs(node)[0].index] = out.add(std::move(copy))[0];
    }
    return {values[composite.outputs()[0].index]};
  }

  const Graph& graph_;
  Cones cones_;
  std::set<std::size_t> covered_;  // nodes that go away
  std::map<std::size_t, Recognized> found_;
  std::map<std::uint64_t, std::deque<Decision>> decisions_;  // by the hash of a cone
};

}  // namespace

Expected<Graph> recognized(const Graph& graph, Changes& changes) {
  TESSERA_TRY(const Graph made, Recognition(graph).run(changes));
  return Recognition(made).run_several(changes);
}

}  // namespace tessera::passes
