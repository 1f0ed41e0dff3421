#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// 128 bits of a text as 32 hexadecimal digits, the same on every machine: texts that differ by
/// accident have different ones. It is no protection against those who look for equal ones.
std::string digest(std::string_view text);

}  // namespace tessera
