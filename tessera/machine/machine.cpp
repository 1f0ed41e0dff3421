#include "tessera/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/machine/cpus.h"
#include "tessera/machine/features.h"

namespace tessera::machine {
namespace {

using enum Unit::Kind;

struct UnitRow {
  Unit::Kind kind;
  std::string_view name, feature, does;
};

constexpr UnitRow kUnits[] = {
    {Vector, "NEON", "neon", "128 bits"},
    {Vector, "SVE", "sve", "scalable"},
    {Vector, "SVE2", "sve2", "scalable"},
    {Vector, "AVX", "avx", "256 bits, floats"},
    {Vector, "AVX2", "avx2", "256 bits"},
    {Vector, "AVX-512", "avx512f", "512 bits"},
    {Dot, "sdot", "dotprod", "i8 x i8 -> i32"},
    {Dot, "vpdpbusd", "avxvnni", "u8 x i8 -> i32, 256 bits"},
    {Dot, "vpdpbusd", "avx512vnni", "u8 x i8 -> i32"},
    {Dot, "vdpbf16ps", "avx512bf16", "bf16 x bf16 -> f32"},
    {Matrix, "bfmmla", "bf16", "bf16 x bf16 -> f32"},
    {Matrix, "smmla", "i8mm", "i8 x i8 -> i32"},
    {Matrix, "SME", "sme", "outer products"},
    {Matrix, "tdpbf16ps", "amx-bf16", "bf16 x bf16 -> f32, tiles"},
    {Matrix, "tdpbssd", "amx-int8", "i8 x i8 -> i32, tiles"},
};

std::string size_text(std::int64_t bytes) {
  return bytes % (1 << 20) == 0 ? fmt::format("{} MiB", bytes >> 20)
                                : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

std::string_view to_string(Architecture architecture) {
  switch (architecture) {
    case Architecture::AArch64: return "aarch64";
    case Architecture::X86_64: return "x86_64";
  }
  return "";
}

std::string_view to_string(Unit::Kind kind) {
  switch (kind) {
    case Vector: return "vector";
    case Dot: return "dot";
    case Matrix: return "matrix";
  }
  return "";
}

Machine cuda(std::string_view architecture) {
  Machine gpu;
  gpu.cpu = "cuda";
  gpu.gpu = {.architecture = std::string(architecture), .multiprocessors = 132};
  gpu.cores = gpu.gpu->multiprocessors;
  gpu.l1d = 32 << 10;
  gpu.l2 = 64 << 10;
  gpu.l3 = 32 << 20;
  gpu.vector_bytes = 128;  // what a warp reads at once
  return gpu;
}

std::int64_t shared_bytes_of_block(std::string_view architecture) {
  return architecture == "sm_90a" ? 227 << 10 : 99 << 10;  // the latter as 8.6 and 8.9
}

std::vector<DType> fast_product_types(const Machine& machine) {
  if (machine.is_gpu()) return {DType::F16, DType::BF16};
  if (machine.has("bf16") || machine.has("avx512bf16")) return {DType::BF16};
  return {};
}

bool Machine::has(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

int Machine::threads() const {
  std::size_t count = 0;
  for (const std::vector<int>& core : siblings) count += core.size();
  return std::max(cores, static_cast<int>(count));
}

Expected<Machine> named(std::string_view name) {
  if (name == "host") return host();
  const auto cpus = known_cpus();
  if (const auto cpu = std::ranges::find(cpus, name, &Cpu::name); cpu != cpus.end())
    return machine_of(*cpu);
  return Diagnostic{.id = "machine-unknown",
                    .message = fmt::format("no machine is called '{}'", name),
                    .note = fmt::format("known are host, {}", fmt::join(known_names(), ", "))};
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Cpu& cpu : known_cpus()) names.emplace_back(cpu.name);
  return names;
}

std::vector<Unit> units(const Machine& machine) {
  std::vector<Unit> found;
  for (const UnitRow& row : kUnits)
    if (machine.has(row.feature))
      found.push_back({.kind = row.kind,
                       .name = std::string(row.name),
                       .feature = std::string(row.feature),
                       .does = std::string(row.does)});
  return found;
}

std::string to_text(const Machine& machine) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<14}{}\n", name, value);
  };
  std::vector<std::string> cores;
  for (const std::vector<int>& core : machine.siblings)
    cores.push_back(fmt::format("{}", fmt::join(core, "+")));

  line("architecture", std::string(to_string(machine.architecture)));
  line("cpu", machine.cpu);
  line("cores", fmt::format("{} (hardware threads: {})", machine.cores, fmt::join(cores, " ")));
  line("l1d", size_text(machine.l1d) + " of each core");
  line("l2", size_text(machine.l2) + " of each core");
  line("l3", size_text(machine.l3) + " of all cores");
  line("cache line", fmt::format("{} bytes", machine.cache_line));
  line("vectors",
       fmt::format("{} registers of {} bytes", machine.vector_registers, machine.vector_bytes));
  for (const Unit& unit : units(machine))
    line(to_string(unit.kind), fmt::format("{} ({})", unit.name, unit.does));
  line("features", fmt::format("{}", fmt::join(machine.features, " ")));
  return text;
}

std::string llvm_features(const Machine& machine) {
  // Off before on: switching off takes with it what needs the feature, switching on brings what the
  // feature needs, and a machine has what its features need.
  std::string off, on;
  for (const Feature& feature : all_features(machine.architecture)) {
    const bool has = machine.has(feature.name);
    (has ? on : off) += fmt::format(",{}{}", has ? '+' : '-', feature.name);
  }
  return (off + on).substr(1);
}

}  // namespace tessera::machine
