#include "tessera/ir/same_graph.h"

#include <algorithm>

namespace tessera {
namespace {

/// Simultaneous traversal of both graphs from their outputs, pair by pair.
class GraphComparison {
 public:
  GraphComparison(const Graph& a, const Graph& b) : a_(a), b_(b), other_(a.value_count()) {}

  bool run() {
    if (a_.inputs().size() != b_.inputs().size() || a_.outputs().size() != b_.outputs().size())
      return false;
    for (std::size_t i = 0; i < a_.inputs().size(); ++i) {
      if (a_.type(a_.inputs()[i]) != b_.type(b_.inputs()[i])) return false;
      other_[a_.inputs()[i].index] = b_.inputs()[i];
    }
    if (!push(a_.outputs(), b_.outputs())) return false;
    while (!open_.empty()) {
      const auto [x, y] = open_.back();
      open_.pop_back();
      if (!same_value(x, y)) return false;
    }
    return true;
  }

 private:
  bool push(std::span<const ValueId> xs, std::span<const ValueId> ys) {
    if (xs.size() != ys.size()) return false;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (xs[i].present() != ys[i].present()) return false;
      if (xs[i].present()) open_.emplace_back(xs[i], ys[i]);
    }
    return true;
  }

  bool same_value(ValueId x, ValueId y) {
    if (other_[x.index].present()) return other_[x.index] == y;
    // Constants are the same by content: several of one graph may be one of the other.
    const Tensor *p = a_.constant(x), *q = b_.constant(y);
    if (p != nullptr || q != nullptr) return p != nullptr && q != nullptr && same_tensor(*p, *q);
    const GraphNode *m = a_.producer(x), *n = b_.producer(y);
    if (m == nullptr || n == nullptr || m->op != n->op || m->attrs != n->attrs) return false;
    const auto made = a_.outputs(*m), others = b_.outputs(*n);
    if (made.size() != others.size()) return false;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if ((made[i] == x) != (others[i] == y)) return false;
      other_[made[i].index] = others[i];
    }
    const auto same_subgraph = [](const auto& p, const auto& q) {
      return p == q || same_graph(*p, *q);
    };
    return a_.type(x) == b_.type(y) &&
           std::ranges::equal(a_.subgraphs(*m), b_.subgraphs(*n), same_subgraph) &&
           push(a_.inputs(*m), b_.inputs(*n));
  }

  static bool same_tensor(const Tensor& p, const Tensor& q) {
    const bool same_memory = p.bytes.data() == q.bytes.data() && p.bytes.size() == q.bytes.size() &&
                             p.dtype == q.dtype && p.shape == q.shape;
    return same_memory || equal(Attr(p), Attr(q));
  }

  const Graph &a_, &b_;
  std::vector<ValueId> other_;  // by value of a: what it is in b
  std::vector<std::pair<ValueId, ValueId>> open_;
};

}  // namespace

bool same_graph(const Graph& a, const Graph& b) {
  return GraphComparison(a, b).run();
}

}  // namespace tessera
