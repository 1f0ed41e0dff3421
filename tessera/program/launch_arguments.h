#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/tile/argument.h"

namespace tessera::program {

/// Arguments of the tile kernel of a launch, from its argument words with addresses filled in.
std::vector<tile::Argument> launch_arguments(const tile::Kernel& kernel,
                                             const runtime::step::Launch& launch,
                                             std::span<const std::uint64_t> words);

}  // namespace tessera::program
