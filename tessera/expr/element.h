#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/expr/algebra.h"
#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera::algebra {

/// What the names in a definition stand for where an element of it is read.
struct Meaning {
  std::map<std::string, Dim, std::less<>> axes = {};  // its index variables
  Sizes sizes = {};                                   // its `#axis` symbols
  struct Tensor {
    std::string name;
    Shape shape = {};
    DType dtype = DType::F32;
    std::optional<double> uniform = {};  // the one number that all its elements are
  };
  std::function<Tensor(const std::string& operand)> operand = {};
  bool named_reals = false;  // constants stand for the reals that they are near to
};

/// A constant of a file.
Sum constant_of_file(Names& names, double value, bool named_reals);
/// An element of a tensor.
Factor element_of(const Meaning::Tensor& tensor, std::vector<Dim> at);

/// A scalar expression as a sum of products. What has no such form (text, say) is undefined.
Sum read(Names& names, const Scalar& scalar, const Meaning& meaning);

/// An element of an output at a position.
Sum element(Names& names, const Output& output, const std::vector<Dim>& at, Meaning meaning);

}  // namespace tessera::algebra
