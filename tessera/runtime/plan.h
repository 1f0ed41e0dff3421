#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Version of plans that are written. 4 adds a kind of step, 5 names and strategies of steps,
/// 6 the order of the axes of tensor maps, and kernels that are whole programs.
inline constexpr std::uint32_t kPlanVersion = 6, kOldestPlanVersion = 3;

/// Serializes a program without its code and its weights.
std::string encode_plan(const Program& program);

/// Deserializes untrusted bytes: the result may still be invalid, which check() tells.
Expected<Program> decode_plan(std::span<const std::byte> bytes,
                              std::uint32_t version = kPlanVersion);

}  // namespace tessera::runtime
