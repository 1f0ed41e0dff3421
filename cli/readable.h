#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::cli {

/// Number with three significant digits and an SI prefix: `25.56 M`, `102.23 MB`.
std::string readable(std::int64_t number, std::string_view unit);

}  // namespace tessera::cli
