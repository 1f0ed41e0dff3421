#pragma once

#include <array>
#include <string_view>

#include "tessera/tile/gpu/block_program.h"

namespace tessera::tile::gpu {

/// Names of the enumerators of an enum of form S in text, in order.
template <class T>
inline constexpr std::array<std::string_view, 0> kEnumerators = {};
template <>
inline constexpr std::array<std::string_view, 3> kEnumerators<DotOperand::Place> = {
    "registers", "in_buffer", "to_buffer"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumerators<Matmul::Completion> = {
    "now", "awaited", "next_iteration"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumerators<RowAlignment> = {"aligned", "shifted",
                                                                               "unknown"};

}  // namespace tessera::tile::gpu
