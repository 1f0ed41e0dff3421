#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Serializes a program without its code and its weights.
std::string encode_plan(const Program& program);

/// Deserializes untrusted bytes: the result may still be invalid, which check() tells.
Expected<Program> decode_plan(std::span<const std::byte> bytes);

}  // namespace tessera::runtime
