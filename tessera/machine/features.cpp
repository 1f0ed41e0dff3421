#include "tessera/machine/features.h"

#include <algorithm>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tessera::machine {
namespace {

using enum CpuWord;

constexpr std::uint64_t bit(int n) {
  return std::uint64_t{1} << n;
}

// Bits of XCR0: the upper halves of ymm; those with the masks and zmm; those with the tiles of AMX.
constexpr std::uint64_t kYmm = bit(1) | bit(2);
constexpr std::uint64_t kZmm = kYmm | bit(5) | bit(6) | bit(7);
constexpr std::uint64_t kTiles = bit(17) | bit(18);

// A feature stands below those that it needs.
constexpr Feature kAArch64[] = {
    {"fp-armv8", Hwcap, bit(0)},
    {"neon", Hwcap, bit(1), "fp-armv8"},
    {"lse", Hwcap, bit(8)},
    {"fullfp16", Hwcap, bit(9) | bit(10), "fp-armv8"},
    {"rdm", Hwcap, bit(12), "neon"},
    {"jsconv", Hwcap, bit(13), "fp-armv8"},
    {"complxnum", Hwcap, bit(14), "neon"},
    {"rcpc", Hwcap, bit(15)},
    {"dotprod", Hwcap, bit(20), "neon"},
    {"fp16fml", Hwcap, bit(23), "fullfp16"},
    {"lse2", Hwcap, bit(25)},
    {"rcpc-immo", Hwcap, bit(26), "rcpc"},
    {"flagm", Hwcap, bit(27)},
    {"fptoint", Hwcap2, bit(8)},
    {"i8mm", Hwcap2, bit(13), "neon"},
    {"bf16", Hwcap2, bit(14), "neon"},
    {"sve", Hwcap, bit(22), "fullfp16"},
    {"sve2", Hwcap2, bit(1), "sve"},
    {"sme", Hwcap2, bit(23), "bf16"},
    {"sme2", Hwcap2, bit(37), "sme"},
    {"cssc", Hwcap2, bit(34)},
    {"mops", Hwcap2, bit(43)},
};

constexpr Feature kX86[] = {
    {"sse3", Leaf1Ecx, bit(0)},
    {"ssse3", Leaf1Ecx, bit(9), "sse3"},
    {"sse4.1", Leaf1Ecx, bit(19), "ssse3"},
    {"sse4.2", Leaf1Ecx, bit(20), "sse4.1"},
    {"cx16", Leaf1Ecx, bit(13)},
    {"movbe", Leaf1Ecx, bit(22)},
    {"popcnt", Leaf1Ecx, bit(23)},
    {"bmi", Leaf7Ebx, bit(3)},
    {"bmi2", Leaf7Ebx, bit(8)},
    {"lzcnt", ExtendedEcx, bit(5)},
    {"avx", Leaf1Ecx, bit(28), "sse4.2", kYmm},
    {"f16c", Leaf1Ecx, bit(29), "avx", kYmm},
    {"fma", Leaf1Ecx, bit(12), "avx", kYmm},
    {"avx2", Leaf7Ebx, bit(5), "avx", kYmm},
    {"avxvnni", Leaf71Eax, bit(4), "avx2", kYmm},
    {"avx512f", Leaf7Ebx, bit(16), "avx2 fma f16c", kZmm},
    {"avx512cd", Leaf7Ebx, bit(28), "avx512f", kZmm},
    {"avx512dq", Leaf7Ebx, bit(17), "avx512f", kZmm},
    {"avx512bw", Leaf7Ebx, bit(30), "avx512f", kZmm},
    {"avx512vl", Leaf7Ebx, bit(31), "avx512f", kZmm},
    {"avx512ifma", Leaf7Ebx, bit(21), "avx512f", kZmm},
    {"avx512vbmi", Leaf7Ecx, bit(1), "avx512bw", kZmm},
    {"avx512vbmi2", Leaf7Ecx, bit(6), "avx512bw", kZmm},
    {"avx512vnni", Leaf7Ecx, bit(11), "avx512f", kZmm},
    {"avx512bitalg", Leaf7Ecx, bit(12), "avx512bw", kZmm},
    {"avx512vpopcntdq", Leaf7Ecx, bit(14), "avx512f", kZmm},
    {"avx512bf16", Leaf71Eax, bit(5), "avx512bw", kZmm},
    {"avx512fp16", Leaf7Edx, bit(23), "avx512bw avx512vl avx512dq", kZmm},
    {"amx-tile", Leaf7Edx, bit(24), "", kTiles},
    {"amx-bf16", Leaf7Edx, bit(22), "amx-tile", kTiles},
    {"amx-int8", Leaf7Edx, bit(25), "amx-tile", kTiles},
};

#if defined(__x86_64__)
constexpr std::uint32_t kSystemUsesXsave = 1u << 27;  // of leaf 1, ecx

std::uint64_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

/// Asks the system to let this process use the tiles: it saves them only for those that did. An
/// older one does not know the question, nor would it save them.
bool may_use_tiles() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

/// What the system saves for this process.
std::uint64_t saved_state() {
  const std::uint64_t saved = read_xcr0();
  return (saved & kTiles) == kTiles && may_use_tiles() ? saved : saved & ~kTiles;
}
#endif

}  // namespace

std::span<const Feature> all_features(Architecture architecture) {
  if (architecture == Architecture::AArch64) return kAArch64;
  return kX86;
}

std::vector<std::string> features_of(Architecture architecture, const CpuWords& words) {
  const auto word = [&](CpuWord which) { return words[static_cast<std::size_t>(which)]; };
  std::vector<std::string> found;
  for (const Feature& feature : all_features(architecture)) {
    if ((word(feature.word) & feature.bits) != feature.bits) continue;
    if ((word(Xcr0) & feature.saved_state) != feature.saved_state) continue;
    const auto needed = split_words(feature.needs);
    if (std::ranges::all_of(needed, [&](std::string_view name) {
          return std::ranges::find(found, name) != found.end();
        }))
      found.emplace_back(feature.name);
  }
  return found;
}

CpuWords host_words() {
  CpuWords words{};
  [[maybe_unused]] const auto set = [&](CpuWord which, std::uint64_t value) {
    words[static_cast<std::size_t>(which)] = value;
  };
#if defined(__aarch64__)
  set(Hwcap, getauxval(AT_HWCAP));
  set(Hwcap2, getauxval(AT_HWCAP2));
#elif defined(__x86_64__)
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
    set(Leaf1Ecx, ecx);
    if (ecx & kSystemUsesXsave) set(Xcr0, saved_state());
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    set(Leaf7Ebx, ebx);
    set(Leaf7Ecx, ecx);
    set(Leaf7Edx, edx);
    const std::uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) set(Leaf71Eax, eax);
  }
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) set(ExtendedEcx, ecx);
#endif
  return words;
}

void set_vectors(Machine& machine) {
  const bool arm = machine.architecture == Architecture::AArch64;
  machine.vector_bytes = machine.has("avx512f") ? 64 : machine.has("avx") ? 32 : 16;
  machine.vector_registers = arm || machine.has("avx512f") ? 32 : 16;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace tessera::machine
