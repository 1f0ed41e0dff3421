#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// 128-bit hash of a text as 32 hexadecimal digits, identical on every machine. Not cryptographic:
/// it distinguishes texts that differ by accident, and does not resist deliberate collisions (see
/// Sha256).
std::string digest(std::string_view text);

}  // namespace tessera
