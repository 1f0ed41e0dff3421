#pragma once

#include <vector>

#include "tessera/ir/type.h"
#include "tessera/ops/opdef.h"

namespace tessera {

/// What is known of one value while a graph is built: its type and, of small tensors, the content.
struct Known {
  Type type = Type::unknown();
  std::optional<std::vector<Dim>> value = {};  // of a small integer tensor, perhaps symbolic
  std::optional<Tensor> content = {};          // of a small tensor that is constant
  bool present = true;
};

/// The largest number of elements whose content is carried along.
inline constexpr std::int64_t kSmallTensor = 1024;

/// What is known of a tensor that is there.
Known known(const Tensor& tensor);

/// The types of the results of an operator that is not control flow, and their content where it
/// follows. Something unknown among the inputs makes the results unknown, not wrong; inputs that
/// the operator cannot take are a diagnostic.
Expected<std::vector<Known>> infer(const OpDef& op, const Attrs& attrs,
                                   const std::vector<Known>& inputs);

/// The signature that definitions are given; nothing where an input has no known rank.
std::optional<Signature> signature_of(const std::vector<Known>& inputs);

/// The shapes of those that are present.
std::vector<Shape> shapes_of(const Signature& signature);

}  // namespace tessera
