#pragma once

#include "tessera/support/dtype.h"

namespace tessera {

/// Whether every number of a type is one of another: a cast from it changes nothing.
inline bool is_exact_cast(DType from, DType to) {
  if (from == to) return true;
  // f16 has a smaller range than f8e8m0.
  if (is_float(to) && from == DType::F8E8M0) return byte_width(to) > 2;
  if (is_float(to)) return byte_width(from) < byte_width(to) && to != DType::BF16;
  const bool natural = from == DType::U8 || from == DType::U16 || from == DType::U32;
  const bool whole = from == DType::I8 || from == DType::I16 || from == DType::I32;
  const bool into_whole = to == DType::I16 || to == DType::I32 || to == DType::I64;
  if (from == DType::Bool) return true;
  if (into_whole) return (natural || whole) && byte_width(from) < byte_width(to);
  return natural && (to == DType::U16 || to == DType::U32 || to == DType::U64) &&
         byte_width(from) < byte_width(to);
}

}  // namespace tessera
