#pragma once

#include <llvm/TargetParser/Triple.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::codegen {

/// PC-relative relocation of an image: place and target are offsets in the image, whose start is
/// page-aligned.
struct Relocation {
  llvm::Triple::ArchType architecture = llvm::Triple::UnknownArch;
  std::uint32_t type = 0;  // ELF relocation type
  std::int64_t place = 0, target = 0;
};

/// Applies a relocation. False where the type is not supported (those that need an absolute address
/// or a GOT are not), or the target is out of range.
bool relocate(std::span<std::byte> image, const Relocation& relocation);

}  // namespace tessera::codegen
