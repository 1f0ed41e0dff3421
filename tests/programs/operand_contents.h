#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tessera/support/tensor.h"
#include "tests/programs/operand_form.h"

namespace tessera::testing {

Tensor integer_tensor(DType dtype, std::vector<std::int64_t> shape, const Ints& values);
Tensor number_tensor(DType dtype, std::vector<std::int64_t> shape, const Floats& values);
bool is_finite(const Tensor& tensor);

/// Elements of any kind; `special_values`: NaN, infinities, -0, denormal and extreme numbers too.
Tensor random_tensor(DType dtype, const Ints& shape, bool special_values, Draws& draws);

/// The elements of one call's operands, some of which depend on operands before them.
class OperandContents {
 public:
  OperandContents(Draws& draws, bool special_values)
      : draws_(draws), special_values_(special_values) {}

  /// States the shape of the next operand: empty for one that is left out or not a tensor.
  void add_operand(Ints shape) { shapes_.push_back(std::move(shape)); }
  const Ints& shape(std::size_t operand) const { return shapes_.at(operand); }
  bool special_values() const { return special_values_; }

  /// Elements as a form has them; nothing if there are none under these bindings.
  std::optional<Tensor> draw(const OperandForm& form, DType dtype, Bindings& bound);

 private:
  std::optional<Tensor> draw_dependent(const std::string& content, DType dtype, const Ints& shape);
  template <class Draw>
  Tensor drawn(DType dtype, const Ints& shape, Draw draw);

  Draws& draws_;
  bool special_values_;
  std::vector<Ints> shapes_ = {};
  int sliced_axes_ = 1;
};

}  // namespace tessera::testing
