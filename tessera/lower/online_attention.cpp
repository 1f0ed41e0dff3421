#include "tessera/lower/online_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/product.h"

namespace tessera::lower {
namespace {

/// Dependence of a reduction over the keys on its key and on the rows that are reduced before it.
class OnlineReduction {
 public:
  OnlineReduction(std::string key, std::set<std::string> rows)
      : key_(std::move(key)), rows_(std::move(rows)) {}

  bool varies_with_key(const Scalar& scalar) const { return axes_in(scalar).contains(key_); }
  bool reads_rows(const Scalar& scalar) const {
    bool any = false;
    for_each_read(scalar,
                  [&](const node::Read& read) { any = any || rows_.contains(read.operand); });
    return any;
  }

  /// The exponent of a term; nothing where there is none to be found.
  std::optional<Scalar> exponent_of(const Scalar& term) {
    exponent_.reset();
    const ScalarProduct product = ScalarProduct::of(term);
    for (const bool under : {false, true})
      for (const Scalar& factor : under ? product.under : product.over) {
        if (!reads_rows(factor)) continue;
        const auto* apply = std::get_if<node::Apply>(&factor.node());
        if (apply == nullptr || apply->fn != Fn::Exp || !collect(apply->args[0], {}, under))
          return std::nullopt;
      }
    return exponent_;
  }

 private:
  /// Adds the terms of a sum that read rows, if they depend on no key.
  bool collect(const Scalar& sum, const std::optional<Scalar>& factor, bool negative) {
    if (!reads_rows(sum)) return true;
    if (!varies_with_key(sum)) {
      const Scalar term = factor ? *factor * sum : sum;
      if (!exponent_)
        exponent_ = negative ? -term : term;
      else
        exponent_ = negative ? *exponent_ - term : *exponent_ + term;
      return true;
    }
    const auto* apply = std::get_if<node::Apply>(&sum.node());
    if (apply == nullptr) return false;
    const std::vector<Scalar>& args = apply->args;
    const auto is_constant = [&](const Scalar& x) { return !reads_rows(x) && !varies_with_key(x); };
    switch (apply->fn) {
      case Fn::Add: return collect(args[0], factor, negative) && collect(args[1], factor, negative);
      case Fn::Sub:
        return collect(args[0], factor, negative) && collect(args[1], factor, !negative);
      case Fn::Neg: return collect(args[0], factor, !negative);
      case Fn::Mul:
        for (const int i : {0, 1})
          if (is_constant(args[static_cast<std::size_t>(i)])) {
            const Scalar& constant = args[static_cast<std::size_t>(i)];
            return collect(args[static_cast<std::size_t>(1 - i)],
                           factor ? *factor * constant : constant, negative);
          }
        return false;
      case Fn::Div:
        return is_constant(args[1]) &&
               collect(args[0], (factor ? *factor : Scalar(1.0)) / args[1], negative);
      default: return false;
    }
  }

  std::string key_;
  std::set<std::string> rows_;
  std::optional<Scalar> exponent_;
};

/// where(condition, 0, x), whose condition depends on no key.
struct BlankRows {
  Scalar condition, otherwise;
};
std::optional<BlankRows> blank_rows(const Scalar& weights, const OnlineReduction& reduction) {
  const auto* select = std::get_if<node::Apply>(&weights.node());
  if (select == nullptr || select->fn != Fn::Select || !is_zero(select->args[1]) ||
      reduction.varies_with_key(select->args[0]))
    return std::nullopt;
  return BlankRows{select->args[0], select->args[2]};
}

/// Number of a constant.
std::optional<double> number_of(const Scalar& scalar) {
  const auto* constant = std::get_if<node::Constant>(&scalar.node());
  if (constant == nullptr || constant->sort != Sort::Value) return std::nullopt;
  return constant->number;
}
bool is_lowest(const Scalar& scalar) {
  return number_of(scalar) == -std::numeric_limits<double>::infinity();
}
/// A number below infinity, or -inf by a condition.
bool is_low(const Scalar& scalar) {
  if (const auto number = number_of(scalar))
    return *number < std::numeric_limits<double>::infinity();
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  return apply != nullptr && apply->fn == Fn::Select && is_low(apply->args[1]) &&
         is_low(apply->args[2]);
}
bool is_positive(const Scalar& scalar) {
  const auto number = number_of(scalar);
  return number && *number > 0 && std::isfinite(*number);
}

/// Whether a value is -inf where this sum is.
bool keeps_lowest(const Scalar& value, const Fold& sum) {
  if (const auto* component = std::get_if<node::Component>(&value.node()))
    return component->fold.get() == &sum;
  const auto* apply = std::get_if<node::Apply>(&value.node());
  if (apply == nullptr) return false;
  const auto keeps = [&](std::size_t i) { return keeps_lowest(apply->args[i], sum); };
  switch (apply->fn) {
    case Fn::Add:
      return (keeps(0) && is_low(apply->args[1])) || (keeps(1) && is_low(apply->args[0]));
    case Fn::Mul:
      return (keeps(0) && is_positive(apply->args[1])) || (keeps(1) && is_positive(apply->args[0]));
    case Fn::Div: return keeps(0) && is_positive(apply->args[1]);
    case Fn::Select:
      return (keeps(1) || is_lowest(apply->args[1])) && (keeps(2) || is_lowest(apply->args[2]));
    default: return false;
  }
}

/// Looks for conditions without which the scores are -inf.
class VisibilityConditions {
 public:
  explicit VisibilityConditions(const AttentionForm& form) : form_(form) {
    for (const MergedAxis& merged : form.scores.stage->output.axes)
      for (const Axis& axis : merged.parts) {
        const auto loop = form.scores.loop_of.find(axis.name);
        const bool moves = loop != form.scores.loop_of.end();
        extents_.emplace(axis.name, moves ? extent(loop->second) : 1);
        if (moves && loop->second == form.key) key_ = axis.name;
        if (moves && loop->second == form.row) row_ = axis.name;
      }
  }

  VisibleKeys of(const Scalar& scores) {
    visit(scores);
    return std::move(found_);
  }

 private:
  std::int64_t extent(int loop) const { return form_.extents[static_cast<std::size_t>(loop)]; }
  void visit(const Scalar& scores) {
    const auto* apply = std::get_if<node::Apply>(&scores.node());
    if (apply == nullptr) return;
    if (apply->fn == Fn::Add) {
      for (const Scalar& term : apply->args) visit(term);
    } else if (apply->fn == Fn::Select) {
      if (is_lowest(apply->args[2])) visit(apply->args[1]), require(apply->args[0], true);
      if (is_lowest(apply->args[1])) visit(apply->args[2]), require(apply->args[0], false);
    }
  }

  void require(const Scalar& condition, bool holds) {
    const auto* apply = std::get_if<node::Apply>(&condition.node());
    if (apply == nullptr) return;
    switch (apply->fn) {
      case Fn::Not: return require(apply->args[0], !holds);
      case Fn::And:
      case Fn::Or:
        // A conjunction that holds, a disjunction that does not: both of its parts.
        if ((apply->fn == Fn::And) == holds)
          for (const Scalar& part : apply->args) require(part, holds);
        return;
      case Fn::Less:
      case Fn::LessEqual: return compare(condition, *apply, holds);
      default: return;
    }
  }

  /// Conditions that hold are what is assumed where all keys are visible.
  void compare(const Scalar& condition, const node::Apply& apply, bool holds) {
    if (apply.args[0].sort() != Sort::Integer || !holds) return;
    const Sizes& sizes = form_.scores.stage->sizes;
    const auto low = affine(apply.args[0], extents_, sizes),
               high = affine(apply.args[1], extents_, sizes);
    const auto difference = low && high ? high->plus(*low, -1) : std::nullopt;
    if (!difference) return;
    // difference >= strict
    const std::int64_t strict = apply.fn == Fn::Less ? 1 : 0, key = difference->factor(key_),
                       row = row_.empty() ? 0 : difference->factor(row_);
    if ((key != 1 && key != -1) || (row != 0 && row != -key)) return;
    const AffineIndex others =
        difference->without([&](const std::string& name) { return name == key_ || name == row_; });
    Range rest = range(others, extents_);
    rest = {rest.low - strict, rest.high - strict};
    if (key == -1)
      found_.last.push_back({condition, row, rest});
    else
      found_.first.push_back({condition, -row, {-rest.high, -rest.low}});
  }

  const AttentionForm& form_;
  AxisExtents extents_;
  std::string key_, row_;
  VisibleKeys found_;
};

}  // namespace

VisibleKeys visible_keys(const AttentionForm& form) {
  return VisibilityConditions(form).of(form.scores.stage->output.value);
}

bool keeps_lowest(const AttentionForm& form) {
  return keeps_lowest(form.scores.stage->output.value, *form.scores.fold);
}

std::optional<OnlineAttention> online_attention(const AttentionForm& form) {
  OnlineAttention online{.weights = form.weights, .outside = form.outside};
  std::set<std::string> rows;
  for (const AttentionStage& stage : form.between) {
    const Fold& fold = *stage.fold;
    if (fold.init.size() != 1) return std::nullopt;
    OnlineReduction reduction(fold.bounds[0].axis, rows);
    std::optional<Scalar> exponent;
    if (reduction.reads_rows(fold.lift[0]) || reduction.reads_rows(fold.init[0])) {
      exponent = reduction.exponent_of(fold.lift[0]);
      if (!exponent || fold.simple() != Fn::Add) return std::nullopt;
    }
    online.exponents.push_back(exponent);
    rows.insert(stage.stage->name());
  }
  OnlineReduction reduction(form.result.fold->bounds[0].axis, rows);
  if (const auto blank = blank_rows(online.weights, reduction)) {
    online.blank = blank->condition;
    ScalarProduct product = ScalarProduct::of(blank->otherwise);
    const auto outside =
        product.take([&](const Scalar& factor) { return !reduction.varies_with_key(factor); });
    if (outside) online.outside = online.outside ? *online.outside * *outside : *outside;
    const auto weights = product.take([](const Scalar&) { return true; });
    online.weights = weights ? *weights : Scalar(1.0);
  }
  if (!reduction.reads_rows(online.weights)) return online;
  online.result_exponent = reduction.exponent_of(online.weights);
  if (!online.result_exponent) return std::nullopt;
  return online;
}

}  // namespace tessera::lower
