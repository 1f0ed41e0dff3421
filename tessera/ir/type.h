#pragma once

#include <optional>
#include <string>

#include "tessera/expr/definition.h"

namespace tessera {

/// Type of a value: a tensor of some dtype, perhaps with its shape, a sequence or an optional of
/// such tensors, or unknown.
struct Type {
  enum class Kind { Unknown, Tensor, Sequence, Optional, OptionalSequence };

  Kind kind = Kind::Tensor;
  DType dtype = DType::F32;
  std::optional<Shape> shape = {};  // nullopt: unknown rank

  static Type unknown() { return {.kind = Kind::Unknown}; }
  static Type tensor(DType dtype, Shape shape) { return {Kind::Tensor, dtype, std::move(shape)}; }

  /// Whether this is a tensor of known rank.
  bool is_ranked_tensor() const { return kind == Kind::Tensor && shape.has_value(); }
  bool operator==(const Type&) const = default;
  std::size_t hash() const;
};

/// Shape of a tensor whose sizes are all numbers; nothing where one is a symbol or not known.
std::optional<std::vector<std::int64_t>> static_shape(const Type& type);

/// Text form: `f32[n, 3, 224]`, `f32[...]` (unknown rank), `seq(f32[...])`, `opt(f32[2])`,
/// `opt(seq(f32[2]))`, `?`.
std::string to_string(const Type& type);

}  // namespace tessera
