#include "tests/support/broken_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tessera/ir/bind.h"
#include "tessera/ir/rebuild.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"

namespace tessera::testing {
namespace {

/// Operators that can stand in each other's place.
const std::vector<std::vector<std::string>> kFamilies = {
    {"add", "sub", "mul", "max", "min"},
    {"relu", "identity", "neg", "abs", "tanh", "exp"},
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_mean"},
    {"average_pool", "max_pool"},
};

template <class T>
const T& any_of(const std::vector<T>& list, Rng& rng) {
  return list[rng.below(list.size())];
}

/// One random edit of a graph.
class Edit {
 public:
  Edit(const Graph& graph, Rng& rng) : graph_(graph), rng_(rng) {}

  /// What was done, in words.
  const std::string& words() const { return words_; }

  std::optional<Graph> made() {
    using Step = bool (Edit::*)(const GraphNode&);
    constexpr std::array<Step, 7> kSteps = {&Edit::swap_operands,    &Edit::replace_operand,
                                            &Edit::change_attribute, &Edit::change_operator,
                                            &Edit::leave_out,        &Edit::put_in,
                                            &Edit::replace_operand};
    if (graph_.nodes().empty() || rng_.below(8) == 0) return with_other_outputs();
    chosen_ = rng_.below(graph_.nodes().size());
    const GraphNode& node = graph_.nodes()[chosen_];
    op_ = node.op;
    attrs_ = *node.attrs;
    inputs_.assign(graph_.inputs(node).begin(), graph_.inputs(node).end());
    if (!(this->*kSteps[rng_.below(kSteps.size())])(node)) return std::nullopt;
    std::size_t index = 0;
    return rebuild(graph_, [&](Rebuilder& out, const GraphNode& at) {
      return index++ == chosen_ ? edited(out, at) : out.copy(at);
    });
  }

 private:
  bool swap_operands(const GraphNode&) {
    if (inputs_.size() < 2) return false;
    std::swap(inputs_[0], inputs_[1]);
    words_ = "operands exchanged";
    return true;
  }

  bool replace_operand(const GraphNode&) {
    if (inputs_.empty()) return false;
    ValueId& operand = inputs_[rng_.below(inputs_.size())];
    const std::vector<ValueId> others = similar(operand, inputs_of_chosen());
    if (others.empty()) return false;
    operand = any_of(others, rng_);
    words_ = "an operand replaced by " + graph_.name(operand);
    return true;
  }

  bool change_attribute(const GraphNode&) {
    if (attrs_.empty()) return false;
    const auto [name, attr] = any_of(attrs_.entries(), rng_);
    if (const auto* number = std::get_if<std::int64_t>(&attr)) {
      attrs_.set(name, *number + (rng_.below(2) == 0 ? 1 : -1));
    } else if (const auto* list = std::get_if<Ints>(&attr); list != nullptr && !list->empty()) {
      Ints changed = *list;
      std::int64_t& entry = changed[rng_.below(changed.size())];
      if (name == "perm")
        std::swap(entry, changed[rng_.below(changed.size())]);
      else
        ++entry;
      attrs_.set(name, changed);
    } else {
      return false;
    }
    words_ = fmt::format("attribute {} changed", name);
    return true;
  }

  bool change_operator(const GraphNode&) {
    for (const std::vector<std::string>& family : kFamilies) {
      if (std::ranges::find(family, op_->name) == family.end()) continue;
      op_ = find_op(any_of(family, rng_));
      // What the other does not have is left out.
      const Attrs all = attrs_;
      for (const auto& [name, attr] : all.entries())
        if (std::ranges::find(op_->attrs, name, &AttrSpec::name) == op_->attrs.end())
          attrs_.erase(name);
      words_ = "operator changed to " + op_->name;
      return true;
    }
    return false;
  }

  bool leave_out(const GraphNode& node) {
    const std::vector<ValueId> same = similar(graph_.outputs(node)[0], inputs_);
    if (same.empty() || graph_.outputs(node).size() != 1) return false;
    instead_ = any_of(same, rng_);
    words_ = "a node left out";
    return true;
  }

  bool put_in(const GraphNode& node) {
    if (!is_float(graph_.type(graph_.outputs(node)[0]).dtype)) return false;
    after_ = rng_.below(2) == 0 ? "relu" : "mul";
    words_ = after_ == "relu" ? "relu put in" : "scaled by 2";
    return true;
  }

  std::optional<Graph> with_other_outputs() {
    Graph copy = graph_;
    std::vector<ValueId> outputs(graph_.outputs().begin(), graph_.outputs().end());
    ValueId& output = outputs[rng_.below(outputs.size())];
    std::vector<ValueId> all;
    for (std::uint32_t i = 0; i < graph_.value_count(); ++i)
      if (graph_.constant({i}) == nullptr) all.push_back({i});
    const std::vector<ValueId> others = similar(output, all);
    if (others.empty()) return std::nullopt;
    output = any_of(others, rng_);
    copy.set_outputs(outputs);
    words_ = "an output replaced by " + graph_.name(output);
    return copy;
  }

  Rebuilder::Results edited(Rebuilder& out, const GraphNode& node) {
    if (instead_) return {out.mapped(*instead_)};
    std::vector<Type> types;
    for (const ValueId id : graph_.outputs(node)) types.push_back(graph_.type(id));
    Rebuilder::Results results =
        out.add({.op = op_, .attrs = attrs_, .inputs = out.mapped(inputs_), .outputs = types});
    if (after_.empty()) return results;
    std::vector<ValueId> operands = {results[0]};
    if (after_ == "mul") {
      const std::array<float, 1> two = {2};
      operands.push_back(out.constant(Tensor::of<float>(DType::F32, {}, two)));
    }
    results[0] =
        out.add({.op = find_op(after_), .attrs = {}, .inputs = operands, .outputs = {types[0]}})[0];
    return results;
  }

  /// Those of a list that could stand in a value's place.
  std::vector<ValueId> similar(ValueId value, const std::vector<ValueId>& among) const {
    std::vector<ValueId> found;
    for (const ValueId other : among) {
      if (!value.present() || !other.present() || other == value) continue;
      const Type &a = graph_.type(value), &b = graph_.type(other);
      if (a.dtype == b.dtype && a.shape && b.shape && a.shape->size() == b.shape->size())
        found.push_back(other);
    }
    return found;
  }

  /// What is there before the chosen node.
  std::vector<ValueId> inputs_of_chosen() const {
    std::vector<ValueId> values(graph_.inputs().begin(), graph_.inputs().end());
    for (std::size_t i = 0; i < chosen_; ++i)
      for (const ValueId id : graph_.outputs(graph_.nodes()[i])) values.push_back(id);
    return values;
  }

  const Graph& graph_;
  Rng& rng_;
  std::string words_;
  std::size_t chosen_ = 0;
  OpRef op_ = nullptr;
  Attrs attrs_;
  std::vector<ValueId> inputs_;
  std::optional<ValueId> instead_;
  std::string after_;
};

/// Where source and target take the sizes; with `ungrouped`, where all attributes are 1.
std::optional<prove::Refuted> shown(const rules::Rule& rule, bool ungrouped, std::uint64_t seed) {
  const auto relations = [&]() -> Expected<std::pair<prove::SizeRelations, prove::SizeRelations>> {
    TESSERA_TRY(const prove::SizeRelations own, prove::relate_sizes(rule.source));
    Guard assumed = rule.guard;
    for (const std::string& name : own.symbols.attributes)
      if (ungrouped) assumed.push_back(equal(Dim::symbol(name), 1));
    TESSERA_TRY(const prove::SizeRelations narrow, prove::relate_sizes(assumed, own));
    TESSERA_TRY(const prove::SizeRelations both, prove::relate_sizes(rule.target, narrow));
    TESSERA_TRY(prove::SizeRelations all, prove::relate_outputs(rule.source, rule.target, both));
    return std::pair(own, std::move(all));
  }();
  if (!relations) return std::nullopt;
  const prove::Verdict verdict =
      prove::refute(rule.source, rule.target, prove::beyond(relations->first, relations->second),
                    {.seed = seed, .tries = 12});
  const auto* refuted = std::get_if<prove::Refuted>(&verdict);
  if (refuted == nullptr || refuted->position.empty()) return std::nullopt;
  return *refuted;
}

}  // namespace

std::optional<BrokenRule> broken(const rules::Rule& rule, Rng& rng) {
  constexpr int kTries = 12;
  for (int i = 0; i < kTries; ++i) {
    Edit edit(rule.target, rng);
    const std::optional<Graph> edited = edit.made();
    if (!edited) continue;
    auto target = bound(*edited, SizeValues{});  // infers types anew
    if (!target) continue;
    BrokenRule result{.rule = rule, .edit = edit.words(), .refuted = {}};
    result.rule.target = *std::move(target);
    auto refuted = shown(result.rule, false, rng.next());
    if (!refuted || !shown(result.rule, true, rng.next())) continue;
    result.refuted = *std::move(refuted);
    return result;
  }
  return std::nullopt;
}

}  // namespace tessera::testing
