#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/machine/machine.h"

namespace tessera::machine {

/// The words in which a processor and the system above it say what they offer: AT_HWCAP and
/// AT_HWCAP2 on AArch64; cpuid's registers and XCR0 on x86-64.
enum class CpuWord : std::uint8_t {
  Hwcap,
  Hwcap2,
  Leaf1Ecx,
  Leaf7Ebx,
  Leaf7Ecx,
  Leaf7Edx,
  Leaf71Eax,
  ExtendedEcx,
  Xcr0,
};
using CpuWords = std::array<std::uint64_t, 9>;

/// A feature by LLVM's name, and where it is announced.
struct Feature {
  std::string_view name;
  CpuWord word;
  std::uint64_t bits;             // all of them
  std::string_view needs = {};    // other features, by name; LLVM switches them on with it
  std::uint64_t saved_state = 0;  // bits of XCR0: registers that the system must save
};

/// All features of an architecture that change what code LLVM makes.
std::span<const Feature> all_features(Architecture architecture);

/// The features that the words announce, without those whose needs are not met.
std::vector<std::string> features_of(Architecture architecture, const CpuWords& words);

/// The words of this computer. What the system saves only for a process that asks, the tiles of
/// AMX, is asked for, once; XCR0 has them if that is granted.
CpuWords host_words();
Architecture host_architecture();

/// Sets the width and the number of the vector registers, which follow from the features.
void set_vectors(Machine& machine);

/// The words of a text, which blanks separate.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace tessera::machine
