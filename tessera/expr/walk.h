#pragma once

#include <functional>
#include <set>
#include <string>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Calls `visit` on each expression that this one is directly made of, in the order of their text:
/// indices and what stands in for them, arguments, and of a fold its bounds, init, lift and
/// combine.
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

/// What a memo table that does not tell the components of a fold apart goes by.
inline const void* shared_id(const Scalar& scalar) {
  const auto* component = std::get_if<node::Component>(&scalar.node());
  return component != nullptr ? component->fold.get() : scalar.id();
}

/// Calls `visit` on every expression that this one is made of, each once, outer ones first.
void for_each_within(const Scalar& scalar, const std::function<void(const Scalar&)>& visit);

/// The reads among them.
void for_each_read(const Scalar& scalar, const std::function<void(const node::Read&)>& visit);

bool has_fold(const Scalar& scalar);

/// The axes whose positions occur.
std::set<std::string> axes_in(const Scalar& scalar);

}  // namespace tessera
