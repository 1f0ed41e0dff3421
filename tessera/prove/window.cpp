#include "tessera/prove/window.h"

#include <algorithm>
#include <cstring>

#include "tessera/ir/infer.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kFew = 64;

/// One number everywhere.
bool is_uniform(const Tensor& tensor) {
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  if (width == 0 || tensor.bytes.size() == 0) return false;
  for (std::size_t i = width; i < tensor.bytes.size(); i += width)
    if (std::memcmp(tensor.bytes.data(), tensor.bytes.data() + i, width) != 0) return false;
  return true;
}

/// What definitions look at, or what the proof can calculate with.
bool is_plain(const Tensor& tensor) {
  const std::int64_t most = is_float(tensor.dtype) ? 1 : kSmallTensor;
  return tensor.count() <= most || (tensor.count() <= kFew * kSmallTensor && is_uniform(tensor));
}

}  // namespace

Window::Window(const Pairing& pairing, ClassId source, ClassId target)
    : pairing_(&pairing), roots_{source, target} {
  for (const Side side : kSides)
    if (!pairing_->paired(roots_[index(side)])) expand(side, roots_[index(side)]);
  balance();
}

Window::Member Window::member(Side side, ClassId id) const {
  if (const auto own = pairing_->member(side, id)) return {side, *own};
  const auto value = pairing_->member(other(side), id);
  TESSERA_CHECK(value.has_value(), "class {} has no member", id);
  return {other(side), *value};
}

bool Window::is_derived(Side side, ClassId id) const {
  const auto value = pairing_->member(side, id);
  return value && !pairing_->prepared(side).live[value->index] &&
         pairing_->graph(side).producer(*value) != nullptr;
}

Window::Member Window::definition(Side side, ClassId id) const {
  const Member own = member(side, id);
  const bool is_leaf = pairing_->graph(own.side).producer(own.value) == nullptr;
  if (is_leaf || is_derived(other(own.side), id))
    if (const auto value = pairing_->member(other(own.side), id)) return {other(own.side), *value};
  return own;
}

std::optional<std::vector<ClassId>> Window::operands(Side side, ClassId id) const {
  const Member of = definition(side, id);
  const Graph& graph = pairing_->graph(of.side);
  const GraphNode* node = graph.producer(of.value);
  if (node == nullptr) return std::nullopt;
  std::vector<ClassId> classes;
  for (const ValueId operand : graph.inputs(*node))
    classes.push_back(pairing_->of(of.side, operand));
  return classes;
}

bool Window::expand(Side side, ClassId id) {
  return operands(side, id).has_value() && inside_[index(side)].insert(id).second;
}

std::set<ClassId> Window::frontier(Side side) const {
  const std::set<ClassId>& inside = inside_[index(side)];
  std::set<ClassId> result;
  if (!inside.contains(roots_[index(side)])) return {roots_[index(side)]};
  std::set<ClassId> seen;
  std::vector<ClassId> next{roots_[index(side)]};
  while (!next.empty()) {
    const ClassId id = next.back();
    next.pop_back();
    if (!seen.insert(id).second) continue;
    const std::vector<ClassId> below = *operands(side, id);
    for (const ClassId operand : below) {
      if (operand == kNoClass) continue;
      if (inside.contains(operand))
        next.push_back(operand);
      else
        result.insert(operand);
    }
  }
  return result;
}

/// Later values have a higher rank: classes are numbered in the order of the source.
std::size_t Window::rank(ClassId id) const {
  return id;
}

bool Window::is_computed(ClassId id) const {
  return std::ranges::any_of(kSides, [&](Side side) {
    const auto value = pairing_->member(side, id);
    return value && pairing_->graph(side).producer(*value) != nullptr;
  });
}

bool Window::stays_constant(ClassId id) const {
  if (is_computed(id)) return false;
  for (const Side side : kSides)
    if (const auto value = pairing_->member(side, id))
      if (const Tensor* tensor = pairing_->graph(side).constant(*value)) return is_plain(*tensor);
  return false;
}

bool Window::is_scale(ClassId id) const {
  return std::ranges::any_of(kSides, [&](Side side) {
    const auto value = pairing_->member(side, id);
    if (!value || !pairing_->prepared(side).rounded[value->index]) return false;
    const GraphNode* node = pairing_->graph(side).producer(*value);
    return node != nullptr && node->op != op::dequantize_linear;
  });
}

void Window::balance() {
  const auto is_constant = [&](Side side, ClassId id) {
    const Member of = member(side, id);
    return pairing_->graph(of.side).constant(of.value) != nullptr;
  };
  const auto is_small = [&](Side side, ClassId id) {
    const Member of = member(side, id);
    return pairing_->graph(of.side).constant(of.value)->count() <= kFew;
  };
  const auto is_size = [&](Side side, ClassId id) {
    const Member of = member(side, id);
    return pairing_->prepared(of.side).sizes[of.value.index].has_value();
  };
  std::set<std::pair<Side, ClassId>> stuck;
  while (nodes() <= kMostNodes) {
    const std::array frontiers{frontier(Side::Source), frontier(Side::Target)};
    std::optional<std::pair<Side, ClassId>> latest;
    bool must = false;
    for (const Side side : kSides)
      for (const ClassId id : frontiers[index(side)]) {
        if (stuck.contains({side, id}) || stays_constant(id)) continue;
        const bool common = frontiers[index(other(side))].contains(id);
        if (common && !is_size(side, id) && !is_scale(id)) continue;
        // What is derived leads to the value that it is derived of.
        const bool alone = !pairing_->paired(id) || is_size(side, id) || is_scale(id) ||
                           is_derived(Side::Source, id) || is_derived(Side::Target, id);
        if (!latest || (alone && !must) || (alone == must && rank(id) > rank(latest->second))) {
          if (must && !alone) continue;
          latest = {side, id};
          must = alone;
        }
      }
    if (!latest) break;
    if (!expand(latest->first, latest->second)) stuck.insert(*latest);
  }
  too_large_ = nodes() > kMostNodes;
  std::set<ClassId> cut;
  const std::array frontiers{frontier(Side::Source), frontier(Side::Target)};
  for (const Side side : kSides) {
    loose_[index(side)].clear();
    for (const ClassId id : frontiers[index(side)]) {
      if (stays_constant(id)) continue;
      const bool loose = !frontiers[index(other(side))].contains(id) && is_constant(side, id);
      // A constant that is computed elsewhere stands for the real number, not for itself.
      if (loose && keeps_small_ && is_small(side, id) && !is_computed(id)) continue;
      cut.insert(id);
      if (loose) loose_[index(side)].push_back(id);
    }
  }
  cut_.assign(cut.begin(), cut.end());
}

void Window::keep_small() {
  keeps_small_ = true;
  balance();
}

bool Window::grow() {
  bool grown = false;
  for (const Side side : kSides)
    for (const ClassId id : frontier(side)) grown = expand(side, id) || grown;
  if (grown) balance();
  return grown;
}

std::vector<ClassId> Window::inside(Side side) const {
  std::vector<ClassId> order;
  std::set<ClassId> seen;
  const auto visit = [&](const auto& self, ClassId id) -> void {
    if (id == kNoClass || !inside_[index(side)].contains(id) || !seen.insert(id).second) return;
    const std::vector<ClassId> below = *operands(side, id);
    for (const ClassId operand : below) self(self, operand);
    order.push_back(id);
  };
  visit(visit, roots_[index(side)]);
  return order;
}

std::optional<Graph> Window::graph(Side side) const {
  Graph made;
  made.set_name(side == Side::Source ? "source" : "target");
  std::map<ClassId, ValueId> values;
  bool circular = false;
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    // Both graphs have the same inputs, so both take their types from the source.
    const Member of = member(Side::Source, cut_[i]);
    values[cut_[i]] =
        made.add_input(pairing_->graph(of.side).type(of.value), "x" + std::to_string(i));
  }
  const auto leaf = [&](ClassId id) {
    if (const auto it = values.find(id); it != values.end()) return it->second;
    const Member of = member(side, id);
    const Tensor* tensor = pairing_->graph(of.side).constant(of.value);
    if (tensor == nullptr) {
      circular = true;
      return ValueId{};
    }
    return values[id] = made.add_constant(*tensor, {});
  };
  for (const ClassId id : inside(side)) {
    if (values.contains(id)) continue;
    const Member of = definition(side, id);
    const Graph& from = pairing_->graph(of.side);
    const GraphNode& node = *from.producer(of.value);
    Graph::NewNode copy = copied_node(
        from, node, [&](ValueId operand) { return leaf(pairing_->of(of.side, operand)); });
    if (circular) return std::nullopt;
    const std::vector<ValueId> results = made.add_node(std::move(copy));
    const auto outputs = from.outputs(node);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ClassId of_result = pairing_->of(of.side, outputs[i]);
      if (outputs[i] == of.value)
        values[id] = results[i];
      else if (of_result != kNoClass && inside_[index(side)].contains(of_result))
        values.emplace(of_result, results[i]);
    }
  }
  made.set_outputs({leaf(roots_[index(side)])});
  if (circular) return std::nullopt;
  return made;
}

}  // namespace tessera::prove
