#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/tile/argument.h"

namespace tessera::program {

/// The words of a launch, addresses filled in, as the arguments of the tile program that it runs.
std::vector<tile::Argument> launch_arguments(const tile::Kernel& kernel,
                                             const runtime::step::Launch& launch,
                                             std::span<const std::uint64_t> words);

}  // namespace tessera::program
