#pragma once

#include <llvm/TargetParser/Triple.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::codegen {

/// A place in an image that depends on how far away its target is; both are offsets in the image,
/// whose start is aligned to a page.
struct Relocation {
  llvm::Triple::ArchType architecture = llvm::Triple::UnknownArch;
  std::uint32_t type = 0;  // of ELF
  std::int64_t place = 0, target = 0;
};

/// Writes the distance into the image. False where the kind is not known (those that need an
/// absolute address or a table of addresses are not), or the target is too far away.
bool relocate(std::span<std::byte> image, const Relocation& relocation);

}  // namespace tessera::codegen
