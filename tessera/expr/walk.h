#pragma once

#include <functional>
#include <set>
#include <string>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Visits the direct operands of an expression, in the order of their text: indices and the
/// out-of-range value, arguments, and of a fold its bounds, init, lift and combine.
template <class Visit>
void for_each_part(const Scalar& scalar, Visit&& visit) {
  const Node& node = scalar.node();
  if (const auto* read = std::get_if<node::Read>(&node)) {
    for (const Scalar& index : read->at) visit(index);
    if (read->otherwise != nullptr) visit(*read->otherwise);
  } else if (const auto* apply = std::get_if<node::Apply>(&node)) {
    for (const Scalar& arg : apply->args) visit(arg);
  } else if (const auto* cast = std::get_if<node::Cast>(&node)) {
    visit(*cast->arg);
  } else if (const auto* component = std::get_if<node::Component>(&node)) {
    const Fold& fold = *component->fold;
    for (const Bound& bound : fold.bounds) visit(bound.extent);
    for (const auto* part : {&fold.init, &fold.lift, &fold.combine})
      for (const Scalar& scalar : *part) visit(scalar);
  }
}

/// Key for memo tables that treat all components of a fold as one.
inline const void* shared_id(const Scalar& scalar) {
  const auto* component = std::get_if<node::Component>(&scalar.node());
  return component != nullptr ? component->fold.get() : scalar.id();
}

/// Visits every subexpression once, outer ones first.
void for_each_within(const Scalar& scalar, const std::function<void(const Scalar&)>& visit);

/// Visits every read of an operand.
void for_each_read(const Scalar& scalar, const std::function<void(const node::Read&)>& visit);

bool has_fold(const Scalar& scalar);

/// Axes whose positions occur in an expression.
std::set<std::string> axes_in(const Scalar& scalar);

}  // namespace tessera
