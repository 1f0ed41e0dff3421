#include "tests/support/graph_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tessera/ir/bind.h"
#include "tessera/ir/rebuild.h"

namespace tessera::testing {
namespace {

/// Operators that can stand in each other's place.
const std::vector<std::vector<std::string>> kFamilies = {
    {"add", "sub", "mul", "max", "min"},
    {"relu", "identity", "neg", "abs", "tanh", "exp"},
    {"reduce_sum", "reduce_max", "reduce_min", "reduce_mean"},
    {"average_pool", "max_pool"},
    {"sin", "cos", "erf", "sigmoid", "softplus", "gelu", "swish"},
    {"floor", "ceil", "round"},
    {"sinh", "cosh"},
    {"less", "less_or_equal", "greater", "greater_or_equal", "equal"},
    {"logical_and", "logical_or", "logical_xor"},
    {"bitwise_and", "bitwise_or", "bitwise_xor"},
    {"arg_max", "arg_min"},
    {"cum_sum", "cum_prod"},
    {"softmax", "log_softmax"},
    {"reduce_prod", "reduce_l1", "reduce_l2", "reduce_sum_square"},
};

/// Values of attributes that can stand in each other's place.
const std::vector<std::vector<std::string>> kWords = {
    {"constant", "edge", "wrap", "reflect"},
    {"DCR", "CRD"},
    {"LEFT", "RIGHT"},
    {"linear", "nearest", "cubic"},
    {"half_pixel", "asymmetric", "align_corners"},
    {"forward", "reverse"},
    {"none", "add", "mul", "max", "min"},
    {"mean", "sum"},
    {"f32", "f16", "i32", "u8", "bool"},
    {"SAME_UPPER", "SAME_LOWER"},
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
    constexpr std::array<Step, 8> kSteps = {&Edit::swap_operands,    &Edit::replace_operand,
                                            &Edit::change_attribute, &Edit::change_operator,
                                            &Edit::leave_out,        &Edit::put_in,
                                            &Edit::replace_operand,  &Edit::change_constant};
    if (graph_.nodes().empty() || rng_.below(8) == 0) return with_other_outputs();
    chosen_ = rng_.below(graph_.nodes().size());
    const GraphNode& node = graph_.nodes()[chosen_];
    if (!graph_.subgraphs(node).empty()) return std::nullopt;
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
    const std::size_t first = rng_.below(inputs_.size() - 1);
    std::swap(inputs_[first], inputs_[first + 1]);
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
    } else if (const auto* real = std::get_if<double>(&attr)) {
      attrs_.set(name, rng_.below(2) == 0 ? *real + 0.5 : -*real);
    } else if (const auto* word = std::get_if<std::string>(&attr)) {
      const auto words = std::ranges::find_if(kWords, [&](const std::vector<std::string>& some) {
        return std::ranges::find(some, *word) != some.end();
      });
      if (words == kWords.end()) return false;
      attrs_.set(name, any_of(*words, rng_));
    } else {
      return false;
    }
    words_ = fmt::format("attribute {} changed", name);
    return true;
  }

  bool change_constant(const GraphNode&) {
    std::vector<ValueId*> constants;
    for (ValueId& id : inputs_)
      if (const Tensor* tensor = id.present() ? graph_.constant(id) : nullptr;
          tensor != nullptr && tensor->dtype != DType::String && tensor->count() > 0)
        constants.push_back(&id);
    if (constants.empty()) return false;
    replaced_ = any_of(constants, rng_);
    const Tensor& tensor = *graph_.constant(*replaced_);
    const auto bytes = tensor.as<std::byte>();
    Buffer buffer(bytes.size());
    std::ranges::copy(bytes, buffer.data());
    const auto at =
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(tensor.count())));
    if (is_float(tensor.dtype)) {
      const double number = number_at(tensor, at);
      store_number(tensor.dtype, buffer.data(), at,
                   rng_.below(2) == 0   ? number + 1
                   : rng_.below(2) == 0 ? -number
                                        : 1.25 * number);
    } else if (tensor.dtype == DType::Bool) {
      store_integer(tensor.dtype, buffer.data(), at, 1 - integer_at(tensor, at));
    } else {
      store_integer(tensor.dtype, buffer.data(), at,
                    integer_at(tensor, at) + (rng_.below(2) == 0 ? 1 : -1));
    }
    constant_ = Tensor{tensor.dtype, tensor.shape, std::move(buffer).freeze()};
    words_ = "an element of a constant changed";
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
    std::vector<ValueId> inputs = out.mapped(inputs_);
    if (constant_)
      inputs[static_cast<std::size_t>(replaced_ - inputs_.data())] = out.constant(*constant_);
    Rebuilder::Results results =
        out.add({.op = op_, .attrs = attrs_, .inputs = inputs, .outputs = types});
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
  ValueId* replaced_ = nullptr;  // of inputs_, by constant_
  std::optional<Tensor> constant_;
  std::optional<ValueId> instead_;
  std::string after_;
};

}  // namespace

std::optional<EditedGraph> edited_graph(const Graph& graph, Rng& rng) {
  Edit edit(graph, rng);
  const std::optional<Graph> made = edit.made();
  if (!made) return std::nullopt;
  auto typed = bound(*made, SizeValues{});  // infers types anew
  if (!typed) return std::nullopt;
  return EditedGraph{*std::move(typed), edit.words()};
}

}  // namespace tessera::testing
