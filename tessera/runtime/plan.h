#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// All of a program but its code and its weights, as bytes.
std::string encode_plan(const Program& program);

/// Reads them, whatever they are: what comes out may still be nonsense, and check() says so.
Expected<Program> decode_plan(std::span<const std::byte> bytes);

}  // namespace tessera::runtime
