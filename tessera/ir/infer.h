#pragma once

#include <memory>
#include <vector>

#include "tessera/ir/type.h"
#include "tessera/ops/opdef.h"

namespace tessera {

/// Static information about a value while a graph is built: its type and, for small tensors, the
/// content.
struct ValueInfo {
  Type type = Type::unknown();
  std::optional<std::vector<Dim>> value = {};  // of a small integer tensor, perhaps symbolic
  std::optional<Tensor> content = {};          // of a small tensor that is constant
  bool present = true;
};

/// Largest number of elements for which content is propagated.
inline constexpr std::int64_t kSmallTensor = 1024;

/// Static information about a constant tensor.
ValueInfo constant_info(const Tensor& tensor);

/// Type inference: types of the results of an operator that is not control flow, and their content
/// where it follows. An unknown input makes results unknown, not wrong; inputs that the operator
/// does not accept are a diagnostic.
Expected<std::vector<ValueInfo>> infer(const OpDef& op, const Attrs& attrs,
                                       const std::vector<ValueInfo>& inputs);

/// Definition of a core operator on inputs of a signature; shared with other calls where an
/// InferenceMemo is active.
Expected<std::shared_ptr<const Definition>> defined(const OpDef& op, const Attrs& attrs,
                                                    const Signature& in);

/// Signature for the operator's definition; nothing where an input has no known rank.
std::optional<Signature> signature_of(const std::vector<ValueInfo>& inputs);

/// Shapes of the inputs that are present.
std::vector<Shape> shapes_of(const Signature& signature);

}  // namespace tessera
