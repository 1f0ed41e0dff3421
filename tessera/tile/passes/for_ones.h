#pragma once

#include <span>
#include <vector>

#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// What is 1 among the words of a launch that a kernel leaves open and where that matters: strides
/// of views, and integers, which strides are where kernels use pointers.
std::vector<bool> ones_of(const Kernel& kernel, std::span<const Argument> arguments);

/// The kernel as it is for launches whose words are 1 at least where these are: what lies side by
/// side is then known to, and is read as one piece.
///
///   f(x: view f16[?, ?] by [?, ?], n: i64)  =>  f(x: view f16[?, ?] by [?, 1], n: i64), n is 1
///
/// Keeps:  what such launches do; the parameters and their words.
Kernel for_ones(const Kernel& kernel, const std::vector<bool>& ones);

}  // namespace tessera::tile
