#include "tessera/egraph/operator_analysis.h"

#include <algorithm>
#include <set>

#include "tessera/rules/meaning.h"
#include "tessera/support/hash.h"

namespace tessera::egraph {
namespace {

bool is_small(const Tensor& tensor) {
  return tensor.count() <= kSmallTensor;
}

}  // namespace

std::size_t OperatorAnalysis::Hash::operator()(const Key& key) const {
  Hasher hasher;
  for (const void* word : key.words) hasher.add(reinterpret_cast<std::uintptr_t>(word));
  return hasher.value();
}

const Application& OperatorAnalysis::of(const OpDef& op, const Attrs& attrs,
                                        std::span<const Operand> operands) {
  Key key{{&op}};
  for (const Operand& operand : operands) {
    key.words.push_back(operand.type);
    key.words.push_back(operand.constant);
  }
  Key whole = key;
  whole.words.push_back(&attrs);
  const Application*& found = known_[std::move(whole)];
  if (found != nullptr) return *found;

  auto& alike = applications_[std::move(key)];
  for (const auto& other : alike)
    if (means(*other, attrs)) return *(found = other.get());
  auto made = std::make_unique<Application>(Application{.op = &op, .attrs = &attrs});
  for (const Operand& operand : operands) {
    if (operand.constant != nullptr && is_small(*operand.constant))
      made->inputs.push_back(constant_info(*operand.constant));
    else if (operand.type != nullptr)
      made->inputs.push_back({.type = *operand.type});
    else
      made->inputs.push_back({.present = false});
  }
  made->commutes = tessera::commutes(op, operands.size());
  made->reads = rules::read_operands(op, attrs, made->inputs);
  return *(found = alike.emplace_back(std::move(made)).get());
}

bool OperatorAnalysis::means(const Application& application, const Attrs& other) {
  if (application.attrs == &other) return true;
  const auto [it, added] = means_.try_emplace(Key{{&application, &other}});
  if (added)
    it->second =
        rules::same_meaning(*application.op, *application.attrs, other, application.inputs);
  return it->second;
}

bool OperatorAnalysis::is_told(const Graph& graph, const std::vector<bool>& told) {
  std::set<ValueId> untold;
  for (std::size_t i = 0; i < told.size(); ++i)
    if (!told[i]) untold.insert(graph.inputs()[i]);
  if (untold.empty()) return true;
  for (const GraphNode& node : graph.nodes()) {
    std::vector<Operand> operands;
    for (const ValueId id : graph.inputs(node)) {
      const Tensor* constant = id.present() ? graph.constant(id) : nullptr;
      operands.push_back(
          {id.present() ? &graph.type(id) : nullptr,
           constant != nullptr && is_small(*constant) ? interned(*constant) : nullptr});
    }
    const Application& application = of(*node.op, *node.attrs, operands);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (application.reads[i] && untold.contains(graph.inputs(node)[i])) return false;
  }
  return std::ranges::none_of(graph.outputs(), [&](ValueId id) { return untold.contains(id); });
}

const Tensor* OperatorAnalysis::interned(const Tensor& tensor) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) hasher.add(static_cast<std::uint64_t>(extent));
  const bool small = is_small(tensor);
  if (small)
    hasher.add(hash_of(Attr(tensor)));
  else
    hasher.add(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()));
  auto& alike = tensors_[hasher.value()];
  for (const auto& other : alike) {
    if (other->dtype != tensor.dtype || other->shape != tensor.shape) continue;
    if (small ? equal(Attr(*other), Attr(tensor)) : other->bytes.data() == tensor.bytes.data())
      return other.get();
  }
  return alike.emplace_back(std::make_unique<const Tensor>(tensor)).get();
}

}  // namespace tessera::egraph
