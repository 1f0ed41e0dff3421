#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::cli {

/// A number of something with three digits: `25.56 M`, `102.23 MB`.
std::string readable(std::int64_t number, std::string_view unit);

}  // namespace tessera::cli
