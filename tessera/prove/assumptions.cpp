#include "tessera/prove/assumptions.h"

#include <algorithm>
#include <cmath>

#include "tessera/expr/shape.h"
#include "tessera/expr/walk.h"
#include "tessera/ops/operators.h"

namespace tessera::prove {
namespace {

using Assumed = Assumption::Kind;

/// The sign of a real number as far as it is known: an abstract domain.
enum class Sign : std::uint8_t { Any, NotNegative, Positive };

Sign sign_of(double number) {
  return number > 0 ? Sign::Positive : number == 0 ? Sign::NotNegative : Sign::Any;
}

/// Looks for partial functions and inexact arithmetic in the definitions of a claim.
class Inspection {
 public:
  explicit Inspection(const GraphClaim& claim) : claim_(claim) {}

  std::set<Assumed> kinds() {
    for (const certify::Input& input : claim_.claim.inputs) {
      if (input.uniform) signs_[input.name] = sign_of(*input.uniform);
      for (const Dim& size : input.type.shape)
        if (!size.constant()) found_.insert(Assumed::Empty);
    }
    for (const certify::Value& value : claim_.claim.values) {
      value_ = &value;
      seen_.clear();  // values of one definition have operands of their own
      const Output& output = value.definition->outputs[value.output];
      visit(output.value);
      signs_[value.name] = sign(output.value);
    }
    return std::move(found_);
  }

 private:
  const std::string* operand(const std::string& name) const {
    const auto& inputs = value_->definition->inputs;
    const auto here = std::ranges::find(inputs, name, &Operand::name);
    const auto place = static_cast<std::size_t>(here - inputs.begin());
    return place < value_->operands.size() ? &value_->operands[place] : nullptr;
  }

  Sign sign_of_operand(const std::string& name) {
    const std::string* of = operand(name);
    if (of == nullptr) return Sign::Any;
    if (const auto known = signs_.find(*of); known != signs_.end()) return known->second;
    const auto constant = claim_.constants.find(*of);
    if (constant == claim_.constants.end() || constant->second.dtype == DType::String)
      return Sign::Any;
    Sign least = Sign::Positive;
    for (std::int64_t i = 0; i < constant->second.count() && least != Sign::Any; ++i)
      least = std::min(least, sign_of(number_at(constant->second, i)));
    return signs_[*of] = least;
  }

  /// Whether two expressions read the same tensor at the same place.
  bool is_same(const Scalar& a, const Scalar& b) const {
    if (a.id() == b.id()) return true;
    const auto *x = std::get_if<node::Read>(&a.node()), *y = std::get_if<node::Read>(&b.node());
    if (x == nullptr || y == nullptr || x->at.size() != y->at.size()) return false;
    const std::string *of = operand(x->operand), *other = operand(y->operand);
    return of != nullptr && other != nullptr && *of == *other &&
           std::ranges::equal(x->at, y->at, [](const Scalar& i, const Scalar& k) {
             const auto *axis = std::get_if<node::Index>(&i.node()),
                        *same = std::get_if<node::Index>(&k.node());
             return axis != nullptr && same != nullptr && axis->axis == same->axis;
           });
  }

  Sign sign(const Scalar& scalar) {
    const Node& node = scalar.node();
    if (const auto* constant = std::get_if<node::Constant>(&node))
      return sign_of(constant->sort == Sort::Value ? constant->number
                                                   : static_cast<double>(constant->integer));
    if (std::holds_alternative<node::Size>(node)) return Sign::Positive;
    if (const auto* read = std::get_if<node::Read>(&node)) {
      const Sign inside = sign_of_operand(read->operand);
      return read->otherwise == nullptr ? inside : std::min(inside, sign(*read->otherwise));
    }
    if (const auto* cast = std::get_if<node::Cast>(&node))
      return cast->to == DType::F32 || cast->to == DType::F64 ? sign(*cast->arg) : Sign::Any;
    if (const auto* component = std::get_if<node::Component>(&node)) {
      const Fold& fold = *component->fold;
      const auto simple = fold.simple();
      if (simple == Fn::Add)
        return std::min(sign(fold.lift[0]), sign(fold.init[0])) == Sign::Any ? Sign::Any
                                                                             : sign(fold.lift[0]);
      return simple == Fn::Max ? sign(fold.lift[0]) : Sign::Any;
    }
    const auto* apply = std::get_if<node::Apply>(&node);
    return apply != nullptr ? sign(*apply) : Sign::Any;
  }

  Sign sign(const node::Apply& apply) {
    const auto arg = [&](std::size_t i) { return sign(apply.args[i]); };
    switch (apply.fn) {
      case Fn::Exp: return Sign::Positive;
      case Fn::Abs: return std::max(arg(0), Sign::NotNegative);
      case Fn::Sqrt: return arg(0) == Sign::Positive ? Sign::Positive : Sign::NotNegative;
      case Fn::Add:
        return std::min(arg(0), arg(1)) == Sign::Any ? Sign::Any : std::max(arg(0), arg(1));
      case Fn::Mul:
        if (is_same(apply.args[0], apply.args[1])) return std::max(arg(0), Sign::NotNegative);
        return std::min(arg(0), arg(1));
      case Fn::Div: return std::min(arg(0), arg(1));
      case Fn::Max: return std::max(arg(0), arg(1));
      case Fn::Min: return std::min(arg(0), arg(1));
      case Fn::Select: return std::min(arg(1), arg(2));
      case Fn::Pow: {
        if (arg(0) == Sign::Positive) return Sign::Positive;
        const auto exponent = number(apply.args[1]);
        return exponent && std::fmod(*exponent, 2) == 0 ? Sign::NotNegative : arg(0);
      }
      default: return Sign::Any;
    }
  }

  /// An expression that is the same number everywhere.
  std::optional<double> number(const Scalar& scalar) const {
    if (const auto* constant = std::get_if<node::Constant>(&scalar.node()))
      return constant->sort == Sort::Value ? constant->number
                                           : static_cast<double>(constant->integer);
    if (const auto* cast = std::get_if<node::Cast>(&scalar.node())) return number(*cast->arg);
    const auto* read = std::get_if<node::Read>(&scalar.node());
    const std::string* of = read != nullptr ? operand(read->operand) : nullptr;
    if (of == nullptr) return std::nullopt;
    const auto input = std::ranges::find(claim_.claim.inputs, *of, &certify::Input::name);
    return input != claim_.claim.inputs.end() ? input->uniform : std::nullopt;
  }

  /// The tensor whose elements are an index as they are; with `wraps`, negative ones count from the
  /// end.
  static const node::Read* index_read(const Scalar& index, bool& wraps) {
    const Node& node = index.node();
    if (const auto* cast = std::get_if<node::Cast>(&node)) return index_read(*cast->arg, wraps);
    const auto* apply = std::get_if<node::Apply>(&node);
    if (apply == nullptr || apply->fn != Fn::Select) return std::get_if<node::Read>(&node);
    wraps = true;
    return index_read(apply->args[2], wraps);
  }

  /// Whether an index is an element of a tensor that may lie outside of its axis.
  bool may_be_out_of_range(const node::Read& read) {
    for (std::size_t axis = 0; axis < read.at.size(); ++axis) {
      bool wraps = false;
      const node::Read* index = index_read(read.at[axis], wraps);
      if (index == nullptr) continue;
      const auto range = range_of_operand(index->operand);
      const std::int64_t size = least_size(read.operand, axis);
      if (!range || range->first < (wraps ? -size : 0) || range->second >= size) return true;
    }
    return false;
  }

  /// The least and the largest element of a tensor of integers, where it is known.
  std::optional<std::pair<std::int64_t, std::int64_t>> range_of_operand(
      const std::string& name) const {
    const std::string* of = operand(name);
    if (of == nullptr) return std::nullopt;
    const auto input = std::ranges::find(claim_.claim.inputs, *of, &certify::Input::name);
    if (input != claim_.claim.inputs.end() && input->uniform) {
      const auto number = static_cast<std::int64_t>(*input->uniform);
      return std::pair(number, number);
    }
    const auto constant = claim_.constants.find(*of);
    if (constant == claim_.constants.end() || !is_integer(constant->second.dtype))
      return std::nullopt;
    std::pair<std::int64_t, std::int64_t> range(0, 0);
    for (std::int64_t i = 0; i < constant->second.count(); ++i) {
      const std::int64_t number = integer_at(constant->second, i);
      range = i == 0 ? std::pair(number, number)
                     : std::pair(std::min(range.first, number), std::max(range.second, number));
    }
    return range;
  }

  /// The least size of an axis: 1, where it is no number.
  std::int64_t least_size(const std::string& name, std::size_t axis) {
    const std::string* of = operand(name);
    const Shape shape = of == nullptr ? Shape{} : shape_of(*of);
    return axis < shape.size() ? shape[axis].constant().value_or(1) : 1;
  }

  Shape shape_of(const std::string& tensor) {
    const auto input = std::ranges::find(claim_.claim.inputs, tensor, &certify::Input::name);
    if (input != claim_.claim.inputs.end()) return input->type.shape;
    while (shaped_ < claim_.claim.values.size() && !shapes_.contains(tensor)) {
      const certify::Value& value = claim_.claim.values[shaped_++];
      std::vector<Shape> operands;
      for (const std::string& of : value.operands) operands.push_back(shape_of(of));
      const auto sizes = solve_sizes(*value.definition, operands);
      if (!sizes) continue;
      if (const auto types = output_types(*value.definition, *sizes))
        shapes_[value.name] = (*types)[value.output].shape;
    }
    const auto known = shapes_.find(tensor);
    return known == shapes_.end() ? Shape{} : known->second;
  }

  bool is_defined(const node::Apply& apply) {
    switch (apply.fn) {
      case Fn::Log: return sign(apply.args[0]) == Sign::Positive;
      case Fn::Sqrt: return sign(apply.args[0]) != Sign::Any;
      case Fn::Div:
      case Fn::FloorDiv:
      case Fn::Mod: {
        const auto divisor = number(apply.args[1]);
        return (divisor && *divisor != 0) || sign(apply.args[1]) == Sign::Positive;
      }
      case Fn::Pow: {
        if (sign(apply.args[0]) == Sign::Positive) return true;
        const auto exponent = number(apply.args[1]);
        if (!exponent || *exponent < 0) return false;
        return *exponent == std::floor(*exponent) || sign(apply.args[0]) != Sign::Any;
      }
      default: return true;
    }
  }

  void visit(const Scalar& scalar) {
    if (!seen_.insert(shared_id(scalar)).second) return;
    const Node& node = scalar.node();
    if (const auto* read = std::get_if<node::Read>(&node)) {
      // An index that wraps around is out of range in any case.
      if (read->otherwise != nullptr)
        visit(*read->otherwise);
      else if (may_be_out_of_range(*read))
        found_.insert(Assumed::Indices);
      return;
    }
    if (const auto* apply = std::get_if<node::Apply>(&node)) {
      if (scalar.sort() == Sort::Value)
        add_float(apply->fn);
      else if (is_data(scalar) &&
               (scalar.sort() == Sort::Integer || scalar.sort() == Sort::Unsigned))
        add_integer(apply->fn);
      else if (apply->args[0].sort() == Sort::Value)
        found_.insert(Assumed::NonFinite);  // comparisons
      if (!is_defined(*apply)) found_.insert(Assumed::Domain);
    } else if (const auto* cast = std::get_if<node::Cast>(&node)) {
      const Sort from = cast->arg->sort(), to = sort_of(cast->to);
      if (to == Sort::Value && from != Sort::Bool && is_data(*cast->arg)) {
        found_.insert(Assumed::Rounding);
        if (from == Sort::Value) found_.insert(Assumed::NonFinite);
      } else if (from == Sort::Value) {
        found_.insert({Assumed::NonFinite, Assumed::WrapAround});
      }
    } else if (const auto* component = std::get_if<node::Component>(&node)) {
      if (const auto simple = component->fold->simple()) {
        if (scalar.sort() == Sort::Value)
          add_float(*simple);
        else if (std::ranges::any_of(component->fold->lift, is_data))
          add_integer(*simple);
      }
    }
    for_each_part(scalar, [&](const Scalar& part) { visit(part); });
  }

  void add_float(Fn fn) {
    if (fn == Fn::Select) return;
    found_.insert(Assumed::NonFinite);
    const bool exact = fn == Fn::Max || fn == Fn::Min || fn == Fn::Neg || fn == Fn::Abs;
    if (!exact) found_.insert(Assumed::Rounding);
  }

  void add_integer(Fn fn) {
    const bool grows = fn == Fn::Add || fn == Fn::Sub || fn == Fn::Mul || fn == Fn::Neg ||
                       fn == Fn::Abs || fn == Fn::Pow || fn == Fn::Div || fn == Fn::ShiftLeft;
    if (grows) found_.insert(Assumed::WrapAround);
  }

  /// Whether it depends on elements of tensors, and not on positions and sizes alone.
  static bool is_data(const Scalar& scalar) {
    bool reads = false;
    for_each_read(scalar, [&](const node::Read&) { reads = true; });
    return reads || std::holds_alternative<node::Partial>(scalar.node());
  }

  const GraphClaim& claim_;
  const certify::Value* value_ = nullptr;
  std::map<std::string, Sign> signs_;    // by tensor
  std::map<std::string, Shape> shapes_;  // of the values before `shaped_`
  std::size_t shaped_ = 0;
  std::set<const void*> seen_;
  std::set<Assumed> found_;
};

constexpr struct {
  Assumed kind;
  std::string_view name, text;
  bool usual = false;
} kKinds[] = {
    {Assumed::Rounding, "rounding", "floating-point operations do not round", true},
    {Assumed::NonFinite, "non-finite", "no input and no result is infinite or NaN", true},
    {Assumed::Domain, "domain",
     "nothing is divided by zero, and no root or logarithm is taken of a number that has none"},
    {Assumed::Indices, "indices", "indices lie within the axes that they are of"},
    {Assumed::WrapAround, "wrap-around", "integers stay within the range of their types"},
    {Assumed::Constant, "constant", ""},
    {Assumed::Empty, "empty", "all sizes are at least 1", true},
    {Assumed::Sizes, "sizes", ""},
    {Assumed::Declared, "declared", ""},
};

}  // namespace

std::string_view to_string(Assumption::Kind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& row) { return row.kind; })->name;
}

bool is_usual(std::string_view kind) {
  const auto row = std::ranges::find(kKinds, kind, [](const auto& row) { return row.name; });
  return row != std::end(kKinds) && row->usual;
}

std::optional<Assumed> asked_of_operands(const Graph& graph, const GraphNode& node) {
  const auto operands = graph.inputs(node);
  if (operands.size() < 2) return std::nullopt;
  const auto varies = [&](ValueId id) { return id.present() && graph.constant(id) == nullptr; };
  if (node.op == op::div || node.op == op::mod)
    return is_integer(graph.type(operands[1]).dtype) && varies(operands[1])
               ? std::optional(Assumed::Domain)
               : std::nullopt;
  const std::pair<const OpDef*, std::size_t> kIndices[] = {
      {op::gather.get(), 1},           {op::gather_elements.get(), 1},
      {op::gather_nd.get(), 1},        {op::scatter_elements.get(), 1},
      {op::scatter_nd.get(), 1},       {op::tensor_scatter.get(), 2},
      {op::reverse_sequence.get(), 1}, {op::max_unpool.get(), 1}};
  for (const auto& [op, place] : kIndices)
    if (node.op == op && place < operands.size() && varies(operands[place]))
      return Assumed::Indices;
  return std::nullopt;
}

Assumption assumption_of(Assumption::Kind kind) {
  return {
      kind,
      std::string(std::ranges::find(kKinds, kind, [](const auto& row) { return row.kind; })->text)};
}

std::vector<Assumption> arithmetic_assumptions(const GraphClaim& claim) {
  const std::set<Assumed> found = Inspection(claim).kinds();
  std::vector<Assumption> result;
  for (const auto& row : kKinds)
    if (found.contains(row.kind)) result.push_back({row.kind, std::string(row.text)});
  return result;
}

}  // namespace tessera::prove
