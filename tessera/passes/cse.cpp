#include "tessera/passes/cse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

namespace tessera::passes {
namespace {

/// Value numbering: a hash proposes, a comparison decides.
class CseRewrite {
 public:
  explicit CseRewrite(Changes& changes) : changes_(&changes) {}

  std::optional<Rewriter::Results> operator()(Rewriter& out, std::size_t index) {
    const Graph& graph = out.made();
    const GraphNode& node = graph.nodes()[index];
    if (!node.op->pure || graph.outputs(node).empty()) return std::nullopt;
    std::vector<std::uint32_t>& like = by_hash_[graph.hash(graph.outputs(node)[0])];
    for (const std::uint32_t other : like) {
      if (!is_same(graph, node, graph.nodes()[other])) continue;
      changes_->emplace_back(fmt::format("{} deduplicated", node.op->name), out.where());
      const auto results = graph.outputs(graph.nodes()[other]);
      return Rewriter::Results(results.begin(), results.end());
    }
    like.push_back(static_cast<std::uint32_t>(index));
    return std::nullopt;
  }

 private:
  static bool is_same(const Graph& graph, const GraphNode& a, const GraphNode& b) {
    const auto same_value = [&](ValueId x, ValueId y) {
      if (x == y) return true;
      if (!x.present() || !y.present()) return false;
      const Tensor *p = graph.constant(x), *q = graph.constant(y);
      return p != nullptr && q != nullptr && equal(Attr(*p), Attr(*q));
    };
    const auto same_type = [&](ValueId x, ValueId y) { return graph.type(x) == graph.type(y); };
    return a.op == b.op && a.attrs == b.attrs &&
           std::ranges::equal(graph.outputs(a), graph.outputs(b), same_type) &&
           std::ranges::equal(graph.inputs(a), graph.inputs(b), same_value) &&
           std::ranges::equal(graph.subgraphs(a), graph.subgraphs(b));
  }

  Changes* changes_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;  // looked up only
};

}  // namespace

Rewriter::Rewrite cse_rewrite(Changes& changes) {
  return [state = std::make_shared<CseRewrite>(changes)](Rewriter& out, std::size_t node) {
    return (*state)(out, node);
  };
}

}  // namespace tessera::passes
