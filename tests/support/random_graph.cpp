#include "tests/support/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "tessera/ir/builder.h"
#include "tessera/ir/text.h"
#include "tessera/support/rng.h"

namespace tessera::testing {
namespace {

/// A node that may fit.
struct Proposal {
  std::string op;
  Vals inputs;
  Attrs attrs = {};
  int outputs = 1;
};

Tensor random_tensor(Rng& rng, std::vector<std::int64_t> shape) {
  std::vector<float> elements(static_cast<std::size_t>(element_count(shape).value()));
  for (float& element : elements) element = static_cast<float>(2 * rng.uniform() - 1);
  return Tensor::of<float>(DType::F32, std::move(shape), elements);
}

class Generator {
 public:
  Generator(std::uint64_t seed, int max_nodes, Extents extents)
      : rng_(seed), many_(extents == Extents::Many), nodes_(1 + below(max_nodes)) {}

  Graph run() {
    for (int i = 1 + below(3); i > 0; --i) fresh(below(5));
    // Most proposals fit; a bound on the attempts keeps an unlucky seed from going on for ever.
    for (int attempt = 0; nodes_ > 0 && attempt < 100; ++attempt) try_to_add(propose());
    Vals outputs;
    for (int i = 1 + below(2); i > 0 && !values_.empty(); --i) {
      outputs.push_back(values_.back());
      values_.pop_back();
    }
    return *graph_.finish(outputs);
  }

 private:
  using Propose = Proposal (Generator::*)();
  static const std::vector<Propose> kProposals;

  int below(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  Proposal propose() { return (this->*one_of(kProposals))(); }

  Ints random_shape(int rank) {
    Ints shape;
    for (int i = 0; i < rank; ++i)
      shape.push_back(many_ ? one_of<std::int64_t>({1, 2, 5, 8, 16, 17, 33, 70})
                            : one_of<std::int64_t>({1, 1, 2, 3, 4}));
    return shape;
  }
  static Ints shape_of(const Val& value) {
    Ints shape;
    for (const Dim& dim : value.argument().type.shape) shape.push_back(dim.constant().value());
    return shape;
  }

  void keep(const Val& value, const std::string& name) {
    if (below(4) != 0) graph_.name(value, name + std::to_string(value.id()));
    values_.push_back(value);
  }
  Val fresh(int rank) {
    const Ints shape = random_shape(rank);
    keep(graph_.input({}, DType::F32, {shape.begin(), shape.end()}), "x");
    return values_.back();
  }
  Val constant(Ints shape) {
    const Val value = graph_.constant(random_tensor(rng_, std::move(shape)));
    if (below(2) == 0) graph_.name(value, "w." + std::to_string(value.id()));
    return value;
  }
  Val ints(const Ints& integers) { return graph_.ints(integers); }

  /// One of the tensors with so many axes.
  Val with_rank(int least, int most = 99) {
    Vals fitting;
    for (const Val& value : values_)
      if (value.rank() >= least && value.rank() <= most) fitting.push_back(value);
    return fitting.empty() ? fresh(least) : one_of(fitting);
  }
  Val any() { return with_rank(0); }
  int axis_of(const Val& x) { return below(2 * x.rank()) - x.rank(); }

  void try_to_add(const Proposal& proposal) {
    const OpDef* op = find_op(proposal.op);
    ASSERT_NE(op, nullptr) << proposal.op;
    std::vector<ValueInfo> known;
    for (const Val& input : proposal.inputs)
      known.push_back(input.present() ? graph_.known(input) : ValueInfo{.present = false});
    const auto attrs = completed(*op, proposal.attrs);
    if (!attrs) return;
    const auto inferred = infer(*op, *attrs, known);
    if (!inferred || inferred->size() < static_cast<std::size_t>(proposal.outputs)) return;
    for (const ValueInfo& result : *inferred) {
      if (!result.type.is_ranked_tensor()) return;
      const std::optional<std::int64_t> count = product(*result.type.shape).constant();
      if (!count || *count == 0 || *count > (many_ ? 100'000 : 4096)) return;
    }
    for (const Val& result : graph_.call(*op, proposal.inputs, proposal.attrs, proposal.outputs)) {
      if (result.dtype() == DType::F32)
        keep(result, "a");
      else
        graph_.name(result, "not a float " + std::to_string(result.id()));
    }
    if (below(4) == 0) graph_.name_last_node("node/" + std::to_string(nodes_));
    --nodes_;
  }

  Proposal unary() {
    return {one_of<std::string>({"relu", "neg", "tanh", "sigmoid", "sin", "cos", "erf", "softplus",
                                 "identity", "gelu", "sign", "softsign", "elu"}),
            {any()}};
  }
  Proposal attributed() {
    const Val x = any();
    return one_of<Proposal>({{"leaky_relu", {x}, {{"alpha", 0.1 * below(10)}}},
                             {"celu", {x}, {{"alpha", 1.5}}},
                             {"cast", {x}, {{"to", "f32"}}},
                             {"clip", {x, Val{}, constant({})}}});
  }
  Proposal binary() {
    return {one_of<std::string>({"add", "sub", "mul", "max", "min"}), {any(), any()}};
  }
  Proposal with_constant() {
    const Val x = any();
    Ints shape = shape_of(x);
    if (!shape.empty()) shape.erase(shape.begin());
    return {one_of<std::string>({"add", "mul"}), {x, constant(std::move(shape))}};
  }
  Proposal choice() {
    const Val x = any(), y = any();
    return {"where", {graph_.op("greater", {x, graph_.number(0, DType::F32)}), x, y}};
  }
  Proposal matmul() {
    const Val x = with_rank(1);
    if (many_ && x.rank() > 1 && below(2) == 0) {  // of two that are computed
      Ints order(static_cast<std::size_t>(x.rank()));
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      return {"matmul", {x, graph_.op("transpose", {x}, {{"perm", order}})}};
    }
    return {"matmul", {x, constant({shape_of(x).back(), 1 + below(many_ ? 90 : 4)})}};
  }
  Proposal conv() {
    const Val x = with_rank(3, 4);
    Ints window(static_cast<std::size_t>(x.rank()), 1 + below(2));
    window[0] = 1 + below(3);
    window[1] = shape_of(x)[1];
    const auto spatial = static_cast<std::size_t>(x.rank() - 2);
    const Ints pads(2 * spatial, below(2));
    if (!many_) return {"conv", {x, constant(window)}, {{"pads", pads}}};
    std::fill(window.begin() + 2, window.end(), 1 + below(3));
    const std::int64_t groups = below(3) == 0 ? window[1] : window[1] % 2 == 0 ? 1 + below(2) : 1;
    window[0] = groups * (1 + below(groups > 2 ? 2 : 40));
    window[1] /= groups;
    return {"conv",
            {x, constant(window)},
            {{"pads", pads},
             {"group", groups},
             {"strides", Ints(spatial, 1 + below(2))},
             {"dilations", Ints(spatial, 1 + below(5) / 4)}}};
  }
  Proposal pool() {
    const Val x = with_rank(3, 4);
    const Ints window(static_cast<std::size_t>(x.rank() - 2), 1 + below(2));
    return {one_of<std::string>({"max_pool", "average_pool"}), {x}, {{"kernel_shape", window}}};
  }
  Proposal reduction() {
    const Val x = with_rank(1);
    return {one_of<std::string>({"reduce_sum", "reduce_max", "reduce_mean", "reduce_min"}),
            {x, ints({axis_of(x)})},
            {{"keepdims", below(2)}}};
  }
  Proposal reshape() {
    const Val x = any();
    Ints shape = shape_of(x);
    switch (below(3)) {
      case 0: shape = {-1}; break;
      case 1: shape.insert(shape.begin() + below(x.rank() + 1), 1); break;
      default: std::ranges::reverse(shape); break;
    }
    return {"reshape", {x, ints(shape)}};
  }
  Proposal transpose() {
    const Val x = any();
    Ints order(static_cast<std::size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
    return {"transpose", {x}, {{"perm", order}}};
  }
  Proposal concat() {
    const Val x = with_rank(1);
    const int axis = below(x.rank());
    Ints shape = shape_of(x);
    shape[static_cast<std::size_t>(axis)] = 1 + below(3);
    return {"concat", {x, constant(shape), x}, {{"axis", axis}}};
  }
  Proposal slice() {
    const Val x = with_rank(1);
    const Ints axis = {axis_of(x)};
    if (below(2) == 0) return {"slice", {x, ints({below(2)}), ints({below(5)}), ints(axis)}};
    return {"slice", {x, ints({-1}), ints({-9}), ints(axis), ints({-1 - below(2)})}};
  }
  Proposal split() {
    const Val x = with_rank(1);
    const int axis = below(x.rank());
    const std::int64_t size = shape_of(x)[static_cast<std::size_t>(axis)];
    return {"split", {x, ints({1, size - 1})}, {{"axis", axis}}, 2};
  }
  Proposal gather() {
    const Val x = with_rank(1);
    return {"gather", {x, ints({0, -1})}, {{"axis", axis_of(x)}}};
  }
  Proposal pad() {
    const Val x = with_rank(1);
    Ints pads(2 * static_cast<std::size_t>(x.rank()));
    for (std::int64_t& p : pads) p = below(2);
    return {"pad", {x, ints(pads)}};
  }
  Proposal squeeze() {
    const Val x = any();
    if (below(2) == 0) return {"squeeze", {x}};
    return {"unsqueeze", {x, ints({below(x.rank() + 1)})}};
  }
  Proposal softmax() {
    const Val x = with_rank(1);
    return {one_of<std::string>({"softmax", "log_softmax"}), {x}, {{"axis", axis_of(x)}}};
  }
  Proposal normalization() {
    const Val x = with_rank(1);
    const Val scale = constant({shape_of(x).back()});
    return {"layer_normalization", {x, scale, below(2) == 0 ? Val{} : scale}};
  }
  Proposal top_k() {
    const Val x = with_rank(1);
    return {"top_k", {x, ints({1})}, {{"axis", axis_of(x)}}, 2};
  }

  Rng rng_;
  bool many_;
  GraphBuilder graph_;
  Vals values_;  // those of f32
  int nodes_;
};

const std::vector<Generator::Propose> Generator::kProposals = {
    &Generator::unary,     &Generator::unary,        &Generator::attributed,    &Generator::binary,
    &Generator::binary,    &Generator::choice,       &Generator::with_constant, &Generator::matmul,
    &Generator::conv,      &Generator::pool,         &Generator::reduction,     &Generator::reshape,
    &Generator::transpose, &Generator::concat,       &Generator::slice,         &Generator::split,
    &Generator::gather,    &Generator::pad,          &Generator::squeeze,       &Generator::softmax,
    &Generator::top_k,     &Generator::normalization};

}  // namespace

Graph random_graph(std::uint64_t seed, int max_nodes, Extents extents) {
  return Generator(seed, max_nodes, extents).run();
}

void for_each_random_graph(const RandomGraphs& which, const std::function<void(const Graph&)>& f) {
  Rng seeds(which.seed);
  for (int i = 0; i < which.count; ++i) {
    const std::uint64_t seed = seeds.next();
    const Graph graph = random_graph(seed, which.max_nodes, which.extents);
    SCOPED_TRACE("random graph " + std::to_string(seed) + ":\n" + to_text(graph));
    try {
      f(graph);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();  // with the graph
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph.type(id).shape.value()) shape.push_back(dim.constant().value());
    inputs.push_back(random_tensor(rng, std::move(shape)));
  }
  return inputs;
}

}  // namespace tessera::testing
