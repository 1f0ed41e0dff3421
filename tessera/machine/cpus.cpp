#include "tessera/machine/cpus.h"

#include <algorithm>

#include "tessera/machine/features.h"
#include "tessera/support/check.h"

namespace tessera::machine {
namespace {

using enum Architecture;

constexpr std::uint32_t kArm = 0x41, kAmpere = 0xc0;
constexpr std::string_view kIntel = "GenuineIntel", kAmd = "AuthenticAMD";

constexpr Cpu kCpus[] = {
    {.name = "generic", .architecture = AArch64, .features = "fp-armv8 neon"},
    {.name = "cortex-a53",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd03,
     .base = "generic"},
    {.name = "cortex-a57",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd07,
     .base = "generic",
     .l2_kib = 1024},
    {.name = "cortex-a72",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd08,
     .base = "generic",
     .l2_kib = 1024},
    {.name = "cortex-a76",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd0b,
     .base = "generic",
     .features = "lse rdm rcpc fullfp16 dotprod",
     .l1d_kib = 64},
    {.name = "cortex-a78",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd41,
     .base = "cortex-a76",
     .l1d_kib = 64},
    {.name = "neoverse-n1",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd0c,
     .base = "cortex-a76",
     .l1d_kib = 64,
     .l2_kib = 1024,
     .l3_kib = 32 << 10},
    // The vectors of a Neoverse are computed by NEON, which reaches its peak; SVE is left out.
    {.name = "neoverse-v1",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd40,
     .base = "neoverse-n1",
     .features = "jsconv complxnum lse2 rcpc-immo flagm fp16fml i8mm bf16",
     .l1d_kib = 64,
     .l2_kib = 1024,
     .l3_kib = 32 << 10},
    {.name = "neoverse-n2",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd49,
     .base = "neoverse-v1",
     .features = "fptoint",
     .l1d_kib = 64,
     .l2_kib = 1024,
     .l3_kib = 32 << 10},
    {.name = "neoverse-v2",
     .architecture = AArch64,
     .implementer = kArm,
     .part = 0xd4f,
     .base = "neoverse-n2",
     .l1d_kib = 64,
     .l2_kib = 2048,
     .l3_kib = 36 << 10},
    {.name = "ampere1",
     .architecture = AArch64,
     .implementer = kAmpere,
     .part = 0xac3,
     .base = "neoverse-v1",
     .l1d_kib = 64,
     .l2_kib = 2048,
     .l3_kib = 64 << 10},

    {.name = "x86-64", .architecture = X86_64},
    {.name = "x86-64-v2",
     .architecture = X86_64,
     .base = "x86-64",
     .features = "sse3 ssse3 sse4.1 sse4.2 cx16 popcnt"},
    {.name = "x86-64-v3",
     .architecture = X86_64,
     .base = "x86-64-v2",
     .features = "avx avx2 fma f16c bmi bmi2 lzcnt movbe"},
    {.name = "x86-64-v4",
     .architecture = X86_64,
     .base = "x86-64-v3",
     .features = "avx512f avx512bw avx512cd avx512dq avx512vl",
     .l2_kib = 1024},
    {.name = "haswell",
     .architecture = X86_64,
     .vendor = kIntel,
     .base = "x86-64-v3",
     .l2_kib = 256},
    {.name = "skylake-avx512",
     .architecture = X86_64,
     .vendor = kIntel,
     .base = "x86-64-v4",
     .l2_kib = 1024,
     .l3_kib = 24 << 10},
    {.name = "icelake-server",
     .architecture = X86_64,
     .vendor = kIntel,
     .base = "skylake-avx512",
     .features = "avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq",
     .l1d_kib = 48,
     .l2_kib = 1280,
     .l3_kib = 48 << 10},
    {.name = "sapphirerapids",
     .architecture = X86_64,
     .vendor = kIntel,
     .base = "icelake-server",
     .features = "avxvnni avx512bf16 avx512fp16 amx-tile amx-bf16 amx-int8",
     .l1d_kib = 48,
     .l2_kib = 2048,
     .l3_kib = 96 << 10},
    {.name = "znver3",
     .architecture = X86_64,
     .vendor = kAmd,
     .base = "x86-64-v3",
     .l3_kib = 32 << 10},
    {.name = "znver4",
     .architecture = X86_64,
     .vendor = kAmd,
     .base = "x86-64-v4",
     .features = "avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq "
                 "avx512bf16",
     .l2_kib = 1024,
     .l3_kib = 32 << 10},
};

void add_features(const Cpu& cpu, std::vector<std::string_view>& names) {
  if (!cpu.base.empty()) {
    const Cpu* base = std::ranges::find(kCpus, cpu.base, &Cpu::name);
    TESSERA_CHECK(base < &cpu, "{} has a base below it", cpu.name);
    add_features(*base, names);
  }
  std::ranges::copy(split_words(cpu.features), std::back_inserter(names));
}

}  // namespace

std::span<const Cpu> known_cpus() {
  return kCpus;
}

Machine machine_of(const Cpu& cpu) {
  Machine machine{.architecture = cpu.architecture,
                  .cpu = std::string(cpu.name),
                  .siblings = {{0}},
                  .l1d = cpu.l1d_kib * std::int64_t{1024},
                  .l2 = cpu.l2_kib * std::int64_t{1024},
                  .l3 = cpu.l3_kib * std::int64_t{1024}};
  std::vector<std::string_view> names;
  add_features(cpu, names);
  // In the order of the table of features, as those of a host are.
  for (const Feature& feature : all_features(cpu.architecture))
    if (std::ranges::find(names, feature.name) != names.end())
      machine.features.emplace_back(feature.name);
  set_vectors(machine);
  return machine;
}

}  // namespace tessera::machine
