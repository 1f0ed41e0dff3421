#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Which index variables of several stages run through the same: those that run along the same axis
/// of a tensor. In
///
///   m[i] = max(k) x[i, k]      s[i] = sum(l) exp(x[i, l] - m[i])      out[i, j] = exp(…) / s[i]
///
/// there are two of them, {i} and {j, k, l}.
struct AxisClass {
  std::int64_t extent = 1;
  bool reduced = false;  // a fold runs through it
  bool kept = false;     // an output has it
  bool plain = true;     // its variables are whole indices of reads, and nothing else
};
struct AxisClasses {
  std::vector<AxisClass> classes = {};
  std::vector<std::map<std::string, int>> of = {};       // by stage: the class of a variable
  std::map<std::string, std::vector<int>> tensors = {};  // by axis; -1: no variable alone
};

/// Nothing where one variable stands for two, or how far one runs is not a number.
std::optional<AxisClasses> axis_classes(const tile::Stages& stages);

/// Whether all variables of a class can be one and the same: no expression speaks of two of them.
bool classes_are_apart(const tile::Stages& stages, const AxisClasses& axes);

/// The variables that an expression speaks of and does not bind.
std::set<std::string> free_variables(const Scalar& scalar);

/// The folds within an expression, inner ones first.
std::vector<std::shared_ptr<const Fold>> folds_of(const Scalar& scalar);

/// The same stages with axes of one element left out, and neighbouring axes that always go together
/// made one: tensors lie in memory as they did. [n: 1, y, x, c] of a sum over y and x is [y*x, c].
tile::Stages collapsed(tile::Stages stages);

}  // namespace tessera::lower
