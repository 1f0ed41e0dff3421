#pragma once

#include <set>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// Linearity analysis of a definition: groups of operands in which an output is jointly linear
/// while the others are held fixed.
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

  /// Maximal groups of operands in which the output is jointly linear.
  std::vector<Group> groups = {};
  /// Maximal groups in which it is jointly affine: linear up to a term that does not contain them.
  std::vector<Group> affine = {};
  /// Reason if the analysis gave up; otherwise empty.
  std::string why = {};

  bool linear_in(const Group& group) const;
  /// Whether it is affine in these operands, which may be a subset of a group: the rest is held
  /// fixed.
  bool affine_in(const Group& group) const;
};

Linearity linearity(const Definition& definition, std::size_t output = 0);

}  // namespace tessera
