#pragma once

#include <cstdint>

#include "tessera/machine/machine.h"

namespace tessera::lower {

/// Properties of a kind of target machine that lowering strategies depend on. A further kind, such
/// as the GPU of another vendor, is a row of the table behind traits_of().
struct TargetTraits {
  /// Tiling of contractions: packed panels and register tiles, or thread-block tiles, which are
  /// powers of two and round operands to GroupOptions::contraction_dtype.
  enum class ContractionTiling : std::uint8_t { Panels, ThreadBlocks };
  ContractionTiling contractions = ContractionTiling::Panels;
  bool has_int8_dot = false;          // dot instructions for 8-bit integers
  bool uses_winograd = false;         // fewer multiplications are a speedup
  bool uses_direct_conv = false;      // unrolled windows over vectors of outputs
  bool has_thread_blocks = false;     // idle threads take part in reductions
  std::int64_t longest_row = 0;       // elements of a row in one program
  std::int64_t most_programs_across;  // along the second and third axis of a grid

  bool tiles_by_thread_blocks() const { return contractions == ContractionTiling::ThreadBlocks; }
};
const TargetTraits& traits_of(const machine::Machine& machine);

}  // namespace tessera::lower
