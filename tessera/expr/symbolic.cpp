#include "tessera/expr/symbolic.h"

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "tessera/expr/symbolic_value.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

using symbolic::SymbolicValue;
using Maybe = std::optional<SymbolicValue>;

constexpr std::int64_t kMostElements = 1024;
constexpr int kMostVisits = 100'000;

class Evaluation {
 public:
  Evaluation(const Definition& definition, const Sizes& sizes,
             const std::vector<const Argument*>& inputs)
      : sizes_(sizes) {
    TESSERA_CHECK(inputs.size() == definition.inputs.size(), "{} inputs for {} operands",
                  inputs.size(), definition.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != nullptr) arguments_[definition.inputs[i].name] = inputs[i];
  }

  /// All elements, row-major, in storage form; nothing if one is not known.
  std::optional<std::vector<SymbolicValue>> elements(const Output& output) {
    std::vector<Axis> axes;
    std::vector<std::int64_t> shape;
    for (const MergedAxis& merged : output.axes) {
      axes.insert(axes.end(), merged.parts.begin(), merged.parts.end());
      shape.push_back(resolved(merged, sizes_).constant().value_or(-1));
    }
    if (element_count(shape).value_or(kMostElements + 1) > kMostElements) return std::nullopt;
    std::vector<SymbolicValue> result;
    const bool done = for_each_index(axes, [&] {
      const Maybe element = stored(output.value, output.dtype);
      if (element) result.push_back(*element);
      return element.has_value();
    });
    if (!done || (output.forward && !write(*output.forward, output.dtype, shape, result)))
      return std::nullopt;
    return result;
  }

 private:
  using Tuple = std::vector<SymbolicValue>;

  /// Memo of values at the current indices.
  struct Memo {
    std::unordered_map<const void*, Maybe> values;
    std::unordered_map<const Fold*, std::optional<Tuple>> folds;
  };

  /// Scope with an empty memo, for other values of the indices; restores the memo at its end.
  class MemoScope {
   public:
    explicit MemoScope(Memo& memo) : memo_(memo), outer_(std::exchange(memo, {})) {}
    ~MemoScope() { memo_ = std::move(outer_); }
    MemoScope(const MemoScope&) = delete;
    MemoScope& operator=(const MemoScope&) = delete;

   private:
    Memo& memo_;
    Memo outer_;
  };

  Maybe stored(const Scalar& scalar, DType dtype) {
    const Maybe value = of(scalar);
    return value ? symbolic::converted(*value, dtype) : std::nullopt;
  }

  bool write(const ScatterWrite& forward, DType dtype, const std::vector<std::int64_t>& shape,
             std::vector<SymbolicValue>& elements) {
    return for_each_index(forward.over, [&] {
      const auto place = position(forward.target, shape);
      if (!place) return false;
      Maybe value = stored(forward.value, dtype);
      SymbolicValue& old = elements[static_cast<std::size_t>(*place)];
      if (value && forward.combine)
        value = symbolic::applied(*forward.combine, sort_of(dtype), {old, *value});
      if (value) value = symbolic::converted(*value, dtype);
      if (value) old = *value;
      return value.has_value();
    });
  }

  /// Runs through axes of constant sizes, the last one fastest; false as soon as `visit` is.
  template <class Visit>
  bool for_each_index(const std::vector<Axis>& axes, Visit&& visit) {
    const std::vector<Bound> over = bounds(axes);
    const MemoScope here(memo_);  // the ids of these bounds are free again afterwards
    return for_each_index(over, 0, visit);
  }
  template <class Visit>
  bool for_each_index(const std::vector<Bound>& over, std::size_t depth, Visit&& visit) {
    if (depth == over.size()) return visit();
    const Maybe extent = of(over[depth].extent);
    const auto size = extent ? symbolic::integer(*extent) : std::nullopt;
    if (!size) return false;
    const std::string& axis = over[depth].axis;
    auto hidden = position_.extract(axis);  // an outer axis of the same name
    bool more = true;
    for (std::int64_t i = 0; more && i < *size; ++i) {
      position_[axis] = i;
      const MemoScope here(memo_);
      more = ++steps_ <= kMostVisits && for_each_index(over, depth + 1, visit);
    }
    position_.erase(axis);
    position_.insert(std::move(hidden));
    return more;
  }

  /// The row-major position of an element; nothing if it is not known or out of range.
  std::optional<std::int64_t> position(const std::vector<Scalar>& at,
                                       const std::vector<std::int64_t>& shape) {
    std::int64_t result = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const Maybe index = of(at[axis]);
      const auto place = index ? symbolic::integer(*index) : std::nullopt;
      if (!place || *place < 0 || *place >= shape[axis]) return std::nullopt;
      result = result * shape[axis] + *place;
    }
    return result;
  }

  Maybe of(const Scalar& scalar) {
    if (const auto it = memo_.values.find(scalar.id()); it != memo_.values.end()) return it->second;
    if (++steps_ > kMostVisits) return std::nullopt;
    Maybe result =
        std::visit([&](const auto& n) { return evaluate(n, scalar.sort()); }, scalar.node());
    memo_.values[scalar.id()] = result;
    return result;
  }

  Maybe evaluate(const node::Constant& n, Sort) {
    if (n.sort == Sort::Value) return SymbolicValue(n.number);
    if (n.sort == Sort::Unsigned && n.integer < 0) return std::nullopt;
    return SymbolicValue(Dim(n.integer));
  }
  Maybe evaluate(const node::Index& n, Sort) {
    const auto it = position_.find(n.axis);
    if (it == position_.end()) return std::nullopt;
    return SymbolicValue(Dim(it->second));
  }
  Maybe evaluate(const node::Size& n, Sort) {
    const Dim size = resolved(n.dim, sizes_);
    std::set<std::string> symbols;
    size.collect_symbols(symbols);
    for (const std::string& symbol : symbols)
      if (symbol.starts_with('#')) return std::nullopt;
    return symbolic::known(size);
  }
  Maybe evaluate(const node::Partial& n, Sort) {
    const Tuple* side = n.side == node::Partial::Side::Left ? left_ : right_;
    if (side == nullptr) return std::nullopt;
    return (*side)[static_cast<std::size_t>(n.component)];
  }
  Maybe evaluate(const node::Cast& n, Sort) {
    const Maybe arg = of(*n.arg);
    return arg ? symbolic::converted(*arg, n.to) : std::nullopt;
  }

  Maybe evaluate(const node::Read& n, Sort) {
    const auto it = arguments_.find(n.operand);
    if (it == arguments_.end()) return std::nullopt;
    const Argument& source = *it->second;
    if (source.type.shape.size() != n.at.size()) return std::nullopt;
    // Range checks may be decidable where the element is unknown.
    std::int64_t place = 0;
    bool numbered = source.value || source.content;  // such a source is small
    for (std::size_t axis = 0; axis < n.at.size(); ++axis) {
      const Maybe index = of(n.at[axis]);
      const auto at = index ? symbolic::whole(*index) : std::nullopt;
      if (!at) return std::nullopt;
      const Dim& size = source.type.shape[axis];
      const auto inside = symbolic::decided_less(*at, size),
                 before = symbolic::decided_less(*at, 0);
      if (!inside || !before) return std::nullopt;
      if (!*inside || *before) return n.otherwise != nullptr ? of(*n.otherwise) : std::nullopt;
      numbered = numbered && at->constant() && size.constant();
      if (numbered) place = place * *size.constant() + *at->constant();
    }
    if (!numbered) return std::nullopt;
    return symbolic::element(source, place);
  }

  Maybe evaluate(const node::Apply& n, Sort sort) {
    if (n.fn == Fn::Select) {
      const Maybe condition = of(n.args[0]);
      const auto holds = condition ? symbolic::integer(*condition) : std::nullopt;
      if (!holds) return std::nullopt;
      const Scalar& chosen = n.args[*holds != 0 ? 1 : 2];
      const Maybe value = of(chosen);
      return value ? symbolic::joined(*value, sort) : std::nullopt;
    }
    // Short-circuit evaluation of && and ||.
    if ((n.fn == Fn::And || n.fn == Fn::Or) && sort == Sort::Bool) {
      const SymbolicValue settles = Dim(n.fn == Fn::Or ? 1 : 0);
      for (const Scalar& arg : n.args)
        if (of(arg) == settles) return settles;
    }
    // Arguments are brought to one sort before they meet.
    Sort common = n.args[0].sort();
    if (n.args.size() == 2) common = apply(Fn::Add, n.args).sort();
    if (sort == Sort::Value) common = Sort::Value;
    std::vector<SymbolicValue> args;
    for (const Scalar& arg : n.args) {
      const Maybe value = of(arg);
      const Maybe joined = value ? symbolic::joined(*value, common) : std::nullopt;
      if (!joined) return std::nullopt;
      args.push_back(*joined);
    }
    return symbolic::applied(n.fn, common, args);
  }

  Maybe evaluate(const node::Component& n, Sort) {
    const Fold& fold = *n.fold;
    auto known = memo_.folds.find(&fold);
    if (known == memo_.folds.end()) known = memo_.folds.emplace(&fold, folded(fold)).first;
    if (!known->second) return std::nullopt;
    return (*known->second)[static_cast<std::size_t>(n.index)];
  }

  std::optional<Tuple> tuple(const std::vector<Scalar>& scalars) {
    Tuple result;
    for (const Scalar& scalar : scalars) {
      const Maybe value = of(scalar);
      if (!value) return std::nullopt;
      result.push_back(*value);
    }
    return result;
  }

  std::optional<Tuple> folded(const Fold& fold) {
    std::optional<Tuple> total = tuple(fold.init);
    if (!total) return std::nullopt;
    const bool done = for_each_index(fold.bounds, 0, [&] {
      const std::optional<Tuple> next = tuple(fold.lift);
      if (!next) return false;
      const auto outer_left = std::exchange(left_, &*total);
      const auto outer_right = std::exchange(right_, &*next);
      const MemoScope here(memo_);
      std::optional<Tuple> combined = tuple(fold.combine);
      left_ = outer_left;
      right_ = outer_right;
      total = std::move(combined);
      return total.has_value();
    });
    return done ? total : std::nullopt;
  }

  const Sizes& sizes_;
  std::map<std::string, const Argument*, std::less<>> arguments_;
  std::map<std::string, std::int64_t, std::less<>> position_;
  const Tuple* left_ = nullptr;
  const Tuple* right_ = nullptr;
  Memo memo_;
  int steps_ = 0;
};

std::optional<std::vector<SymbolicValue>> elements(const Definition& definition, const Sizes& sizes,
                                                   const std::vector<const Argument*>& inputs,
                                                   std::size_t output) {
  TESSERA_CHECK(output < definition.outputs.size(), "there is no output {}", output);
  if (definition.outputs[output].dtype == DType::String) return std::nullopt;
  return Evaluation(definition, sizes, inputs).elements(definition.outputs[output]);
}

}  // namespace

std::optional<std::vector<Dim>> symbolic_values(const Definition& definition, const Sizes& sizes,
                                                const std::vector<const Argument*>& inputs,
                                                std::size_t output) {
  const auto known = elements(definition, sizes, inputs, output);
  if (!known) return std::nullopt;
  std::vector<Dim> result;
  for (const SymbolicValue& element : *known) {
    const std::optional<Dim> whole = symbolic::whole(element);
    if (!whole) return std::nullopt;
    result.push_back(*whole);
  }
  return result;
}

std::optional<Tensor> known_content(const Definition& definition, const Sizes& sizes,
                                    const std::vector<const Argument*>& inputs,
                                    std::size_t output) {
  const auto known = elements(definition, sizes, inputs, output);
  if (!known) return std::nullopt;
  const DType dtype = definition.outputs[output].dtype;
  std::vector<std::int64_t> shape;
  for (const Dim& dim : definition.outputs[output].shape())
    shape.push_back(*resolved(dim, sizes).constant());
  Buffer buffer(known->size() * static_cast<std::size_t>(byte_width(dtype)));
  for (std::size_t i = 0; i < known->size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (const auto* number = std::get_if<double>(&(*known)[i])) {
      store_number(dtype, buffer.data(), place, *number);
    } else if (const auto integer = symbolic::integer((*known)[i])) {
      store_integer(dtype, buffer.data(), place, *integer);
    } else {
      return std::nullopt;
    }
  }
  return Tensor{dtype, std::move(shape), std::move(buffer).freeze()};
}

}  // namespace tessera
