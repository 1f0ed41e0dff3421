#pragma once

#include <array>

#include "tessera/tile/lang.h"

/// Random numbers that are functions of a seed and an offset: Philox4x32 (Salmon et al., "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011), bit by bit as Triton's.
namespace tessera::tile {

/// Philox4x32: four u32 words for the counter c and the 64-bit seed.
std::array<Val, 4> philox4x32(const Operand& seed, const std::array<Operand, 4>& c,
                              int rounds = 10);

/// Philox4x32 with the offset as the counter: numbers of 32 or 64 bits, or tiles of them.
std::array<Val, 4> randint4x(const Operand& seed, const Operand& offset, int rounds = 10);

/// Random u32 for each offset.
Val randint(const Operand& seed, const Operand& offset, int rounds = 10);
/// Uniform random f32 in [0, 1) for each offset.
Val rand(const Operand& seed, const Operand& offset, int rounds = 10);
/// Normally distributed random f32 for each offset (Box-Muller).
Val randn(const Operand& seed, const Operand& offset, int rounds = 10);

}  // namespace tessera::tile
