#include "tessera/ir/graph.h"

#include <memory>

#include "tessera/support/check.h"
#include "tessera/support/hash.h"
#include "tessera/support/intern_table.h"

namespace tessera {
namespace {

/// Address of an equal object that is shared by all graphs of the process.
template <class T>
const T* interned(const T& thing) {
  static InternTable<T>& table = *new InternTable<T>;
  return &table.find_or_add(
      thing.hash(), [&](const T& other) { return other == thing; },
      [&] { return std::make_unique<T>(thing); });
}

/// Hashes a sample of a large weight, so that its pages stay on disk.
void add_sample(Hasher& hasher, std::span<const std::byte> bytes) {
  constexpr std::size_t kWords = 32;
  hasher.add(bytes.size());
  for (std::size_t i = 0; i < kWords; ++i)
    hasher.add_bytes(bytes.subspan((bytes.size() - 8) / (kWords - 1) * i, 8));
}

std::uint64_t hash_of_constant(const Tensor& tensor) {
  constexpr std::size_t kWhole = 4096;
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) hasher.add(static_cast<std::uint64_t>(extent));
  if (tensor.bytes.size() <= kWhole)
    hasher.add_bytes(tensor.bytes.view());
  else
    add_sample(hasher, tensor.bytes.view());
  if (tensor.strings)
    for (const std::string& text : *tensor.strings) hasher.add_text(text);
  return hasher.value();
}

}  // namespace

const Graph::Info& Graph::info(ValueId value) const {
  TESSERA_CHECK(value.index < values_.size(), "value {} of {}", value.index, values_.size());
  return values_[value.index];
}

const Tensor* Graph::constant(ValueId value) const {
  const Info& i = info(value);
  return i.constant == ValueId::kNone ? nullptr : &constants_[i.constant];
}

const GraphNode* Graph::producer(ValueId value) const {
  const Info& i = info(value);
  return i.node == ValueId::kNone ? nullptr : &nodes_[i.node];
}

std::string Graph::name(ValueId value) const {
  const auto it = names_.find(value.index);
  return it != names_.end() ? it->second : "%" + std::to_string(value.index);
}

void Graph::set_name(ValueId value, std::string name) {
  if (name.empty())
    names_.erase(value.index);
  else
    names_.insert_or_assign(value.index, std::move(name));
}

const std::string& Graph::node_name(std::size_t node) const {
  static const std::string kNone;
  const auto it = node_names_.find(static_cast<std::uint32_t>(node));
  return it != node_names_.end() ? it->second : kNone;
}

void Graph::set_node_name(std::size_t node, std::string name) {
  if (!name.empty())
    node_names_.insert_or_assign(static_cast<std::uint32_t>(node), std::move(name));
}

std::uint64_t Graph::hash() const {
  Hasher hasher;
  hasher.add(inputs_.size());
  for (const ValueId output : outputs_) hasher.add(hash(output));
  return hasher.value();
}

ValueId Graph::add_value(Info info, std::string name) {
  const ValueId value{static_cast<std::uint32_t>(values_.size())};
  values_.push_back(info);
  set_name(value, std::move(name));
  return value;
}

ValueId Graph::add_input(const Type& type, std::string name) {
  Hasher hasher;
  hasher.add(inputs_.size());
  hasher.add(type.hash());
  const ValueId value =
      add_value({.type = interned(type), .hash = hasher.value()}, std::move(name));
  inputs_.push_back(value);
  return value;
}

ValueId Graph::add_constant(Tensor tensor, std::string name) {
  const Type type = Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()});
  const Info info{.type = interned(type),
                  .constant = static_cast<std::uint32_t>(constants_.size()),
                  .hash = hash_of_constant(tensor)};
  constants_.push_back(std::move(tensor));
  return add_value(info, std::move(name));
}

std::vector<ValueId> Graph::add_node(NewNode made) {
  GraphNode node;
  node.op = made.op;
  node.attrs = interned(made.attrs);

  Hasher hasher;
  hasher.add_text(node.op->name);
  hasher.add(node.attrs->hash());
  for (const ValueId input : made.inputs) hasher.add(input.present() ? hash(input) : 0);
  for (const auto& subgraph : made.subgraphs) hasher.add(subgraph->hash());
  if (!node.op->pure) hasher.add(nodes_.size());  // every draw is its own

  node.first_input_ = static_cast<std::uint32_t>(lists_.size());
  node.inputs_ = static_cast<std::uint32_t>(made.inputs.size());
  lists_.insert(lists_.end(), made.inputs.begin(), made.inputs.end());
  node.first_subgraph_ = static_cast<std::uint32_t>(subgraphs_.size());
  node.subgraphs_ = static_cast<std::uint32_t>(made.subgraphs.size());
  for (auto& subgraph : made.subgraphs) subgraphs_.push_back(std::move(subgraph));

  std::vector<ValueId> results;
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    Hasher of_result = hasher;
    of_result.add(i);
    results.push_back(add_value({.type = interned(made.outputs[i]),
                                 .node = static_cast<std::uint32_t>(nodes_.size()),
                                 .hash = of_result.value()},
                                {}));
  }
  node.first_output_ = static_cast<std::uint32_t>(lists_.size());
  node.outputs_ = static_cast<std::uint32_t>(results.size());
  lists_.insert(lists_.end(), results.begin(), results.end());
  nodes_.push_back(node);
  return results;
}

void Graph::set_type(ValueId value, const Type& type) {
  TESSERA_CHECK(value.index < values_.size(), "value {} of {}", value.index, values_.size());
  values_[value.index].type = interned(type);
}

}  // namespace tessera
