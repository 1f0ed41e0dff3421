#pragma once

#include <cstdint>

namespace tessera::machine {

/// Multiplies and adds in registers alone, on every vector lane: `rounds` rounds. Returns the
/// number of floating-point operations that were done.
double fma_rounds(std::int64_t rounds);

/// The most f32 operations per second that one core reaches, measured now; some milliseconds.
double measured_peak();

/// Bytes per second that one core reads from memory, measured now; some milliseconds.
double measured_bandwidth();

}  // namespace tessera::machine
