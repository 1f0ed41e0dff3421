#pragma once

#include <set>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// In which operands an output is linear, others held fixed.
///
///   matmul               linear in {a}; in {b}
///   add                  linear in {x, y} jointly
///   conv plus bias       linear in {image, bias}; in {weight, bias}; affine in the same
///   gather               linear in {data}; in nothing that has `index`
///   x + 1                affine in {x}
///   max(x, y)            none
///
/// Over the reals, and over the integers modulo 2^64 where these are the elements: rounding does
/// not count, so a cast between floats is linear; one to or from integers is not. A division is
/// linear in its numerator where this is a real number. An operand on which the output does not
/// depend, or only by its sizes, is in no group.
struct Linearity {
  using Group = std::set<std::string>;

  /// The groups of operands in which the output is jointly linear; none can be larger.
  std::vector<Group> groups = {};
  /// The largest groups in which it is jointly affine: linear but for a term without them.
  std::vector<Group> affine = {};
  /// Why nothing is known, if so.
  std::string why = {};

  bool linear_in(const Group& group) const;
  /// Also in a part of a group: the rest is held fixed.
  bool affine_in(const Group& group) const;
};

Linearity linearity(const Definition& definition, std::size_t output = 0);

}  // namespace tessera
