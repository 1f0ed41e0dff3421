#include "tessera/passes/stack_matmuls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// A matmul with a constant matrix, and the constant row that is added to it, if there is one.
struct StackableMatmul {
  std::size_t node = 0;  // of the matmul
  std::size_t last = 0;  // that of the addition, or itself
  const Tensor* matrix = nullptr;
  const Tensor* row = nullptr;
};

/// Finds matmuls of one operand that can be stacked.
class StackableMatmuls {
 public:
  explicit StackableMatmuls(const Graph& graph) : graph_(graph), reader_(graph.value_count()) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      for (const ValueId input : graph.inputs(graph.nodes()[n]))
        if (input.present()) count(input, n);
    for (const ValueId output : graph.outputs()) {
      count(output, std::nullopt);
      results_.insert(output.index);
    }
  }

  /// Groups of matmuls to stack, by their first node.
  std::map<std::size_t, std::vector<StackableMatmul>> stacks() const {
    std::map<std::tuple<std::uint32_t, Writer::Sizes, bool>, std::vector<StackableMatmul>> alike;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n)
      // Results of the graph keep all of their bits.
      if (const auto matmul = matmul_of(n);
          matmul && !results_.contains(graph_.outputs(graph_.nodes()[matmul->last])[0].index))
        alike[{graph_.inputs(graph_.nodes()[n])[0].index, matmul->matrix->shape,
               matmul->row != nullptr}]
            .push_back(*matmul);
    std::map<std::size_t, std::vector<StackableMatmul>> result;
    for (auto& [key, matmuls] : alike)
      if (matmuls.size() > 1) result.emplace(matmuls[0].node, std::move(matmuls));
    return result;
  }

 private:
  /// Number of readers of a value, and the last one.
  struct Readers {
    int count = 0;
    std::optional<std::size_t> node = {};
  };
  void count(ValueId value, std::optional<std::size_t> node) {
    ++reader_[value.index].count;
    reader_[value.index].node = node;
  }

  std::optional<StackableMatmul> matmul_of(std::size_t n) const {
    const GraphNode& node = graph_.nodes()[n];
    if (node.op != op::matmul) return std::nullopt;
    const auto inputs = graph_.inputs(node);
    const Tensor* matrix = graph_.constant(inputs[1]);
    const auto shape = static_shape(graph_.type(inputs[0]));
    if (matrix == nullptr || matrix->shape.size() != 2 || matrix->dtype != DType::F32 ||
        matrix->count() == 0 || !shape || shape->size() < 2 ||
        graph_.constant(inputs[0]) != nullptr)
      return std::nullopt;
    StackableMatmul matmul{.node = n, .last = n, .matrix = matrix};
    const Readers& reader = reader_[graph_.outputs(node)[0].index];
    if (reader.count != 1 || !reader.node) return matmul;
    const GraphNode& next = graph_.nodes()[*reader.node];
    if (next.op != op::add) return matmul;
    for (const ValueId other : graph_.inputs(next)) {
      const Tensor* row = graph_.constant(other);
      if (row == nullptr || row->shape.empty() || row->shape.back() != matrix->shape[1] ||
          row->count() != matrix->shape[1] || row->shape.size() > shape->size() ||
          row->dtype != DType::F32)
        continue;
      matmul.row = row;
      matmul.last = *reader.node;
    }
    return matmul;
  }

  const Graph& graph_;
  std::vector<Readers> reader_;      // by value
  std::set<std::uint32_t> results_;  // values that the graph gives
};

/// Tensors of one size, one after the other, as [how many, 1, …, shape].
template <class Each>
Tensor stacked(const std::vector<StackableMatmul>& matmuls, const Writer::Sizes& shape,
               std::size_t rank, const Each& each) {
  Writer::Sizes all(rank + 1, 1);
  all[0] = static_cast<std::int64_t>(matmuls.size());
  std::copy(shape.begin(), shape.end(), all.end() - static_cast<std::ptrdiff_t>(shape.size()));
  const std::size_t bytes = each(matmuls[0])->bytes.size();
  Buffer buffer(bytes * matmuls.size());
  for (std::size_t i = 0; i < matmuls.size(); ++i)
    std::copy_n(each(matmuls[i])->bytes.data(), bytes, buffer.data() + i * bytes);
  return {DType::F32, all, std::move(buffer).freeze()};
}

}  // namespace

Graph stack_matmuls(const Graph& graph) {
  const auto stacks = StackableMatmuls(graph).stacks();
  if (stacks.empty()) return graph;
  std::map<std::size_t, ValueId> made;  // by the last node of each matmul
  std::size_t n = 0;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
    const std::size_t own = n++;
    if (const auto it = stacks.find(own); it != stacks.end()) {
      const std::vector<StackableMatmul>& matmuls = it->second;
      const ValueId operand = graph.inputs(node)[0];
      const Writer::Sizes shape = *static_shape(graph.type(graph.outputs(node)[0]));
      Writer writer(out, DType::F32);
      Writer::Sizes all = shape;
      all.insert(all.begin(), static_cast<std::int64_t>(matmuls.size()));
      ValueId value =
          writer.add(op::matmul, {},
                     {out.mapped(operand),
                      writer.constant(stacked(matmuls, matmuls[0].matrix->shape, shape.size(),
                                              [](const StackableMatmul& p) { return p.matrix; }))},
                     all);
      if (matmuls[0].row != nullptr)
        value = writer.add(
            op::add, {},
            {value, writer.constant(stacked(matmuls, {shape.back()}, shape.size(),
                                            [](const StackableMatmul& p) { return p.row; }))},
            all);
      Writer::Sizes one = all;
      one[0] = 1;
      for (std::size_t i = 0; i < matmuls.size(); ++i) {
        const auto first = static_cast<std::int64_t>(i);
        const ValueId part =
            writer.add(op::slice, {},
                       {value, writer.integers({first}), writer.integers({first + 1}),
                        writer.integers({0}), writer.integers({1})},
                       one);
        made.emplace(matmuls[i].last, writer.reshaped(part, shape));
      }
    }
    if (const auto it = made.find(own); it != made.end()) return {it->second};
    const bool is_part = std::ranges::any_of(stacks, [&](const auto& entry) {
      return std::ranges::any_of(entry.second,
                                 [&](const StackableMatmul& p) { return p.node == own; });
    });
    if (is_part) return Rebuilder::Results(1);
    return out.copy(node);
  });
}

}  // namespace tessera::passes
