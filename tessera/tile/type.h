#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/support/dtype.h"

namespace tessera::tile {

/// Dynamic extent or stride: known at launch only.
constexpr std::int64_t kDynamic = -1;

using Extents = std::vector<std::int64_t>;
/// Extents with an axis removed; unchanged where there is no such axis.
Extents without(Extents extents, std::int64_t axis);

/// Type of a value of tile IR:
///
///   f32              a number
///   f32[128, 64]     a tile of numbers; any extents of at least 1
///   *f32  *f32[128]  a pointer to numbers, a tile of pointers
///   view f32[?, 64]              contiguous row-major memory
///   view f32[?, 64] by [?, 1]    memory with explicit strides, in elements
struct Type {
  enum class Kind : std::uint8_t { Number, Pointer, View };

  Kind kind = Kind::Number;
  DType dtype = DType::F32;
  Extents shape = {};    // extents of a tile or view; none for a scalar
  Extents strides = {};  // strides of a view, in elements

  static Type scalar(DType dtype) { return {Kind::Number, dtype, {}, {}}; }
  static Type tile(DType dtype, Extents shape) {
    return {Kind::Number, dtype, std::move(shape), {}};
  }
  static Type pointer(DType dtype, Extents shape = {}) {
    return {Kind::Pointer, dtype, std::move(shape), {}};
  }
  /// Contiguous view; a stride is static where the extents after it are.
  static Type view(DType dtype, Extents shape);
  static Type view(DType dtype, Extents shape, Extents strides) {
    return {Kind::View, dtype, std::move(shape), std::move(strides)};
  }

  bool is_number() const { return kind == Kind::Number; }
  bool is_pointer() const { return kind == Kind::Pointer; }
  bool is_view() const { return kind == Kind::View; }
  /// Whether the value is a single number or pointer.
  bool is_scalar() const { return !is_view() && shape.empty(); }
  bool is_tile() const { return !is_view() && !shape.empty(); }
  int rank() const { return static_cast<int>(shape.size()); }
  /// Number of elements of a tile; 1 for a scalar.
  std::int64_t count() const;

  /// The same type with other elements, or with another shape.
  Type of(DType other) const { return {kind, other, shape, strides}; }
  Type shaped(Extents other) const { return {kind, dtype, std::move(other), {}}; }

  bool operator==(const Type&) const = default;
};

std::string to_string(const Type& type);

}  // namespace tessera::tile
