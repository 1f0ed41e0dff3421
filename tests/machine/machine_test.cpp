#include "tessera/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tessera/machine/cpus.h"
#include "tessera/machine/features.h"

namespace tessera::machine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

/// The files of a system of 16 GiB, with these control groups.
class HostMemory : public ::testing::Test {
 protected:
  HostMemory() : root_(std::filesystem::path(::testing::TempDir()) / "tessera_host_memory") {
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1234567 kB\n");
  }
  ~HostMemory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  std::filesystem::path root_;
  static constexpr std::int64_t kGiB = std::int64_t{1} << 30;
};

TEST_F(HostMemory, IsThatOfTheComputer) {
  EXPECT_EQ(host_memory(root_), 16 * kGiB);
  EXPECT_GT(host_memory(), 0);
}

TEST_F(HostMemory, IsWhatTheControlGroupsLeave) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/memory.max", "2147483648\n");
  write("sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(host_memory(root_), 2 * kGiB);
  write("sys/fs/cgroup/user/job/memory.max", "1073741824\n");
  EXPECT_EQ(host_memory(root_), kGiB);
}

TEST_F(HostMemory, IsWhatControlGroupsOfVersion1Leave) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(host_memory(root_), 16 * kGiB);
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
  EXPECT_EQ(host_memory(root_), 3 * kGiB);
}

TEST(Host, HasCoresAndCachesThatCanBe) {
  const Machine machine = host();
  EXPECT_GE(machine.cores, 1);
  EXPECT_EQ(static_cast<std::size_t>(machine.cores), machine.siblings.size());
  EXPECT_LE(machine.threads(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GE(machine.l1d, 8 << 10);
  EXPECT_GE(machine.l2, machine.l1d);
  EXPECT_GE(machine.l3, machine.l1d);
  EXPECT_EQ(machine.cache_line & (machine.cache_line - 1), 0);
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_EQ(machine, host());
}

TEST(Host, HasOnlyTheCoresThatTheProcessMayUse) {
  cpu_set_t old;
  ASSERT_EQ(sched_getaffinity(0, sizeof old, &old), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &old)) last = cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Machine machine = host();
  ASSERT_EQ(sched_setaffinity(0, sizeof old, &old), 0);
  EXPECT_EQ(machine.cores, 1);
  EXPECT_THAT(machine.siblings, ElementsAre(ElementsAre(last)));
}

TEST(Host, HasTheVectorsOfItsArchitecture) {
  const Machine machine = host();
#if defined(__aarch64__)
  EXPECT_EQ(machine.architecture, Architecture::AArch64);
  EXPECT_TRUE(machine.has("neon"));
  EXPECT_EQ(machine.vector_bytes, 16);
#elif defined(__x86_64__)
  EXPECT_EQ(machine.architecture, Architecture::X86_64);
  EXPECT_EQ(machine.has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(machine.has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(machine.has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(machine.has("avx512bw"), __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(machine.has("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
  // Permission to use tiles was asked for, or they are not a feature.
  std::uint64_t permitted = 0;
  constexpr int get_permission = 0x1022, tile_data = 18;
  if (syscall(SYS_arch_prctl, get_permission, &permitted) == 0)
    EXPECT_LE(machine.has("amx-tile"), (permitted >> tile_data & 1) != 0);
  else
    EXPECT_FALSE(machine.has("amx-tile"));
#endif
}

CpuWords words(std::initializer_list<std::pair<CpuWord, std::uint64_t>> set) {
  CpuWords words{};
  for (const auto& [word, value] : set) words[static_cast<std::size_t>(word)] = value;
  return words;
}

constexpr std::uint64_t kAll = ~std::uint64_t{0};

TEST(Features, SveIsThereOnlyWhereTheSystemSaysSo) {
  const std::uint64_t sve = std::uint64_t{1} << 22;
  EXPECT_THAT(features_of(Architecture::AArch64, words({{CpuWord::Hwcap, kAll}})),
              IsSupersetOf({"neon", "sve"}));
  EXPECT_THAT(features_of(Architecture::AArch64,
                          words({{CpuWord::Hwcap, kAll & ~sve}, {CpuWord::Hwcap2, kAll}})),
              ::testing::AllOf(IsSupersetOf({"neon", "bf16", "i8mm", "dotprod"}),
                               Not(::testing::Contains("sve")), Not(::testing::Contains("sve2"))));
}

TEST(Features, WideVectorsNeedASystemThatSavesThem) {
  const auto with_saved = [](std::uint64_t saved) {
    CpuWords all;
    all.fill(kAll);
    all[static_cast<std::size_t>(CpuWord::Xcr0)] = saved;
    Machine machine{.architecture = Architecture::X86_64,
                    .features = features_of(Architecture::X86_64, all)};
    set_vectors(machine);
    return machine;
  };
  EXPECT_EQ(with_saved(0x3).vector_bytes, 16);
  EXPECT_FALSE(with_saved(0x3).has("fma"));
  EXPECT_EQ(with_saved(0x7).vector_bytes, 32);
  EXPECT_EQ(with_saved(0x7).vector_registers, 16);
  EXPECT_FALSE(with_saved(0x7).has("avx512f"));
  EXPECT_EQ(with_saved(0xe7).vector_bytes, 64);
  EXPECT_EQ(with_saved(0xe7).vector_registers, 32);
  EXPECT_FALSE(with_saved(0xe7).has("amx-tile"));
  EXPECT_TRUE(with_saved(0x600e7).has("amx-tile"));
}

TEST(Features, WhatNeedsAMissingFeatureIsMissingToo) {
  CpuWords all;
  all.fill(kAll);
  all[static_cast<std::size_t>(CpuWord::Leaf7Ebx)] &= ~(std::uint64_t{1} << 5);  // AVX2
  const auto features = features_of(Architecture::X86_64, all);
  EXPECT_THAT(features, ::testing::Contains("avx"));
  for (const std::string& name : features) EXPECT_THAT(name, Not(HasSubstr("avx512")));
}

TEST(Features, StandBelowWhatTheyNeed) {
  for (const Architecture architecture : {Architecture::AArch64, Architecture::X86_64}) {
    std::set<std::string_view> above;
    for (const Feature& feature : all_features(architecture)) {
      for (const std::string_view need : split_words(feature.needs))
        EXPECT_TRUE(above.contains(need)) << feature.name << " needs " << need;
      EXPECT_TRUE(above.insert(feature.name).second) << feature.name << " stands twice";
    }
  }
}

TEST(Named, KnowsProcessorsOfBothArchitectures) {
  for (const char* name : {"neoverse-n1", "neoverse-v1", "neoverse-v2", "haswell", "skylake-avx512",
                           "icelake-server", "sapphirerapids", "znver3", "znver4"}) {
    const auto machine = named(name);
    ASSERT_TRUE(machine.has_value()) << name;
    EXPECT_EQ(machine->cpu, name);
  }
  EXPECT_EQ(named("neoverse-v1")->vector_bytes, 16);
  EXPECT_TRUE(named("neoverse-v1")->has("bf16"));
  EXPECT_FALSE(named("neoverse-n1")->has("bf16"));
  EXPECT_EQ(named("haswell")->vector_bytes, 32);
  EXPECT_EQ(named("znver4")->vector_bytes, 64);
  EXPECT_TRUE(named("sapphirerapids")->has("avx512vnni"));
  EXPECT_EQ(*named("host"), host());
}

TEST(Named, EveryFeatureIsOneThatIsKnownAndHasItsNeeds) {
  for (const Cpu& cpu : known_cpus()) {
    const Machine machine = machine_of(cpu);
    for (const std::string_view name : split_words(cpu.features))
      EXPECT_TRUE(machine.has(name)) << cpu.name << ": " << name;
    for (const Feature& feature : all_features(cpu.architecture))
      if (machine.has(feature.name)) {
        for (const std::string_view need : split_words(feature.needs))
          EXPECT_TRUE(machine.has(need)) << cpu.name << ": " << feature.name << " needs " << need;
      }
  }
}

TEST(Named, AnotherNameIsDiagnosed) {
  const auto machine = named("pentium");
  ASSERT_FALSE(machine.has_value());
  EXPECT_EQ(machine.error().id, "machine-unknown");
  EXPECT_EQ(machine.error().message, "no machine is called 'pentium'");
  EXPECT_THAT(machine.error().note, HasSubstr("neoverse-v1"));
}

TEST(LlvmFeatures, SayEachFeatureOnceOffBeforeOn) {
  const Machine machine{.architecture = Architecture::AArch64, .features = {"fp-armv8", "neon"}};
  const std::string text = llvm_features(machine);
  EXPECT_THAT(text, HasSubstr("-sve,"));
  EXPECT_THAT(text, ::testing::EndsWith(",+fp-armv8,+neon"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, ',')) + 1,
            all_features(Architecture::AArch64).size());
}

TEST(Units, AreThoseOfTheFeatures) {
  const auto names = [](const char* machine) {
    std::vector<std::string> names;
    for (const Unit& unit : units(*named(machine))) names.push_back(unit.name);
    return names;
  };
  EXPECT_THAT(names("neoverse-v1"), ElementsAre("NEON", "sdot", "bfmmla", "smmla"));
  EXPECT_THAT(names("haswell"), ElementsAre("AVX", "AVX2"));
  EXPECT_THAT(names("cortex-a72"), ElementsAre("NEON"));
  EXPECT_THAT(names("sapphirerapids"), IsSupersetOf({"AVX-512", "tdpbf16ps", "tdpbssd"}));
}

TEST(Gpu, IsPartOfAMachineThatIsNoCpu) {
  EXPECT_FALSE(named("haswell")->is_gpu());
  const Machine gpu = cuda("sm_80");
  ASSERT_TRUE(gpu.is_gpu());
  EXPECT_EQ(gpu.gpu->architecture, "sm_80");
  EXPECT_GT(gpu.gpu->multiprocessors, 0);
  EXPECT_TRUE(gpu.features.empty());  // those of a CPU
}

TEST(FastProductTypes, AreThoseOfMatrixUnits) {
  EXPECT_THAT(fast_product_types(cuda()), ElementsAre(DType::F16, DType::BF16));
  EXPECT_THAT(fast_product_types(*named("neoverse-v1")), ElementsAre(DType::BF16));
  EXPECT_THAT(fast_product_types(*named("sapphirerapids")), ElementsAre(DType::BF16));
  EXPECT_THAT(fast_product_types(*named("haswell")), ElementsAre());
}

TEST(Text, HasOneLineForEachProperty) {
  EXPECT_EQ(to_text(*named("haswell")),
            "architecture  x86_64\n"
            "cpu           haswell\n"
            "cores         1 (hardware threads: 0)\n"
            "l1d           32 KiB of each core\n"
            "l2            256 KiB of each core\n"
            "l3            8 MiB of all cores\n"
            "cache line    64 bytes\n"
            "vectors       16 registers of 32 bytes\n"
            "vector        AVX (256 bits, floats)\n"
            "vector        AVX2 (256 bits)\n"
            "features      sse3 ssse3 sse4.1 sse4.2 cx16 movbe popcnt bmi bmi2 lzcnt avx f16c fma "
            "avx2\n");
}

}  // namespace
}  // namespace tessera::machine
