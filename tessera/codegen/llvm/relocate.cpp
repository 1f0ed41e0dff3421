#include "tessera/codegen/llvm/relocate.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/MathExtras.h>

namespace tessera::codegen {
namespace {

namespace elf = llvm::ELF;
namespace endian = llvm::support::endian;

constexpr std::int64_t kPageMask = ~std::int64_t{4095};

/// Immediate field of an AArch64 instruction.
struct Field {
  std::uint32_t mask = 0;
  int at = 0;
};

void put(std::byte* at, const Field& field, std::int64_t value) {
  const auto bits = static_cast<std::uint32_t>(value) & field.mask;
  endian::write32le(at, (endian::read32le(at) & ~(field.mask << field.at)) | (bits << field.at));
}

/// Low 12 bits of an address, in units of the access size.
bool put_low(std::byte* at, std::int64_t target, int log2_unit) {
  put(at, {0xfff, 10}, (target & 0xfff) >> log2_unit);
  return (target & ((std::int64_t{1} << log2_unit) - 1)) == 0;
}

bool put_distance(std::byte* at, std::int64_t distance) {
  endian::write32le(at, static_cast<std::uint32_t>(distance));
  return llvm::isInt<32>(distance);
}

bool relocate_aarch64(std::byte* at, const Relocation& r) {
  const std::int64_t distance = r.target - r.place;
  switch (r.type) {
    case elf::R_AARCH64_PREL64: endian::write64le(at, distance); return true;
    case elf::R_AARCH64_PREL32: return put_distance(at, distance);
    case elf::R_AARCH64_ADR_PREL_PG_HI21: {
      const std::int64_t pages = (r.target & kPageMask) - (r.place & kPageMask);
      put(at, {0x3, 29}, pages >> 12);
      put(at, {0x7ffff, 5}, pages >> 14);
      return llvm::isInt<33>(pages);
    }
    case elf::R_AARCH64_ADD_ABS_LO12_NC:
    case elf::R_AARCH64_LDST8_ABS_LO12_NC: return put_low(at, r.target, 0);
    case elf::R_AARCH64_LDST16_ABS_LO12_NC: return put_low(at, r.target, 1);
    case elf::R_AARCH64_LDST32_ABS_LO12_NC: return put_low(at, r.target, 2);
    case elf::R_AARCH64_LDST64_ABS_LO12_NC: return put_low(at, r.target, 3);
    case elf::R_AARCH64_LDST128_ABS_LO12_NC: return put_low(at, r.target, 4);
    case elf::R_AARCH64_CALL26:
    case elf::R_AARCH64_JUMP26:
      put(at, {0x3ffffff, 0}, distance >> 2);
      return llvm::isShiftedInt<26, 2>(distance);
    default: return false;
  }
}

bool relocate_x86_64(std::byte* at, const Relocation& r) {
  const std::int64_t distance = r.target - r.place;
  switch (r.type) {
    case elf::R_X86_64_PC64: endian::write64le(at, distance); return true;
    case elf::R_X86_64_PC32:
    case elf::R_X86_64_PLT32: return put_distance(at, distance);
    default: return false;
  }
}

}  // namespace

bool relocate(std::span<std::byte> image, const Relocation& r) {
  // Bounds check of the patched bytes: eight or four, by type.
  const bool is_wide = r.architecture == llvm::Triple::aarch64 ? r.type == elf::R_AARCH64_PREL64
                                                               : r.type == elf::R_X86_64_PC64;
  const std::int64_t size = is_wide ? 8 : 4;
  if (r.place < 0 || r.place + size > static_cast<std::int64_t>(image.size())) return false;
  std::byte* at = image.data() + r.place;
  return r.architecture == llvm::Triple::aarch64 ? relocate_aarch64(at, r) : relocate_x86_64(at, r);
}

}  // namespace tessera::codegen
