#pragma once

#include "tessera/tile/lang.h"

namespace tessera::tile {

/// Type promotion and broadcasting of the C++ kernel language: brings operands to one dtype and one
/// shape.

/// Builder of the kernel that is being traced; value of the operation that was appended last.
inline Builder& build() {
  return Trace::current().builder();
}
inline Val made(ValueId id) {
  return Val::of(Trace::current().checked(id));
}

/// Type of an operand; a C++ number by itself is a bool, an i64 or an f32.
Type type_of(const Operand& x);

/// The dtype that operands are computed in, by Triton's rules: a C++ number adapts unless it is
/// of a wider kind (bool, integer, float); f64 > f32 > f16 > bf16, an integer adapts to a float;
/// bf16 with another float is f32; of integers the wider, of equally wide ones the unsigned.
/// Divisions of half floats are done in f32.
enum class Division : std::uint8_t { No, Yes };
DType common_dtype(const Operands& list, Division division = Division::No);

/// Broadcast shape: axes are aligned at the end, extents are equal or 1.
Extents common_shape(const Extents& a, const Extents& b);

/// Value of an operand, unconverted.
ValueId value_of(const Operand& x);
/// Operand converted and broadcast; a diagnostic where it does not fit into the shape.
ValueId fit(const Operand& x, DType dtype, const Extents& shape);
/// Operand broadcast to a shape, of any dtype.
ValueId spread(const Operand& x, const Extents& shape);
/// Operand as bool: itself, or whether it is not 0.
ValueId truth(const Operand& x, const Extents& shape);
ValueId truth(const Operand& x);

}  // namespace tessera::tile
