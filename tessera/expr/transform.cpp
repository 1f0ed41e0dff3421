#include "tessera/expr/transform.h"

namespace tessera {
namespace {

/// Index arithmetic folds constants and neutral elements as it is made.
Scalar applied(Fn fn, std::vector<Scalar> args) {
  if (args.size() == 2 && args[0].sort() == Sort::Integer && args[1].sort() == Sort::Integer) {
    if (fn == Fn::Add) return args[0] + args[1];
    if (fn == Fn::Sub) return args[0] - args[1];
    if (fn == Fn::Mul) return args[0] * args[1];
    if (fn == Fn::FloorDiv && args[1].integer() == 1) return args[0];
    if (fn == Fn::Mod && args[1].integer() == 1) return 0;
  }
  return apply(fn, std::move(args));
}

}  // namespace

std::vector<Scalar> Transform::all(const std::vector<Scalar>& scalars) {
  std::vector<Scalar> result;
  result.reserve(scalars.size());
  for (const Scalar& scalar : scalars) result.push_back((*this)(scalar));
  return result;
}

std::shared_ptr<const Fold> Transform::transformed(const std::shared_ptr<const Fold>& fold) {
  if (const auto it = folds_.find(fold.get()); it != folds_.end()) return it->second;
  Fold made;
  for (const Bound& b : fold->bounds)
    made.bounds.push_back({bound ? bound(b.axis) : b.axis, (*this)(b.extent)});
  // Positions along the fold's own axes are its own, whatever the outer ones become.
  const auto outer = index;
  if (bound || outer)
    index = [&, outer](const std::string& axis) -> std::optional<Scalar> {
      for (std::size_t i = 0; i < fold->bounds.size(); ++i)
        if (fold->bounds[i].axis == axis) return index_of(made.bounds[i].axis);
      return outer ? outer(axis) : std::nullopt;
    };
  made.init = all(fold->init);
  made.lift = all(fold->lift);
  made.combine = all(fold->combine);
  index = outer;
  return folds_.emplace(fold.get(), std::make_shared<const Fold>(std::move(made))).first->second;
}

Scalar Transform::operator()(const Scalar& scalar) {
  if (const auto it = made_.find(scalar.id()); it != made_.end()) return it->second;
  const auto make = [&]() -> Scalar {
    const Node& node = scalar.node();
    if (const auto* n = std::get_if<node::Index>(&node))
      return (index ? index(n->axis) : std::nullopt).value_or(scalar);
    if (const auto* n = std::get_if<node::Size>(&node)) return size ? Scalar(size(n->dim)) : scalar;
    if (const auto* n = std::get_if<node::Read>(&node)) {
      node::Read made{n->operand, n->sort, all(n->at), nullptr};
      if (n->otherwise != nullptr)
        made.otherwise = std::make_shared<const Scalar>((*this)(*n->otherwise));
      if (read)
        if (auto replaced = read(made)) return *std::move(replaced);
      return Scalar(Node(std::move(made)));
    }
    if (const auto* n = std::get_if<node::Apply>(&node)) return applied(n->fn, all(n->args));
    if (const auto* n = std::get_if<node::Cast>(&node)) {
      const Scalar arg = (*this)(*n->arg);
      if (cast)
        if (auto replaced = cast(n->to, arg)) return *std::move(replaced);
      return tessera::cast(n->to, arg);
    }
    if (const auto* n = std::get_if<node::Component>(&node)) {
      if (component)
        if (auto replaced = component(*n)) return *std::move(replaced);
      return Scalar(Node(node::Component{transformed(n->fold), n->index}));
    }
    return scalar;
  };
  Scalar made = make();
  keep_.push_back(scalar);
  return made_.emplace(scalar.id(), std::move(made)).first->second;
}

}  // namespace tessera
