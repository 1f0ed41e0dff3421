#pragma once

#include <span>

#include "tessera/codegen/image.h"
#include "tessera/codegen/llvm/object.h"

namespace tessera::codegen {

/// Objects of kernels, one after the other as one image with an entry per object. What an object
/// defines is its own, so that names may repeat. An object that needs something from outside,
/// memory to write to, or its address when it is linked is a diagnostic (`object-unlinkable`).
Expected<Image> link(std::span<const ObjectBytes> objects, machine::Architecture architecture);

}  // namespace tessera::codegen
