#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Equivalence class of index variables of several stages: those that iterate along the same axis
/// of a tensor. In
///
///   m[i] = max(k) x[i, k]      s[i] = sum(l) exp(x[i, l] - m[i])      out[i, j] = exp(…) / s[i]
///
/// there are two, {i} and {j, k, l}.
struct AxisClass {
  std::int64_t extent = 1;
  bool reduced = false;  // a reduction iterates over it
  bool kept = false;     // an output has it
  bool plain = true;     // its variables occur as whole indices of reads only
};
/// Axis classes of the index variables and tensors of stages.
struct AxisClasses {
  std::vector<AxisClass> classes = {};
  std::vector<std::map<std::string, int>> of = {};       // by stage: the class of a variable
  std::map<std::string, std::vector<int>> tensors = {};  // by axis; -1: not a single variable
};

/// None where a variable belongs to two classes, or an extent is not a number.
std::optional<AxisClasses> axis_classes(const tile::Stages& stages);

/// Whether the variables of a class can be unified: no expression contains two of them.
bool classes_are_apart(const tile::Stages& stages, const AxisClasses& axes);

/// Free variables of an expression.
std::set<std::string> free_variables(const Scalar& scalar);

/// Reductions in an expression, innermost first.
std::vector<std::shared_ptr<const Fold>> folds_of(const Scalar& scalar);

/// Collapses axes: removes axes of size 1, and merges adjacent axes that are always used together.
/// The layout in memory is unchanged. [n: 1, y, x, c] of a sum over y and x becomes [y*x, c].
tile::Stages collapsed(tile::Stages stages);

}  // namespace tessera::lower
