#include "tessera/expr/walk.h"

#include "tessera/support/flat_map.h"

namespace tessera {

void for_each_within(const Scalar& scalar, const std::function<void(const Scalar&)>& visit) {
  struct Nothing {};
  FlatMap<Nothing> seen;
  const auto walk = [&](const auto& self, const Scalar& part) -> void {
    if (!seen.try_emplace(reinterpret_cast<std::uintptr_t>(part.id())).second) return;
    visit(part);
    for_each_part(part, [&](const Scalar& inner) { self(self, inner); });
  };
  walk(walk, scalar);
}

void for_each_read(const Scalar& scalar, const std::function<void(const node::Read&)>& visit) {
  for_each_within(scalar, [&](const Scalar& part) {
    if (const auto* read = std::get_if<node::Read>(&part.node())) visit(*read);
  });
}

bool has_fold(const Scalar& scalar) {
  bool found = false;
  for_each_within(scalar, [&](const Scalar& part) {
    found = found || std::holds_alternative<node::Component>(part.node());
  });
  return found;
}

std::set<std::string> axes_in(const Scalar& scalar) {
  std::set<std::string> axes;
  for_each_within(scalar, [&](const Scalar& part) {
    if (const auto* index = std::get_if<node::Index>(&part.node())) axes.insert(index->axis);
  });
  return axes;
}

}  // namespace tessera
