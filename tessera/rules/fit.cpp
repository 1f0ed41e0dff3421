#include "tessera/rules/fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/expr/symbolic_value.h"
#include "tessera/rules/meaning.h"

namespace tessera::rules {

bool Fit::take_type(const Type& wanted, const Type& found) {
  if (!wanted.is_ranked_tensor() || !found.is_ranked_tensor()) return false;
  if (wanted.dtype == DType::F32 && pattern_->generic) {
    if (!is_float(found.dtype) || real_.value_or(found.dtype) != found.dtype) return false;
    real_ = found.dtype;
    binding_.bind_real(found.dtype);
  } else if (wanted.dtype != found.dtype) {
    return false;
  }
  return true;
}

bool Fit::take_attrs(const GraphNode& wanted, const Attrs& found,
                     const std::vector<ValueInfo>& inputs) {
  for (const auto& [name, attr] : wanted.attrs->entries()) {
    const auto* symbol = std::get_if<Symbol>(&attr);
    const Attr* value = found.find(name);
    if (symbol == nullptr || value == nullptr) continue;
    const auto spec = std::ranges::find(wanted.op->attrs, name, &AttrSpec::name);
    if (!binding_.bind_attr(symbol->name, *value, spec->neutral.value_or(1))) return false;
  }
  return same_meaning(*wanted.op, binding_.attrs(*wanted.op, *wanted.attrs), found, inputs);
}

bool Fit::take_sizes(const std::vector<Dim>& wanted, const Tensor& found) {
  if (found.count() != static_cast<std::int64_t>(wanted.size())) return false;
  const std::vector<std::int64_t> sizes = integers_of(found);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!unify(wanted[i], sizes[i])) return false;
  return true;
}

bool Fit::is_constant(const Tensor& wanted, const Tensor& found) const {
  const Tensor number = binding_.constant(wanted);
  if (found.dtype != number.dtype) return false;
  if (!wanted.shape.empty() || !(is_float(number.dtype) || number.dtype == DType::Bool))
    return found.shape == number.shape && equal(Attr(found), Attr(number));
  const double value = number_at(number, 0);
  for (std::int64_t i = 0; i < found.count(); ++i) {
    const double other = number_at(found, i);
    // x - 0 is x, and x - (-0) is not where x is -0.
    if (other != value || std::signbit(other) != std::signbit(value)) return false;
  }
  return true;
}

/// Solves `wanted = found` for a size that is not known yet; with several it waits.
bool Fit::unify(const Dim& wanted, const Dim& found) {
  std::set<std::string> symbols;
  wanted.collect_symbols(symbols);
  std::erase_if(symbols, [&](const std::string& s) { return binding_.is_bound(s); });
  if (symbols.empty()) return binding_.size(wanted) == found;
  const auto linear =
      symbols.size() == 1 ? wanted.linear_in(*symbols.begin()) : std::optional<Dim::Linear>();
  if (!linear) {
    open_.emplace_back(wanted, found);
    return true;
  }
  const Dim factor = binding_.size(linear->factor);
  const Dim numerator = found - binding_.size(linear->rest);
  const Dim size = floor_div(numerator, factor);
  // What is no axis by itself may be nothing: r of a window 2*r + 1.
  const std::int64_t least = wanted.as_symbol() ? 1 : 0;
  return size * factor == numerator && size.constant().value_or(least) >= least &&
         binding_.bind_size(*symbols.begin(), size);
}

bool Fit::unify_shapes(const Shape& wanted, const Shape& found) {
  if (wanted.size() != found.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (found[i].is(0) || !unify(wanted[i], found[i])) return false;
  return true;
}

bool Fit::solve_sizes(const TypeOf& found) {
  const Graph& source = pattern_->rule.source;
  for (const ValueId id : source.inputs())
    if (const Type* type = found(id))
      if (!unify_shapes(*source.type(id).shape, *type->shape)) return false;
  for (std::size_t before = 0; !open_.empty() && before != open_.size();) {
    before = open_.size();
    for (const auto& [wanted, is] : std::exchange(open_, {}))
      if (!unify(wanted, is)) return false;
  }
  return open_.empty();
}

bool Fit::holds(const Condition& condition) const {
  std::set<std::string> symbols;
  condition.left.collect_symbols(symbols);
  condition.right.collect_symbols(symbols);
  if (!std::ranges::all_of(symbols, [&](const std::string& s) { return binding_.is_bound(s); }))
    return false;
  const Dim left = binding_.size(condition.left), right = binding_.size(condition.right);
  if (condition.kind == Condition::Kind::Equal) return left == right;
  return symbolic::decided_less(right, left) == std::optional(false);
}

bool Fit::complete(const TypeOf& found) {
  if (!solve_sizes(found)) return false;
  if (!std::ranges::all_of(pattern_->rule.guard, [&](const Condition& c) { return holds(c); }))
    return false;
  // What stands for a number is of no shape that shows.
  const Graph& source = pattern_->rule.source;
  for (std::uint32_t i = 0; i < source.value_count(); ++i) {
    const Type* type = found(ValueId{i});
    if (type == nullptr || source.constant(ValueId{i}) != nullptr) continue;
    if (binding_.type(source.type(ValueId{i})) != *type) return false;
  }
  return true;
}

bool Fit::tells_target() const {
  const Graph& target = pattern_->rule.target;
  std::set<std::string> sizes;
  std::set<ValueId> used(target.outputs().begin(), target.outputs().end());
  for (const GraphNode& node : target.nodes()) {
    used.insert(target.inputs(node).begin(), target.inputs(node).end());
    if (binding_.attrs(*node.op, *node.attrs).symbolic() != nullptr) return false;
  }
  for (const ValueId id : target.inputs())
    if (used.contains(id))
      for (const Dim& dim : target.type(id).shape.value_or(Shape{})) dim.collect_symbols(sizes);
  return std::ranges::all_of(sizes, [&](const std::string& s) { return binding_.is_bound(s); });
}

}  // namespace tessera::rules
