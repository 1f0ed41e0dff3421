#include "tessera/expr/work.h"

#include <set>

namespace tessera {
namespace {

/// Counts multiply-adds of an expression, each fold once; `positions` is how often it is computed.
class Counter {
 public:
  explicit Counter(const Sizes& sizes) : sizes_(sizes) {}

  Dim count(const Scalar& scalar, const Dim& positions) {
    if (!seen_.insert(scalar.id()).second) return 0;
    return std::visit([&](const auto& node) { return (*this)(node, positions); }, scalar.node());
  }

  Dim operator()(const node::Constant&, const Dim&) { return 0; }
  Dim operator()(const node::Index&, const Dim&) { return 0; }
  Dim operator()(const node::Size&, const Dim&) { return 0; }
  Dim operator()(const node::Partial&, const Dim&) { return 0; }
  Dim operator()(const node::Read& n, const Dim& positions) {
    Dim total = 0;
    for (const Scalar& at : n.at) total = total + count(at, positions);
    return total;
  }
  Dim operator()(const node::Apply& n, const Dim& positions) {
    Dim total = 0;
    for (const Scalar& arg : n.args) total = total + count(arg, positions);
    return total;
  }
  Dim operator()(const node::Cast& n, const Dim& positions) { return count(*n.arg, positions); }
  Dim operator()(const node::Component& n, const Dim& positions) {
    if (!seen_.insert(n.fold.get()).second) return 0;
    Dim steps = positions;
    for (const Bound& bound : n.fold->bounds) {
      if (const auto* size = std::get_if<node::Size>(&bound.extent.node()))
        steps = steps * resolved(size->dim, sizes_);
      else if (const auto number = bound.extent.integer())
        steps = steps * Dim(*number);
    }
    Dim total = 0;
    for (const Scalar& lift : n.fold->lift) {
      if (n.fold->simple() == Fn::Add) total = total + terms(lift, steps);
      total = total + count(lift, steps);
    }
    return total;
  }

 private:
  /// Number of the `steps` terms of a sum that are products: all or none, or under a condition
  /// those for which it can hold.
  static Dim terms(const Scalar& lift, const Dim& steps) {
    const auto* apply = std::get_if<node::Apply>(&lift.node());
    if (apply == nullptr) return 0;
    if (apply->fn == Fn::Mul) return steps;
    if (apply->fn == Fn::Select) return terms(apply->args[1], rarer(apply->args[0], steps));
    return 0;
  }

  /// Number of positions where a condition holds: one in n for a remainder modulo n.
  static Dim rarer(const Scalar& condition, const Dim& positions) {
    const auto* apply = std::get_if<node::Apply>(&condition.node());
    if (apply == nullptr) return positions;
    if (apply->fn == Fn::And) return rarer(apply->args[1], rarer(apply->args[0], positions));
    if (apply->fn != Fn::Equal) return positions;
    const auto* rest = std::get_if<node::Apply>(&apply->args[0].node());
    if (rest == nullptr || rest->fn != Fn::Mod || !rest->args[1].integer()) return positions;
    return floor_div(positions, *rest->args[1].integer());
  }

  const Sizes& sizes_;
  std::set<const void*> seen_;
};

}  // namespace

Dim multiply_adds(const Output& output, const Sizes& sizes) {
  Dim positions = 1;
  for (const Dim& dim : output.shape()) positions = positions * resolved(dim, sizes);
  return Counter(sizes).count(output.value, positions);
}

}  // namespace tessera
