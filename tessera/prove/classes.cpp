#include "tessera/prove/classes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <ranges>

#include "tessera/ir/infer.h"
#include "tessera/support/hash.h"

namespace tessera::prove {
namespace {

/// What a key is about comes first, so that keys of different kinds differ.
enum HashKind : std::uint64_t { kBound, kSizes, kNode, kMemory };

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

bool same_content(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.strings || b.strings) return a.strings && b.strings && *a.strings == *b.strings;
  return a.bytes.size() == b.bytes.size() &&
         (a.bytes.data() == b.bytes.data() || a.bytes.size() == 0 ||
          std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

std::size_t Numbering::Hash::operator()(const Key& key) const {
  Hasher hasher;
  for (const std::uint64_t word : key) hasher.add(word);
  return hasher.value();
}

ClassId Numbering::keyed(Key key) {
  const auto [it, is_new] = by_key_.emplace(std::move(key), next_);
  if (is_new) ++next_;
  return it->second;
}

std::uint64_t Numbering::text(const std::string& text) {
  return texts_.emplace(text, texts_.size()).first->second;
}

ClassId Numbering::constant(const Tensor& tensor) {
  // Weights are numbered more than once, and reading all their bytes takes long.
  Key memory{kMemory, address(tensor.bytes.data()), tensor.bytes.size(),
             static_cast<std::uint64_t>(tensor.dtype)};
  memory.insert(memory.end(), tensor.shape.begin(), tensor.shape.end());
  const bool plain = !tensor.strings && tensor.bytes.size() > 0;
  if (const auto it = by_key_.find(memory); plain && it != by_key_.end()) return it->second;
  const ClassId id = by_content(tensor);
  if (plain) {
    by_key_.emplace(std::move(memory), id);
    kept_.push_back(tensor);
  }
  return id;
}

ClassId Numbering::by_content(const Tensor& tensor) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) hasher.add(static_cast<std::uint64_t>(extent));
  // A sample of large ones: what is found by it is compared byte by byte.
  constexpr std::size_t kWhole = 1 << 14, kSamples = 64, kSample = 64;
  const auto bytes = tensor.bytes.view();
  if (bytes.size() <= kWhole) {
    hasher.add_bytes(bytes);
  } else {
    for (std::size_t i = 0; i < kSamples; ++i)
      hasher.add_bytes(bytes.subspan(i * ((bytes.size() - kSample) / (kSamples - 1)), kSample));
  }
  std::vector<Constant>& known = constants_[hasher.value()];
  for (const Constant& other : known)
    if (same_content(other.tensor, tensor)) return other.id;
  known.push_back({tensor, fresh()});
  return known.back().id;
}

ClassId Numbering::sizes(const Type& type, const std::vector<Dim>& value) {
  std::string all = to_string(type);
  for (const Dim& dim : value) all += " " + dim.to_string();
  return keyed({kSizes, text(all)});
}

std::vector<ClassId> Numbering::function(const Graph& graph) {
  std::vector<ClassId> classes(graph.value_count());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    classes[graph.inputs()[i].index] = keyed({kBound, i});
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* tensor = graph.constant({i})) classes[i] = constant(*tensor);
  for (const GraphNode& node : graph.nodes()) {
    std::vector<ClassId> operands;
    for (const ValueId id : graph.inputs(node))
      operands.push_back(id.present() ? classes[id.index] : kNoClass);
    const std::vector<ClassId> made = results(graph, node, operands);
    for (std::size_t i = 0; i < made.size(); ++i) classes[graph.outputs(node)[i].index] = made[i];
  }
  std::vector<ClassId> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(classes[id.index]);
  return outputs;
}

std::vector<ClassId> Numbering::results(const Graph& graph, const GraphNode& node,
                                        std::span<const ClassId> operands) {
  Key key{kNode, address(node.op), address(node.attrs), node.op->pure ? 0 : 1 + fresh(),
          operands.size()};
  key.insert(key.end(), operands.begin(), operands.end());
  for (const auto& subgraph : graph.subgraphs(node)) {
    const std::vector<ClassId> meaning = function(*subgraph);
    key.push_back(meaning.size());
    key.insert(key.end(), meaning.begin(), meaning.end());
  }
  std::vector<ClassId> classes;
  const auto outputs = graph.outputs(node);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Key of_result = key;  // some operators tell by the number of results what each of them is
    of_result.insert(of_result.end(), {outputs.size(), i});
    classes.push_back(keyed(std::move(of_result)));
  }
  return classes;
}

Pairing::Pairing(Prepared source, Prepared target)
    : halves_{Half{.prepared = std::move(source)}, Half{.prepared = std::move(target)}} {
  for (std::size_t i = 0; i < graph(Side::Source).inputs().size(); ++i)
    inputs_.push_back(numbering_.fresh());
}

void Pairing::number(Side side, const std::function<void(ValueId)>& unmatched) {
  const Graph& graph = half(side).prepared.graph;
  const std::vector<bool>& live = half(side).prepared.live;
  half(side).classes.assign(graph.value_count(), kNoClass);
  half(side).members.clear();
  half(side).moved.clear();
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    assign(side, graph.inputs()[i], inputs_[i]);
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* tensor = graph.constant({i}); tensor != nullptr && live[i]) {
      assign(side, {i}, numbering_.constant(*tensor));
      if (unmatched && !paired(of(side, {i}))) unmatched({i});
    }
  // `unmatched` may derive values of this graph, which are numbered as they are made.
  const std::size_t nodes = graph.nodes().size();
  for (std::size_t n = 0; n < nodes; ++n) {
    const GraphNode node = graph.nodes()[n];
    const std::vector<ValueId> outputs(graph.outputs(node).begin(), graph.outputs(node).end());
    if (std::ranges::none_of(outputs, [&](ValueId id) { return live[id.index]; })) continue;
    std::vector<ClassId> operands;
    for (const ValueId id : graph.inputs(node)) operands.push_back(of(side, id));
    const std::vector<ClassId> made = numbering_.results(graph, node, operands);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto& sizes = half(side).prepared.sizes[outputs[i].index];
      assign(side, outputs[i], sizes ? numbering_.sizes(graph.type(outputs[i]), *sizes) : made[i]);
      if (!live[outputs[i].index] || paired(of(side, outputs[i]))) continue;
      if (const auto same = class_by_origins(side, outputs[i]))
        assign(side, outputs[i], *same);
      else if (unmatched)
        unmatched(outputs[i]);
    }
  }
}

std::optional<ClassId> Pairing::class_by_origins(Side side, ValueId value) {
  Half &mine = half(side), &theirs = half(other(side));
  if (theirs.members.empty()) return std::nullopt;  // not numbered yet
  for (Half* one : {&mine, &theirs})
    if (!one->origins) one->origins.emplace(one->prepared.graph);
  const ValueId root = mine.origins->root(value);
  if (root == value) return std::nullopt;
  if (theirs.moved.empty())
    for (std::uint32_t i = 0; i < theirs.prepared.live.size(); ++i)
      if (theirs.prepared.live[i] && theirs.classes[i] != kNoClass)
        theirs.moved[theirs.classes[theirs.origins->root({i}).index]].push_back({i});
  const auto candidates = theirs.moved.find(mine.classes[root.index]);
  if (candidates == theirs.moved.end()) return std::nullopt;
  // The last of several candidates has passed through the most data movement, like this value.
  for (const ValueId candidate : candidates->second | std::views::reverse) {
    if (theirs.prepared.graph.type(candidate) != mine.prepared.graph.type(value)) continue;
    const Tensor *own = mine.origins->origins(value), *other = theirs.origins->origins(candidate);
    if (own == nullptr) return std::nullopt;
    if (other != nullptr && same_content(*own, *other)) return theirs.classes[candidate.index];
  }
  return std::nullopt;
}

std::optional<ValueId> Pairing::member(Side side, ClassId id) const {
  const auto& members = half(side).members;
  const auto it = members.find(id);
  return it != members.end() ? std::optional(it->second) : std::nullopt;
}

bool Pairing::paired(ClassId id) const {
  return std::ranges::all_of(kSides, [&](Side side) { return half(side).members.contains(id); });
}

void Pairing::assign(Side side, ValueId value, ClassId id) {
  half(side).classes[value.index] = id;
  half(side).members.emplace(id, value);
}

std::optional<ValueId> Pairing::derive(Side side, const OpDef& op, const Attrs& attrs,
                                       const std::vector<ValueId>& operands) {
  Half& mine = half(side);
  Graph& graph = mine.prepared.graph;
  std::vector<ValueInfo> known_operands;
  std::vector<ClassId> classes;
  for (const ValueId id : operands) {
    classes.push_back(of(side, id));
    if (!id.present())
      known_operands.push_back({.present = false});
    else if (const Tensor* constant = graph.constant(id))
      known_operands.push_back(constant_info(*constant));
    else
      known_operands.push_back({.type = graph.type(id), .value = mine.prepared.sizes[id.index]});
  }
  const auto complete = completed(op, attrs);
  if (!complete) return std::nullopt;
  const auto results = infer(op, *complete, known_operands);
  if (!results || results->empty() || !results->front().type.is_ranked_tensor())
    return std::nullopt;
  for (const Dim& dim : *results->front().type.shape)
    if (dim.is_undefined()) return std::nullopt;
  const ValueId value = graph
                            .add_node({.op = &op,
                                       .attrs = *complete,
                                       .inputs = operands,
                                       .outputs = {results->front().type}})
                            .front();
  mine.prepared.live.push_back(false);
  mine.prepared.computed.push_back(false);
  mine.prepared.rounded.emplace_back();
  mine.prepared.sizes.emplace_back();
  mine.classes.push_back(kNoClass);
  assign(side, value, numbering_.results(graph, *graph.producer(value), classes).front());
  return value;
}

ValueId Pairing::derive_constant(Side side, Tensor tensor) {
  Half& mine = half(side);
  const ClassId id = numbering_.constant(tensor);
  const ValueId value = mine.prepared.graph.add_constant(std::move(tensor), {});
  mine.prepared.live.push_back(false);
  mine.prepared.computed.push_back(true);
  mine.prepared.rounded.emplace_back();
  mine.prepared.sizes.emplace_back();
  mine.classes.push_back(kNoClass);
  assign(side, value, id);
  return value;
}

bool Pairing::all_outputs_paired() const {
  return std::ranges::equal(
      graph(Side::Source).outputs(), graph(Side::Target).outputs(),
      [&](ValueId a, ValueId b) { return of(Side::Source, a) == of(Side::Target, b); });
}

}  // namespace tessera::prove
