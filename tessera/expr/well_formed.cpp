#include "tessera/expr/well_formed.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tessera/expr/walk.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

bool is_whole(Sort sort) {
  return sort == Sort::Integer || sort == Sort::Unsigned;
}

struct SortError {
  std::string operator()(const node::Constant&) const { return {}; }
  std::string operator()(const node::Index&) const { return {}; }
  std::string operator()(const node::Size&) const { return {}; }
  std::string operator()(const node::Partial&) const { return {}; }
  std::string operator()(const node::Cast&) const { return {}; }

  std::string operator()(const node::Read& n) const {
    for (const Scalar& index : n.at)
      if (!is_whole(index.sort())) return "an index is not an integer";
    if (n.otherwise != nullptr && n.otherwise->sort() != n.sort)
      return fmt::format("{} is read as a {} or else a {}", n.operand, to_string(n.sort),
                         to_string(n.otherwise->sort()));
    return {};
  }
  std::string operator()(const node::Apply& n) const {
    const auto of = [&](std::size_t i) { return n.args[i].sort(); };
    switch (n.fn) {
      case Fn::Not: return of(0) == Sort::Value ? "not is taken of a value" : "";
      case Fn::And:
      case Fn::Or:
      case Fn::Xor:
        if (of(0) == Sort::Value || of(0) != of(1))
          return fmt::format("{} is taken of a {} and a {}", to_string(n.fn), to_string(of(0)),
                             to_string(of(1)));
        return {};
      case Fn::ShiftLeft:
      case Fn::ShiftRight:
        return is_whole(of(0)) && is_whole(of(1)) ? ""
                                                  : "something else than an integer is shifted";
      case Fn::Select: return of(0) == Sort::Bool ? "" : "a condition is not a truth value";
      case Fn::Neg:
      case Fn::Abs:
      case Fn::Exp:
      case Fn::Log:
      case Fn::Sqrt:
      case Fn::Sin:
      case Fn::Cos:
      case Fn::Atan:
      case Fn::Tanh:
      case Fn::Erf:
      case Fn::Floor:
      case Fn::Round:
      case Fn::Add:
      case Fn::Sub:
      case Fn::Mul:
      case Fn::Div:
      case Fn::FloorDiv:
      case Fn::Mod:
      case Fn::Pow:
      case Fn::Max:
      case Fn::Min:
      case Fn::Equal:
      case Fn::Less:
      case Fn::LessEqual: return {};
    }
    return {};
  }
  std::string operator()(const node::Component& n) const {
    for (const Bound& bound : n.fold->bounds)
      if (!is_whole(bound.extent.sort())) return "a bound is not an integer";
    return {};
  }
};

/// Free axes and partials of an expression, and the axes of the folds in it.
struct FreeNames {
  std::set<std::string> axes;
  std::set<std::string> folded;
  std::set<std::pair<int, Sort>> partials;

  void add(const FreeNames& other) {
    axes.insert(other.axes.begin(), other.axes.end());
    folded.insert(other.folded.begin(), other.folded.end());
    partials.insert(other.partials.begin(), other.partials.end());
  }
};

class Scopes {
 public:
  const FreeNames& of(const Scalar& scalar) {
    const void* id = shared_id(scalar);
    if (const auto it = memo_.find(id); it != memo_.end()) return it->second;
    FreeNames free;
    if (const auto* component = std::get_if<node::Component>(&scalar.node())) {
      free = of_fold(*component->fold);
    } else {
      if (const auto* index = std::get_if<node::Index>(&scalar.node()))
        free.axes.insert(index->axis);
      if (const auto* partial = std::get_if<node::Partial>(&scalar.node()))
        free.partials.insert({partial->component, partial->sort});
      if (const auto* size = std::get_if<node::Size>(&scalar.node()))
        size->dim.collect_symbols(symbols);
      for_each_part(scalar, [&](const Scalar& part) { free.add(of(part)); });
    }
    // Limit on axes: sets of names are propagated through the whole expression, in quadratic time.
    constexpr std::size_t kMostAxes = 256;
    if (std::max(free.axes.size(), free.folded.size()) > kMostAxes)
      error = "there are too many axes";
    if (!error.empty()) free = {};
    return memo_[id] = std::move(free);
  }

  std::set<std::string> symbols;  // all sizes that were met
  std::string error;

 private:
  FreeNames of_fold(const Fold& fold) {
    FreeNames free, inner;
    std::set<std::string> bound_axes;
    for (const Bound& bound : fold.bounds) {
      free.add(of(bound.extent));  // all are computed before the fold runs
      if (!bound_axes.insert(bound.axis).second)
        error = fmt::format("a fold runs twice over {}", bound.axis);
    }
    for (const Scalar& lift : fold.lift) inner.add(of(lift));
    for (const std::string& axis : bound_axes) {
      inner.axes.erase(axis);
      if (inner.folded.contains(axis) || free.folded.contains(axis))
        error = fmt::format("a fold over {} is inside of another", axis);
    }
    free.add(inner);
    for (const Scalar& init : fold.init) free.add(of(init));
    free.folded.insert(bound_axes.begin(), bound_axes.end());
    for (const Scalar& combine : fold.combine) {
      const FreeNames& combined = of(combine);
      free.axes.insert(combined.axes.begin(), combined.axes.end());
      free.folded.insert(combined.folded.begin(), combined.folded.end());
      for (const auto& [component, sort] : combined.partials)
        if (static_cast<std::size_t>(component) >= fold.init.size() ||
            fold.init[static_cast<std::size_t>(component)].sort() != sort)
          error = fmt::format("a fold has no {} component {}", to_string(sort), component);
    }
    return free;
  }

  std::unordered_map<const void*, FreeNames> memo_;
};

/// Sizes that the shapes of the operands determine, by the steps of solve_sizes.
std::set<std::string> told_by(const std::vector<Operand>& operands, std::string& error) {
  std::set<std::string> told;
  for (bool progress = true; progress;) {
    progress = false;
    error.clear();
    for (const Operand& operand : operands) {
      for (const Dim& dim : operand.shape) {
        std::set<std::string> symbols;
        dim.collect_symbols(symbols);
        std::erase_if(symbols,
                      [&](const auto& s) { return !s.starts_with('#') || told.contains(s); });
        if (symbols.empty()) continue;
        if (symbols.size() == 1 && dim.linear_in(*symbols.begin())) {
          told.insert(*symbols.begin());
          progress = true;
        } else {
          error = fmt::format("the shape of {} does not tell the size {}", operand.name,
                              *symbols.begin());
        }
      }
    }
  }
  return told;
}

}  // namespace

std::string sort_error(const Scalar& scalar) {
  return std::visit(SortError{}, scalar.node());
}

std::string scope_error(const Definition& definition) {
  std::string error;
  const std::set<std::string> told = told_by(definition.inputs, error);
  if (!error.empty()) return error;

  Scopes scopes;
  const auto open = [&](const Scalar& scalar, const std::set<std::string>& axes) -> std::string {
    const FreeNames& free = scopes.of(scalar);
    if (!scopes.error.empty()) return scopes.error;
    if (!free.partials.empty()) return "left and right are used outside of a fold";
    for (const std::string& axis : free.axes)
      if (!axes.contains(axis)) return fmt::format("there is no axis {} here", axis);
    for (const std::string& axis : free.folded)
      if (axes.contains(axis)) return fmt::format("a fold runs over {}, an axis around it", axis);
    return {};
  };
  const auto declare = [&](const Axis& axis, std::set<std::string>& axes) {
    axis.size().collect_symbols(scopes.symbols);
    if (!axes.insert(axis.name).second) error = fmt::format("there are two axes {}", axis.name);
  };
  for (const Output& output : definition.outputs) {
    std::set<std::string> axes, written;
    for (const MergedAxis& merged : output.axes)
      for (const Axis& part : merged.parts) declare(part, axes);
    if (error.empty()) error = open(output.value, axes);
    if (output.forward) {
      for (const Axis& axis : output.forward->over) declare(axis, written);
      for (const Scalar& target : output.forward->target)
        if (error.empty()) error = open(target, written);
      if (error.empty()) error = open(output.forward->value, written);
      const Sort sort = output.forward->value.sort();
      if (error.empty() && (sort == Sort::Value) != is_float(output.dtype))
        error = fmt::format("a {} is scattered into {}", to_string(sort), to_string(output.dtype));
    }
    if (!error.empty()) return error;
  }
  for (const std::string& symbol : scopes.symbols)
    if (symbol.starts_with('#') && !told.contains(symbol))
      return fmt::format("no operand tells the size {}", symbol);
  return {};
}

}  // namespace tessera
