#pragma once

#include <cstdint>

#include "tessera/machine/machine.h"

namespace tessera::lower {

/// How strategies differ between kinds of target machines. A further kind, such as the GPU of
/// another vendor, is a row of the table behind traits_of().
struct TargetTraits {
  /// How a contraction is cut: into packed panels and register tiles, or into tiles of a block of
  /// threads, which are powers of two and round factors to the type of products.
  enum class ContractionTiling : std::uint8_t { Panels, ThreadBlocks };
  ContractionTiling contractions = ContractionTiling::Panels;
  bool multiplies_bytes = false;      // sums of products of 8-bit integers
  bool uses_winograd = false;         // what it saves in products is noticed
  bool vectorizes_windows = false;    // windows are written out over vectors of outputs
  bool has_thread_blocks = false;     // threads without an output of their own share folds
  std::int64_t longest_row = 0;       // elements of a row that one program holds
  std::int64_t most_programs_across;  // along the second and third axis of a grid

  bool tiles_by_thread_blocks() const { return contractions == ContractionTiling::ThreadBlocks; }
};
const TargetTraits& traits_of(const machine::Machine& machine);

}  // namespace tessera::lower
