#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/expr/algebra.h"
#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera::algebra {

/// Bindings of the names in a definition while an element of it is translated to a sum of products.
struct ElementBindings {
  std::map<std::string, Dim, std::less<>> axes = {};  // positions of index variables
  Sizes sizes = {};                                   // sizes of the `#axis` symbols
  struct Tensor {
    std::string name;
    Shape shape = {};
    DType dtype = DType::F32;
    std::optional<double> uniform = {};  // value of all elements, if it is one constant
  };
  std::function<Tensor(const std::string& operand)> operand = {};
  bool named_reals = false;  // constants denote the nearby reals of named_real.h
};

/// Constant of a model file as a sum.
Sum constant_of_file(Names& names, double value, bool named_reals);
/// Element of a tensor as a factor.
Factor element_of(const ElementBindings::Tensor& tensor, std::vector<Dim> at);

/// Translates a scalar expression to a sum of products; an expression without such a form (of text,
/// say) is undefined.
Sum read(Names& names, const Scalar& scalar, const ElementBindings& meaning);

/// Translates the element of an output at a position.
Sum element(Names& names, const Output& output, const std::vector<Dim>& at,
            ElementBindings meaning);

}  // namespace tessera::algebra
