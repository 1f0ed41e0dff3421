#include "tessera/prove/prepared.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/data_movement.h"
#include "tessera/ir/expand.h"
#include "tessera/ops/operators.h"
#include "tessera/prove/assumptions.h"

namespace tessera::prove {
namespace {

/// Whether an element of the first result is the element of an operand at the same place: which.
std::optional<std::size_t> identical_operand(const OpDef& op, const Attrs& attrs,
                                             const std::vector<ValueInfo>& inputs) {
  if (&op == op::cast.get()) return 0;  // to its own type; the caller compares types
  const auto one = data_movement(op, attrs, inputs);
  if (!one || one->read->at.size() != one->output().axes.size()) return std::nullopt;
  for (std::size_t i = 0; i < one->read->at.size(); ++i) {
    const auto* index = std::get_if<node::Index>(&one->read->at[i].node());
    const std::vector<Axis>& parts = one->output().axes[i].parts;
    if (index == nullptr || parts.size() != 1 || parts[0].name != index->axis) return std::nullopt;
  }
  return one->operand;
}

/// The largest magnitude of the elements.
double largest(const Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    most = std::max(most, std::fabs(number_at(tensor, i)));
  return most;
}

template <class Test>
bool is_any(const Tensor& tensor, const Test& test) {
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (test(number_at(tensor, i))) return true;
  return false;
}

bool holds_zero(const Tensor& tensor) {
  return is_any(tensor, [](double x) { return x == 0; });
}

/// What has to be assumed where an operator computes with these constants, because ONNX does not
/// say what it makes of them: `domain` where integers are divided by zero, `wrap-around` where they
/// leave the range of their type, `non-finite` where a cast to integers is given no number.
std::optional<Assumption::Kind> asked_of_constants(const OpDef& op,
                                                   const std::vector<interp::Value>& inputs,
                                                   DType result) {
  using Kind = Assumption::Kind;
  if (!is_integer(result) || inputs.empty() || !inputs[0].datum.is_tensor()) return std::nullopt;
  const auto tensor = [&](std::size_t i) -> const Tensor& { return inputs[i].datum.tensor(); };
  const auto limit = static_cast<double>(integer_range(result).most);
  const auto within = [&](double most) {
    return most <= limit ? std::nullopt : std::optional(Kind::WrapAround);
  };
  if (&op == op::cast.get()) {
    if (!is_float(tensor(0).dtype)) return std::nullopt;
    if (is_any(tensor(0), [](double x) { return !std::isfinite(x); })) return Kind::NonFinite;
    return within(largest(tensor(0)));
  }
  if (inputs.size() != 2 || !inputs[1].datum.is_tensor()) return std::nullopt;
  const bool divides = &op == op::div.get() || &op == op::mod.get();
  if (divides) return holds_zero(tensor(1)) ? std::optional(Kind::Domain) : std::nullopt;
  const double a = largest(tensor(0)), b = largest(tensor(1));
  if (&op == op::add.get() || &op == op::sub.get()) return within(a + b);
  if (&op == op::mul.get()) return within(a * b);
  if (&op != op::pow.get()) return std::nullopt;
  if (holds_zero(tensor(0)) && is_any(tensor(1), [](double x) { return x < 0; }))
    return Kind::Domain;
  return within(std::pow(std::max(a, 1.0), b));
}

/// Whether an operator does not round: what it gives are numbers that it is given, or their
/// negatives. A cast does not where it keeps all elements.
bool is_exact_on(const OpDef& op, const Tensor* first, const Tensor& result) {
  for (const auto& exact : {op::neg, op::abs, op::max, op::min, op::relu, op::where, op::identity})
    if (&op == exact.get()) return true;
  if (&op != op::cast.get() || first == nullptr || first->count() != result.count()) return false;
  for (std::int64_t i = 0; i < result.count(); ++i)
    if (number_at(*first, i) != number_at(result, i)) return false;
  return true;
}

class Preparation {
 public:
  /// `computed` holds the memory of constants that earlier preparations computed.
  Preparation(const Graph& from, const PrepareOptions& options, bool is_file,
              std::set<const std::byte*>& computed)
      : from_(from),
        is_file_(is_file),
        options_(options),
        out_(options.scope),
        values_(from.value_count()),
        computed_(computed) {
    for (std::size_t i = 0; i < options.inputs.size(); ++i) {
      const Shape common = options.inputs[i].shape.value_or(Shape{}),
                  own = from.type(from.inputs()[i]).shape.value_or(Shape{});
      for (const Dim& dim : common) dim.collect_symbols(shared_);
      for (std::size_t axis = 0; axis < std::min(own.size(), common.size()); ++axis)
        if (const auto symbol = own[axis].as_symbol()) sizes_.emplace(*symbol, common[axis]);
    }
  }

  Expected<Prepared> made() {
    for (std::size_t i = 0; i < from_.inputs().size(); ++i)
      values_[from_.inputs()[i].index] =
          out_.input(from_.name(from_.inputs()[i]), {.type = options_.inputs[i]});
    const std::vector<bool> wanted = live_values(from_);
    for (const GraphNode& node : from_.nodes()) {
      if (options_.stop != nullptr && *options_.stop)
        return Diagnostic{.id = "stopped", .message = "the proof was stopped"};
      const auto outputs = from_.outputs(node);
      if (std::ranges::none_of(outputs, [&](ValueId id) { return wanted[id.index]; })) continue;
      place(node);
      if (out_.failed()) return *out_.error();
    }
    Vals outputs;
    for (const ValueId id : from_.outputs()) outputs.push_back(mapped(id));
    TESSERA_TRY(Graph graph, out_.finish(outputs));
    graph.set_name(from_.name());
    Prepared prepared{.live = live_values(graph)};
    prepared.computed.resize(graph.value_count());
    prepared.rounded.resize(graph.value_count());
    for (auto& [id, tensor] : rounded_) prepared.rounded[id] = std::move(tensor);
    prepared.sizes.resize(graph.value_count());
    for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
      if (const Tensor* constant = graph.constant({i}))
        prepared.computed[i] = computed_.contains(constant->bytes.data());
      const ValueInfo& known = out_.known(Val(out_, i));
      if (known.value && is_integer(known.type.dtype) &&
          std::ranges::all_of(*known.value, [&](const Dim& dim) { return is_shared(dim); }))
        prepared.sizes[i] = known.value;
    }
    if (narrows_) assumptions_.push_back(assumption_of(Assumption::Kind::WrapAround));
    prepared.graph = std::move(graph);
    if (rounds_)
      assumptions_.push_back({Assumption::Kind::Rounding,
                              "constants that follow from others are rounded to their types"});
    prepared.assumptions = std::move(assumptions_);
    return prepared;
  }

 private:
  bool is_shared(const Dim& dim) const {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return !dim.is_undefined() && std::ranges::includes(shared_, symbols);
  }

  Val mapped(ValueId id) {
    if (!id.present()) return {};
    Val& value = values_[id.index];
    if (const Tensor* constant = from_.constant(id); constant != nullptr && !value.present())
      value = out_.constant(*constant, from_.is_named(id) ? from_.name(id) : "");
    return value;
  }

  const Tensor* constant_of(const Val& value) const {
    const auto it = constants_.find(value.id());
    return it != constants_.end() ? &it->second : nullptr;
  }

  /// A constant that a node computes; whether it may be another number than the operands say.
  Val computed(Tensor tensor, bool is_rounded) {
    bytes_ += static_cast<std::int64_t>(tensor.bytes.size());
    if (is_rounded) computed_.insert(tensor.bytes.data());
    const Val value = out_.constant(tensor);
    constants_.emplace(value.id(), std::move(tensor));
    return value;
  }

  /// The results of a node all of whose operands are constants, or rounded to be some.
  std::optional<std::vector<interp::Value>> evaluated(const GraphNode& node,
                                                      const Vals& operands) const {
    if (!node.op->pure || node.op->kind() == OpDef::Kind::Control || bytes_ > options_.most_bytes)
      return std::nullopt;
    std::vector<interp::Value> inputs;
    for (const Val& operand : operands) {
      if (!operand.present()) {
        inputs.push_back({});
        continue;
      }
      const Tensor* constant = constant_or_rounded(operand);
      if (constant == nullptr) return std::nullopt;
      inputs.push_back({*constant});
    }
    const auto results = interp::run_op<double>(
        *node.op, *node.attrs, inputs, static_cast<int>(from_.outputs(node).size()),
        {.threads = 1, .memory_limit = options_.most_bytes - bytes_, .stop = options_.stop});
    if (!results) return std::nullopt;
    for (const interp::Value& result : *results)
      if (!result.datum.is_tensor() ||
          asked_of_constants(*node.op, inputs, result.datum.tensor().dtype) ==
              Assumption::Kind::Domain)
        return std::nullopt;
    return *results;
  }

  /// Whether the result of an operator over constants is rounded, or an operand was.
  bool is_rounded(const OpDef& op, const Vals& operands, bool is_moved,
                  const Tensor& result) const {
    const Tensor* first = nullptr;
    for (const Val& operand : operands) {
      const Tensor* constant = operand.present() ? constant_of(operand) : nullptr;
      if (constant != nullptr && computed_.contains(constant->bytes.data())) return true;
      if (first == nullptr) first = constant;
    }
    return is_float(result.dtype) && !is_moved && !is_exact_on(op, first, result);
  }

  /// Whether a node computes what is not defined of constants, or goes on with such a result.
  bool is_undefined(const GraphNode& node, const Vals& operands, DType result) {
    std::vector<interp::Value> inputs;
    for (const Val& operand : operands) {
      if (operand.present() && undefined_.contains(operand.id())) return true;
      const Tensor* constant = operand.present() ? constant_of(operand) : nullptr;
      if (constant == nullptr) return false;
      inputs.push_back({*constant});
    }
    const auto asked = asked_of_constants(*node.op, inputs, result);
    if (asked && asked != Assumption::Kind::Domain) assumptions_.push_back(assumption_of(*asked));
    return asked == Assumption::Kind::Domain;
  }

  /// A constant operand, or the rounded result of one that was left in the graph.
  const Tensor* constant_or_rounded(const Val& operand) const {
    const auto left = rounded_.find(operand.id());
    return left != rounded_.end() ? &left->second : constant_of(operand);
  }

  /// Whether constants are quantized to integers that do not depend on the rounding of constants
  /// and scale: no quotient is near a tie.
  bool quantizes_robustly(const GraphNode& node, const Vals& operands) const {
    if (options_.scales != ScaleReading::Integers || node.op != op::quantize_linear) return false;
    const Tensor *numbers = constant_or_rounded(operands[0]),
                 *scale = constant_or_rounded(operands[1]);
    if (numbers == nullptr || scale == nullptr || scale->count() != 1) return false;
    return !is_any(*numbers, [&, by = number_at(*scale, 0)](double x) {
      const double quotient = x / by, past = quotient - std::floor(quotient);
      return !(std::fabs(past - 0.5) > 1e-3 + 1e-6 * std::fabs(quotient));
    });
  }

  /// Whether a node is computed of scales or of quantized constants, and stays so.
  bool is_kept(const GraphNode& node, const Vals& operands) const {
    if (options_.scales == ScaleReading::Rounded || quantizes_robustly(node, operands))
      return false;
    if (std::ranges::any_of(operands,
                            [&](const Val& v) { return v.present() && rounded_.contains(v.id()); }))
      return true;
    return node.op == op::dequantize_linear || ((node.op == op::mul || node.op == op::div) &&
                                                is_float(out_.known(operands[0]).type.dtype));
  }

  /// Rows of what is converted from one element type to another, as the converted rows: a table of
  /// quantized numbers is looked up before or after it is dequantized. Nothing for other operators.
  std::optional<Vals> converted_rows(const GraphNode& node, const Vals& operands) {
    if (options_.scales != ScaleReading::Integers || node.op != op::gather) return std::nullopt;
    const auto it = conversions_.find(operands[0].id());
    if (it == conversions_.end()) return std::nullopt;
    const auto& [conversion, converted] = it->second;
    const Vals looked_up{converted[0], operands[1]};
    const auto constant = evaluated(node, looked_up);
    Vals rows = converted;
    rows[0] = constant ? computed(constant->at(0).datum.tensor(), false)
                       : out_.call(*op::gather, looked_up, *node.attrs, 1).at(0);
    return out_.call(*conversion->op, rows, *conversion->attrs, 1);
  }

  /// Whether an operator converts each element of its first operand by itself.
  bool is_conversion(const GraphNode& node, const Vals& operands) const {
    if (node.op != op::cast && node.op != op::quantize_linear && node.op != op::dequantize_linear)
      return false;
    return std::all_of(operands.begin() + 1, operands.end(), [&](const Val& operand) {
      if (!operand.present()) return true;
      const Type& type = out_.known(operand).type;
      return type.shape && type.shape->empty();
    });
  }

  /// The results of a node all of whose operands are constants.
  std::optional<Vals> folded(const GraphNode& node, const Vals& operands,
                             const std::vector<ValueInfo>& known) {
    const auto results = evaluated(node, operands);
    if (!results) return std::nullopt;
    Vals values;
    for (const interp::Value& result : *results)
      is_undefined(node, operands, result.datum.tensor().dtype);  // says what has to be assumed
    const bool is_moved = data_movement(*node.op, *node.attrs, known).has_value();
    for (const interp::Value& result : *results) {
      rounds_ = rounds_ || (is_float(result.datum.tensor().dtype) && !is_moved);
      const Tensor& tensor = result.datum.tensor();
      values.push_back(computed(tensor, is_rounded(*node.op, operands, is_moved, tensor)));
    }
    return values;
  }

  /// A type that the file declares, in terms of the sizes of the inputs. Other names of sizes mean
  /// nothing to the other side, whatever it calls so, and are called after this side.
  Type own(Type type) const {
    if (!type.shape) return type;
    for (Dim& dim : *type.shape)
      dim = dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
        if (const auto known = sizes_.find(symbol); known != sizes_.end()) return known->second;
        const std::string mine = "_" + options_.scope;
        if (symbol.starts_with(mine)) return std::nullopt;
        return Dim::symbol(mine + std::string(symbol));
      });
    return type;
  }

  /// A choice between two branches as a choice between their results, element by element; nothing
  /// where a branch has control flow of its own, is random, or gives results of another type. What
  /// is asked of operands holds in both branches then, whichever is taken: floating point has a
  /// result for everything, which is not chosen.
  std::optional<Vals> selected_results(const GraphNode& node, const Vals& operands) {
    const auto branches = from_.subgraphs(node);
    if (node.op->control != OpDef::Control::If || branches.size() != 2) return std::nullopt;
    const Type condition = out_.known(operands[0]).type;
    if (!condition.is_ranked_tensor() || !condition.shape->empty()) return std::nullopt;
    for (const auto& branch : branches)
      for (const GraphNode& inner : branch->nodes())
        if (!inner.op->pure || inner.op->kind() == OpDef::Kind::Control) return std::nullopt;
    const Vals captures(operands.begin() + 1, operands.end());
    // Both are computed, whichever is taken.
    const Vals first = out_.inlined(*branches[0], captures),
               second = out_.inlined(*branches[1], captures);
    if (out_.failed()) return std::nullopt;
    Vals results;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Type& type = out_.known(first[i]).type;
      if (!type.is_ranked_tensor() || !(type == out_.known(second[i]).type)) return std::nullopt;
      results.push_back(out_.call(*op::where, {operands[0], first[i], second[i]}, {}, 1).at(0));
    }
    for (const auto& branch : branches) {
      const auto expanded = expand(*branch, is_composite);
      const Graph& graph = expanded ? *expanded : *branch;
      for (const GraphNode& inner : graph.nodes())
        if (const auto asked = asked_of_operands(graph, inner))
          assumptions_.push_back(assumption_of(*asked));
    }
    return results;
  }

  /// Whether a type tells more than what is inferred, and not only the names that were made up for
  /// sizes that follow from data.
  static bool tells_more(const Type& stated, const Type& type, const Type& inferred) {
    if (type == inferred) return false;
    if (!stated.shape || !type.shape || !inferred.shape || type.dtype != inferred.dtype ||
        stated.shape->size() != type.shape->size() || type.shape->size() != inferred.shape->size())
      return true;
    for (std::size_t axis = 0; axis < type.shape->size(); ++axis) {
      const auto symbol = (*stated.shape)[axis].as_symbol();
      const auto made_up = (*inferred.shape)[axis].as_symbol();
      const bool is_name =
          symbol && symbol->starts_with('_') && made_up && made_up->starts_with('_');
      if (!is_name && (*type.shape)[axis] != (*inferred.shape)[axis]) return true;
    }
    return false;
  }

  Assumption declared(ValueId id, const Type& type) const {
    return {Assumption::Kind::Declared,
            fmt::format("{} is {}, as its file declares", from_.name(id), to_string(type))};
  }

  void place(const GraphNode& node) {
    const auto outputs = from_.outputs(node);
    Vals operands;
    std::vector<ValueInfo> known;
    for (const ValueId id : from_.inputs(node)) {
      operands.push_back(mapped(id));
      const Val& operand = operands.back();
      if (operand.present() && from_.constant(id) != nullptr)
        constants_.emplace(operand.id(), *from_.constant(id));
      known.push_back(operand.present() ? out_.known(operand) : ValueInfo{.present = false});
    }
    Vals results;
    const bool kept = is_kept(node, operands);
    if (auto values = kept ? std::nullopt : folded(node, operands, known)) {
      results = *std::move(values);
    } else if (auto selected = selected_results(node, operands)) {
      results = *std::move(selected);
    } else if (node.op->kind() == OpDef::Kind::Control) {
      std::vector<Type> types;
      for (const ValueId id : outputs) {
        types.push_back(own(from_.type(id)));
        // Types of expanded composites are inferred; those of the file are believed.
        if (const Type& type = types.back(); is_file_ && type.shape && !type.shape->empty())
          assumptions_.push_back(declared(id, type));
      }
      const auto subgraphs = from_.subgraphs(node);
      results = out_.call_control(*node.op, operands, *node.attrs,
                                  {subgraphs.begin(), subgraphs.end()}, types);
    } else {
      auto rows = converted_rows(node, operands);
      results = rows ? *std::move(rows)
                     : out_.call(*node.op, operands, *node.attrs, static_cast<int>(outputs.size()));
      if (out_.failed()) return;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Type inferred = out_.known(results[i]).type;
        const Type& stated = from_.type(outputs[i]);
        out_.refine(results[i], own(stated));
        if (const Type& type = out_.known(results[i]).type; tells_more(stated, type, inferred))
          assumptions_.push_back(declared(outputs[i], type));
        if (kept) continue;
        if (is_undefined(node, operands, out_.known(results[i]).type.dtype))
          undefined_.insert(results[i].id());
        else if (const auto content = out_.known(results[i]).content)
          results[i] = computed(*content, is_rounded(*node.op, operands, false, *content));
      }
      if (kept)
        if (const auto values = evaluated(node, operands)) {
          rounds_ = true;  // that they stand for real numbers and not for rounded ones
          for (std::size_t i = 0; i < outputs.size(); ++i)
            rounded_.emplace(results[i].id(), (*values)[i].datum.tensor());
        }
      if (const auto same = identical_operand(*node.op, *node.attrs, known);
          same && results.size() == 1 &&
          out_.known(operands[*same]).type == out_.known(results[0]).type)
        results[0] = operands[*same];
    }
    if (is_conversion(node, operands) && results.size() == 1 && results[0].present())
      conversions_.emplace(results[0].id(), std::pair(&node, operands));
    for (const Val& result : results) {
      const ValueInfo& info = out_.known(result);
      narrows_ = narrows_ ||
                 (info.value && info.type.dtype != DType::I64 &&
                  std::ranges::any_of(*info.value, [](const Dim& dim) { return !dim.constant(); }));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values_[outputs[i].index] = results[i];
      if (from_.is_named(outputs[i]) && !named_.contains(results[i].id())) {
        out_.name(results[i], from_.name(outputs[i]));
        named_.insert(results[i].id());
      }
    }
  }

  const Graph& from_;
  const bool is_file_;  // and not what is left of it after composites are expanded
  const PrepareOptions& options_;
  GraphBuilder out_;
  Vals values_;                   // by value of the old graph
  std::set<std::string> shared_;  // symbols of the sizes of the inputs
  Sizes sizes_;                   // what the file's own symbols for them are
  std::map<std::uint32_t, Tensor> constants_;
  std::map<std::uint32_t, Tensor> rounded_;  // results of what is kept
  std::map<std::uint32_t, std::pair<const GraphNode*, Vals>> conversions_;  // by result
  std::set<std::uint32_t> named_, undefined_;
  std::set<const std::byte*>& computed_;
  std::int64_t bytes_ = 0;
  bool rounds_ = false;
  bool narrows_ = false;  // sizes are computed with in integers that they may not fit
  std::vector<Assumption> assumptions_;
};

}  // namespace

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const GraphNode& node) {
    return node.op == op::quantize_linear || node.op == op::dequantize_linear;
  });
}

std::vector<bool> live_values(const Graph& graph) {
  std::vector<bool> live(graph.value_count());
  for (const ValueId id : graph.outputs()) live[id.index] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    if (std::ranges::none_of(graph.outputs(node), [&](ValueId id) { return live[id.index]; }))
      continue;
    for (const ValueId id : graph.inputs(node))
      if (id.present()) live[id.index] = true;
  }
  return live;
}

Expected<Prepared> prepare(const Graph& graph, const PrepareOptions& options) {
  std::set<const std::byte*> computed;
  TESSERA_TRY(Prepared first, Preparation(graph, options, true, computed).made());
  // What cannot be expanded is compared as it is.
  auto expanded = expand(first.graph, is_composite);
  if (!expanded) return first;
  PrepareOptions again = options;
  again.scope += "x";
  TESSERA_TRY(Prepared second, Preparation(*expanded, again, false, computed).made());
  second.assumptions.insert(second.assumptions.begin(), first.assumptions.begin(),
                            first.assumptions.end());
  return second;
}

}  // namespace tessera::prove
