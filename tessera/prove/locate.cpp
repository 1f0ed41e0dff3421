#include "tessera/prove/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/ir/rebuild.h"
#include "tessera/ir/text.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/position.h"
#include "tessera/support/lexer.h"

namespace tessera::prove {
namespace {

constexpr std::size_t kMostNodes = 8;       // of a subgraph that is shown
constexpr std::int64_t kMostInline = 16;    // elements of a constant that is shown
constexpr double kDiffersFromEqual = 3e-6;  // of results whose operands are the same bit by bit

std::string text_of(const Attr& attr) {
  if (const auto* number = std::get_if<std::int64_t>(&attr)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&attr)) return float_text(*number);
  if (const auto* text = std::get_if<std::string>(&attr)) return *text;
  if (const auto* list = std::get_if<Ints>(&attr))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* list = std::get_if<Floats>(&attr))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* list = std::get_if<Strings>(&attr))
    return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* symbol = std::get_if<Symbol>(&attr)) return symbol->name;
  return "a tensor";
}

std::string text_of(const Attr* attr) {
  return attr == nullptr ? "none" : text_of(*attr);
}

std::size_t number_of(const Graph& graph, const GraphNode& node) {
  return static_cast<std::size_t>(&node - graph.nodes().data());
}

std::string shape_text(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

/// Where two constants of one shape and type differ, if they do.
std::optional<Divergence::Weight> differing_elements(const Tensor& a, const Tensor& b) {
  Divergence::Weight weight;
  weight.elements = a.count();
  const auto x = a.bytes.view(), y = b.bytes.view();
  const auto width = static_cast<std::size_t>(byte_width(a.dtype));
  for (std::size_t at = 0; width > 0 && at < x.size(); at += width) {
    if (std::ranges::equal(x.subspan(at, width), y.subspan(at, width))) continue;
    if (weight.differing++ > 0) continue;
    const auto element = static_cast<std::int64_t>(at / width);
    weight.position = position_of(element, a.shape);
    weight.source_element = number_at(a, element);
    weight.target_element = number_at(b, element);
  }
  return weight.differing > 0 ? std::optional(std::move(weight)) : std::nullopt;
}

}  // namespace

Locator::Locator(const Graph& source, const Graph& target, const JointGraph& joint,
                 std::int64_t most_bytes)
    : source_(source), target_(target), joint_(joint), bytes_left_(most_bytes) {
  for (const GraphNode& node : source.nodes())
    for (const ValueId id : source.outputs(node))
      if (source.is_named(id)) by_name_.emplace(source.name(id), id);
  for (const GraphNode& node : target.nodes())
    for (const ValueId id : target.outputs(node))
      if (const ValueId at = joint.values[1][id.index]; at.present())
        of_joint_[at.index].push_back(id);
  for (const GraphNode& node : target.nodes())
    for (const ValueId id : target.outputs(node)) {
      const auto source_value = counterpart(id);
      if (!source_value || !is_shared(Side::Target, id)) continue;
      const ValueId ours = joint.values[0][source_value->index];
      if (ours.present() && ours != joint.values[1][id.index])
        renamed_.insert({ours.index, joint.values[1][id.index].index});
    }
}

bool Locator::is_shared(Side side, ValueId value) const {
  const ValueId at = joint_.values[static_cast<std::size_t>(side)][value.index];
  return at.present() && joint_.is_shared(at);
}

void Locator::observe(ValueId joint, const interp::Value& value) {
  // Values of the target come in the order of its nodes, and the first that differs is reported.
  if (is_found_ || !value.datum.is_tensor() ||
      (joint_.is_shared(joint) && !renamed_.contains(joint.index)))
    return;
  const Tensor& tensor = value.datum.tensor();
  if (joint_.computed_by[joint.index][0]) {
    bytes_left_ -= static_cast<std::int64_t>(tensor.bytes.size());
    if (bytes_left_ >= 0) kept_.emplace(joint.index, tensor);
    return;
  }
  for (const ValueId target : of_joint_[joint.index]) {
    const State state = compared(target, tensor);
    states_[target.index] = state;
    is_found_ = is_found_ || state == State::Differs;
  }
}

bool Locator::depends_on_shared_alone(ValueId target) const {
  const GraphNode* node = target_.producer(target);
  return node != nullptr && std::ranges::all_of(target_.inputs(*node), [&](ValueId id) {
           return !id.present() || target_.constant(id) != nullptr || is_shared(Side::Target, id);
         });
}

Locator::State Locator::compared(ValueId target, const Tensor& tensor) {
  if (tensor.dtype == DType::String) return State::Unknown;
  if (const auto source = counterpart(target)) {
    const ValueId at = joint_.values[0][source->index];
    const auto kept = at.present() ? kept_.find(at.index) : kept_.end();
    if (kept == kept_.end()) return State::Unknown;
    const double limit = depends_on_shared_alone(target) ? kDiffersFromEqual : kDiffers;
    return apart(kept->second, tensor).relative > limit ? State::Differs : State::Agrees;
  }
  const Fingerprint print = fingerprint(tensor);
  for (const auto& [at, kept] : kept_) {
    if (kept.shape != tensor.shape || kept.dtype != tensor.dtype) continue;
    auto known = prints_.find(at);
    if (known == prints_.end()) known = prints_.emplace(at, fingerprint(kept)).first;
    if (may_equal(known->second, print)) return State::Agrees;
  }
  return State::Unknown;
}

Locator::State Locator::renamed(ValueId target) const {
  const auto source = counterpart(target);
  if (!source || !is_shared(Side::Target, target)) return State::Unknown;
  const ValueId a = joint_.values[0][source->index], b = joint_.values[1][target.index];
  if (a == b) return State::Agrees;
  const auto ours = a.present() ? kept_.find(a.index) : kept_.end(), theirs = kept_.find(b.index);
  if (ours == kept_.end() || theirs == kept_.end()) return State::Unknown;
  return apart(ours->second, theirs->second).relative > kDiffers ? State::Differs : State::Agrees;
}

std::optional<ValueId> Locator::counterpart(ValueId target) const {
  if (!target_.is_named(target)) return std::nullopt;
  const auto it = by_name_.find(target_.name(target));
  return it != by_name_.end() ? std::optional(it->second) : std::nullopt;
}

bool Locator::agrees(Side side, ValueId value) const {
  if (graph(side).producer(value) == nullptr || is_shared(side, value)) return true;
  if (side == Side::Target) {
    const auto it = states_.find(value.index);
    return it != states_.end() && it->second == State::Agrees;
  }
  // A value of the source agrees if the target's of its name does.
  return std::ranges::any_of(states_, [&](const auto& entry) {
    return entry.second == State::Agrees && counterpart({entry.first}) == value;
  });
}

std::set<std::size_t> Locator::region(Side side, ValueId value) const {
  const Graph& from = graph(side);
  std::set<std::size_t> inside;
  std::vector<ValueId> next{value};
  for (std::size_t i = 0; i < next.size(); ++i) {
    const GraphNode* producer = from.producer(next[i]);
    if (producer == nullptr || inside.size() >= kMostNodes) continue;
    if (i > 0 && agrees(side, next[i])) continue;
    if (!inside.insert(number_of(from, *producer)).second) continue;
    for (const ValueId operand : from.inputs(*producer))
      if (operand.present()) next.push_back(operand);
  }
  return inside;
}

std::optional<Divergence::Weight> Locator::differing_weight(ValueId source, ValueId target) const {
  std::map<std::string, const Tensor*> by_name;
  const auto for_each_constant = [&](Side side, ValueId value, auto&& visit) {
    const Graph& from = graph(side);
    for (const std::size_t n : region(side, value))
      for (const ValueId id : from.inputs(from.nodes()[n]))
        if (id.present() && from.constant(id) != nullptr && from.is_named(id))
          visit(from.name(id), *from.constant(id));
  };
  for_each_constant(Side::Source, source, [&](const std::string& name, const Tensor& tensor) {
    by_name.emplace(name, &tensor);
  });
  std::optional<Divergence::Weight> found;
  for_each_constant(Side::Target, target, [&](const std::string& name, const Tensor& tensor) {
    const auto ours = by_name.find(name);
    if (found || ours == by_name.end() || ours->second->shape != tensor.shape ||
        ours->second->dtype != tensor.dtype)
      return;
    found = differing_elements(*ours->second, tensor);
    if (found) found->source = found->target = name;
  });
  return found;
}

Divergence::Place Locator::place(Side side, ValueId value) const {
  const Graph& from = graph(side);
  const GraphNode* const node = from.producer(value);
  Divergence::Place place{.value = from.name(value)};
  if (node == nullptr) return place;
  place.node = from.node_name(number_of(from, *node));
  place.op = node->op->name;
  const std::set<std::size_t> inside = region(side, value);
  Graph& made = place.subgraph;
  made.set_name(side == Side::Source ? "source" : "target");
  std::map<std::uint32_t, ValueId> values;
  const auto name_of = [&](ValueId id) {
    return from.is_named(id) ? from.name(id) : std::string{};
  };
  for (const std::size_t n : inside)
    for (const ValueId operand : from.inputs(from.nodes()[n])) {
      if (!operand.present() || values.contains(operand.index)) continue;
      const GraphNode* producer = from.producer(operand);
      if (producer != nullptr && inside.contains(number_of(from, *producer))) continue;
      const Tensor* constant = from.constant(operand);
      values[operand.index] = constant != nullptr && constant->count() <= kMostInline
                                  ? made.add_constant(*constant, name_of(operand))
                                  : made.add_input(from.type(operand), name_of(operand));
    }
  for (const std::size_t n : inside) {
    const GraphNode& inner = from.nodes()[n];
    const std::vector<ValueId> results =
        made.add_node(copied_node(from, inner, [&](ValueId id) { return values.at(id.index); }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId id = from.outputs(inner)[i];
      values[id.index] = results[i];
      if (from.is_named(id)) made.set_name(results[i], from.name(id));
    }
  }
  made.set_outputs({values.at(value.index)});
  return place;
}

Divergence Locator::described(ValueId source, ValueId target) const {
  Divergence found{.source = place(Side::Source, source), .target = place(Side::Target, target)};
  const auto change = [&](std::string text) { found.changes.push_back(std::move(text)); };
  const GraphNode *ours = source_.producer(source), *theirs = target_.producer(target);
  if (ours == nullptr || theirs == nullptr) return found;
  const auto change_weight = [&](Divergence::Weight weight) {
    change(fmt::format("{}[{}] {} against {}{}", weight.source, fmt::join(weight.position, ", "),
                       float_text(weight.source_element), float_text(weight.target_element),
                       weight.differing == 1 ? std::string{}
                                             : fmt::format(", {} of {} elements", weight.differing,
                                                           weight.elements)));
    if (!found.weight) found.weight = std::move(weight);
  };
  if (auto weight = differing_weight(source, target)) change_weight(*std::move(weight));
  if (ours->op != theirs->op) {
    change(fmt::format("operator {} against {}", ours->op->name, theirs->op->name));
    return found;
  }
  for (const auto& [name, attr] : ours->attrs->entries()) {
    const Attr* other = theirs->attrs->find(name);
    if (other == nullptr || !equal(attr, *other))
      change(fmt::format("{} {} against {}", name, text_of(attr), text_of(other)));
  }
  for (const auto& [name, attr] : theirs->attrs->entries())
    if (!ours->attrs->has(name)) change(fmt::format("{} none against {}", name, text_of(attr)));
  const auto a = source_.inputs(*ours), b = target_.inputs(*theirs);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const ValueId mine = i < a.size() ? a[i] : ValueId{}, other = i < b.size() ? b[i] : ValueId{};
    if (!mine.present() && !other.present()) continue;
    const auto name = [](const Graph& graph, ValueId id) {
      return id.present() ? graph.name(id) : std::string("none");
    };
    const Tensor* const constant = mine.present() ? source_.constant(mine) : nullptr;
    const Tensor* const replaced = other.present() ? target_.constant(other) : nullptr;
    if (constant != nullptr && replaced != nullptr) {
      if (same_content(*constant, *replaced)) continue;
      if (constant->shape != replaced->shape || constant->dtype != replaced->dtype) {
        change(fmt::format("{} of shape {} against {} of shape {}", name(source_, mine),
                           shape_text(*constant), name(target_, other), shape_text(*replaced)));
      } else if (auto weight = differing_elements(*constant, *replaced)) {
        weight->source = name(source_, mine);
        weight->target = name(target_, other);
        if (!found.weight || found.weight->source != weight->source)
          change_weight(*std::move(weight));
      }
      continue;
    }
    if (mine.present() && other.present() &&
        joint_.values[0][mine.index] == joint_.values[1][other.index])
      continue;
    if (name(source_, mine) != name(target_, other))
      change(fmt::format("operand {} {} against {}", i, name(source_, mine), name(target_, other)));
  }
  return found;
}

std::optional<Divergence> Locator::divergence() const {
  // The first value that differs from the one of its name.
  for (const GraphNode& node : target_.nodes())
    for (const ValueId id : target_.outputs(node)) {
      const auto known = states_.find(id.index);
      if ((known != states_.end() ? known->second : renamed(id)) == State::Differs)
        return described(*counterpart(id), id);
    }
  // Names do not tell: the first that is computed otherwise from what is the same in both.
  const auto first = [&](Side side) -> std::optional<ValueId> {
    for (const GraphNode& node : graph(side).nodes())
      for (const ValueId id : graph(side).outputs(node))
        if (joint_.values[static_cast<std::size_t>(side)][id.index].present() && !agrees(side, id))
          return id;
    return std::nullopt;
  };
  const auto source = first(Side::Source), target = first(Side::Target);
  if (!source || !target) return std::nullopt;
  return described(*source, *target);
}

std::string to_string(const Divergence& divergence) {
  const Divergence::Place& place = divergence.source;
  const std::string where = !place.node.empty() ? place.node : place.value;
  const std::string what = divergence.changes.empty()
                               ? fmt::format("the numbers of {} and {}", divergence.source.value,
                                             divergence.target.value)
                               : fmt::format("{}", fmt::join(divergence.changes, "; "));
  return fmt::format("differs first at {} ({}): {}", where, place.op, what);
}

}  // namespace tessera::prove
