#pragma once

#include <cstdint>
#include <string>

#include "tessera/support/rng.h"
#include "tessera/tune/group_task.h"

namespace tessera {

/// Contraction as it occurs in models: a convolution of NHWC images with packed weights (a window),
/// a matmul by weights, of two tensors (batched), or, on GPUs, across the rows of a matrix.
struct ContractionShape {
  enum class Kind : std::uint8_t { Window, Weights, Batched, AcrossRows };
  Kind kind = Kind::Window;
  std::int64_t n = 1, h = 1, w = 1, c = 1, f = 1, window = 1, stride = 1;
  std::string epilogue = "none";  // none, relu, residual, gelu

  std::string text() const;
  static ContractionShape parse(const std::string& text);
  /// Multiply-adds.
  double work() const;
};

/// Shapes of one kind of target, and their groups as the compiler lowers them there.
struct ShapeFamily {
  program::CompileOptions code = {};
  ContractionShape (*draw)(Rng& rng) = nullptr;
  /// Group of a shape, without its schedules.
  Expected<lower::Group> (*group)(const ContractionShape& shape,
                                  const program::CompileOptions& code) = nullptr;
};

/// Contractions of f32 for one core of this computer: 1 to 400 million multiply-adds.
ShapeFamily cpu_shapes();
/// Contractions of f16 for a Hopper GPU: up to 30 billion multiply-adds.
ShapeFamily gpu_shapes();

std::int64_t log_uniform(Rng& rng, double low, double high, std::int64_t unit);

template <class T>
T one_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

}  // namespace tessera
