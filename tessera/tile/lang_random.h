#pragma once

#include <array>

#include "tessera/tile/lang.h"

/// Random numbers that are functions of a seed and an offset: Philox4x32 (Salmon et al., "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011), bit by bit as Triton's.
namespace tessera::tile {

/// The four words of u32 that the counter c and the 64-bit seed give.
std::array<Val, 4> philox4x32(const Operand& seed, const std::array<Operand, 4>& c,
                              int rounds = 10);

/// The same for a counter that is the offset: numbers of 32 or 64 bits, or tiles of them.
std::array<Val, 4> randint4x(const Operand& seed, const Operand& offset, int rounds = 10);

/// A u32 for each offset.
Val randint(const Operand& seed, const Operand& offset, int rounds = 10);
/// An f32 from 0 up to and without 1 for each offset.
Val rand(const Operand& seed, const Operand& offset, int rounds = 10);
/// A normally distributed f32 for each offset, by Box and Muller.
Val randn(const Operand& seed, const Operand& offset, int rounds = 10);

}  // namespace tessera::tile
