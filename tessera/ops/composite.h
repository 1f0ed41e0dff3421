#pragma once

#include "tessera/ops/opdef.h"

/// Helpers for writing the bodies of composite operators.
namespace tessera {

/// Whether an optional input is present.
inline bool given(const Vals& in, std::size_t i) {
  return i < in.size() && in[i].present();
}

/// Floating-point type that an attribute names; `otherwise` if it is omitted.
Expected<DType> float_type(const Attrs& attrs, std::string_view name, DType otherwise);

/// Checks that an attribute is one of a few words.
Expected<Done> check_word(const Attrs& attrs, std::string_view name, const Strings& words);

/// Checks the rank of an input.
Expected<Done> check_rank(const Val& x, std::string_view name, int rank);

/// first, first + 1, …, last - 1.
Ints counted(int first, int last);

/// Cast to another type; x itself if it has the type already.
Val converted(const Val& x, DType to);
/// Cast to at least f32: powers and squares of f16 overflow.
Val widened(const Val& x);

/// Reduction over these axes, which stay with size 1; the identity for no axes.
Val reduced(std::string_view op, const Val& x, const Ints& axes);

/// Slice at one position along an axis, which is removed.
Val picked(const Val& x, int axis, std::int64_t at);

/// Slice from `begin` to below `end` along an axis.
Val sliced(const Val& x, int axis, std::int64_t begin, std::int64_t end);

/// Inserts axes of size 1, numbered in the result.
Val unsqueezed(const Val& x, const Ints& axes);

/// Sizes of the axes from `first` to below `last`, as a tensor.
Val sizes_of(const Val& x, int first, int last);

/// Reshape to these sizes; 0 keeps the size at its place, -1 is inferred.
Val reshaped(const Val& x, const Ints& sizes);

Val transposed(const Val& x, const Ints& order);

Val joined(const Vals& parts, int axis);

/// Constant-filled tensor; its shape is the concatenation of `parts`, which are lists of sizes.
Val filled(double number, DType dtype, const Vals& parts);

}  // namespace tessera
