#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/machine/machine.h"

namespace tessera::machine {

/// A processor that tessera knows by name.
struct Cpu {
  std::string_view name;  // LLVM's
  Architecture architecture;
  /// Who makes it: the implementer and part of MIDR, or the vendor that cpuid names.
  std::uint32_t implementer = 0, part = 0;
  std::string_view vendor = {};

  std::string_view base = {};      // a processor above it in the table, whose features it has too
  std::string_view features = {};  // more features
  int l1d_kib = 32, l2_kib = 512, l3_kib = 8 << 10;
};

std::span<const Cpu> known_cpus();

/// With the features of its bases; one core.
Machine machine_of(const Cpu& cpu);

}  // namespace tessera::machine
