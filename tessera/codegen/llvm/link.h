#pragma once

#include <span>

#include "tessera/codegen/image.h"
#include "tessera/codegen/llvm/object.h"

namespace tessera::codegen {

/// Links objects of kernels into one image with an entry per object. Symbols are local to their
/// object, so names may repeat. An object with imports, writable data or absolute relocations is a
/// diagnostic (`object-unlinkable`).
Expected<Image> link(std::span<const ObjectBytes> objects, machine::Architecture architecture);

}  // namespace tessera::codegen
