#pragma once

#include <span>
#include <vector>

#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Launch words, open in the kernel, that are 1 and worth specializing for: strides of views, and
/// integers, which are strides where kernels use pointers.
std::vector<bool> ones_of(const Kernel& kernel, std::span<const Argument> arguments);

/// Specializes a kernel for launches whose words are 1 where `ones` says so: unit strides become
/// static, so that accesses are known to be contiguous.
///
///   f(x: view f16[?, ?] by [?, ?], n: i64)  =>  f(x: view f16[?, ?] by [?, 1], n: i64), n is 1
///
/// Keeps:  what such launches do; the parameters and their words.
Kernel for_ones(const Kernel& kernel, const std::vector<bool>& ones);

}  // namespace tessera::tile
