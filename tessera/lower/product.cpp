#include "tessera/lower/product.h"

namespace tessera::lower {

ScalarProduct ScalarProduct::of(const Scalar& term, int depth) {
  ScalarProduct product;
  product.add(term, depth);
  return product;
}

void ScalarProduct::add(const Scalar& term, int depth) {
  const auto* apply = std::get_if<node::Apply>(&term.node());
  if (apply == nullptr || depth == 0 || (apply->fn != Fn::Mul && apply->fn != Fn::Div)) {
    over.push_back(term);
    return;
  }
  add(apply->args[0], depth - 1);
  if (apply->fn == Fn::Mul)
    add(apply->args[1], depth - 1);
  else
    under.push_back(apply->args[1]);
}

}  // namespace tessera::lower
