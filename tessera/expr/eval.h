#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "tessera/expr/definition.h"
#include "tessera/expr/field.h"
#include "tessera/expr/shape.h"
#include "tessera/expr/tracer.h"

namespace tessera {

/// Number types that definitions are evaluated in (X macro).
#define TESSERA_NUMBER_TYPES(use) \
  use(float) use(double) use(std::int64_t) use(FieldA) use(FieldB) use(TracedNumber)

/// Row-major tensor in memory. Elements of a float dtype are stored as that dtype or, `lifted`, as
/// the number type of the evaluation (always so for int64 and prime fields).
struct ConstArray {
  DType dtype = DType::F32;
  const std::byte* data = nullptr;
  bool lifted = false;
};
struct MutableArray {
  DType dtype = DType::F32;
  std::byte* data = nullptr;
  bool lifted = false;
};

/// Options of eval().
struct EvalOptions {
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;  // cancellation flag
  bool in_order = false;                    // sums add their terms in the order of their axes
};

/// Evaluates the outputs of a definition in the number type T: float, double, std::int64_t, FieldA,
/// FieldB or TracedNumber. All sizes are numbers; `inputs` are the operands in order, of the sizes
/// that were solved for. Sums are accumulated in T; a result is rounded when it is stored.
///
/// An index out of range without an `else` in the definition is a diagnostic, as is cancellation.
template <class T>
Expected<Done> eval(const Definition& definition, const Sizes& sizes,
                    std::span<const ConstArray> inputs, std::span<const MutableArray> outputs,
                    const EvalOptions& options);

}  // namespace tessera
