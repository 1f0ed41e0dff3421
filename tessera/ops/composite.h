#pragma once

#include "tessera/ops/opdef.h"

namespace tessera {

/// Whether an optional input is there.
inline bool given(const Vals& in, std::size_t i) {
  return i < in.size() && in[i].present();
}

/// An attribute that names a floating-point type; `otherwise` if it is left out.
Expected<DType> float_type(const Attrs& attrs, std::string_view name, DType otherwise);

/// An attribute that is one of a few words; a diagnostic if it is another.
Expected<Done> check_word(const Attrs& attrs, std::string_view name, const Strings& words);

/// The number of axes of an input; a diagnostic if it is another.
Expected<Done> check_rank(const Val& x, std::string_view name, int rank);

/// first, first + 1, …, last - 1.
Ints counted(int first, int last);

/// x as another type; x itself where it has it already.
Val converted(const Val& x, DType to);
/// x in f32 or, where it is wider, as it is: powers and squares of f16 overflow.
Val widened(const Val& x);

/// A reduction over these axes, which stay with size 1; over none it changes nothing.
Val reduced(std::string_view op, const Val& x, const Ints& axes);

/// One slice along an axis, which goes away.
Val picked(const Val& x, int axis, std::int64_t at);

/// The elements from `begin` to below `end` along an axis.
Val sliced(const Val& x, int axis, std::int64_t begin, std::int64_t end);

/// x with axes of size 1 put in, counted in the result.
Val unsqueezed(const Val& x, const Ints& axes);

/// The sizes of the axes from `first` to below `last`.
Val sizes_of(const Val& x, int first, int last);

/// x with these sizes; 0 keeps the size at its place, -1 stands for what is left.
Val reshaped(const Val& x, const Ints& sizes);

Val transposed(const Val& x, const Ints& order);

Val joined(const Vals& parts, int axis);

/// A number everywhere; `parts` are lists of sizes, one after the other.
Val filled(double number, DType dtype, const Vals& parts);

}  // namespace tessera
