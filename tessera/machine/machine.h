#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/dtype.h"
#include "tessera/support/expected.h"

namespace tessera::machine {

// NOLINTNEXTLINE(readability-identifier-naming): x86-64 without the underscore is another number
enum class Architecture : std::uint8_t { AArch64, X86_64 };

std::string_view to_string(Architecture architecture);

/// What a target machine is beside a CPU, if it is a GPU.
struct Gpu {
  std::string architecture = {};  // that code is written for: `sm_90a`, Hopper, or `sm_80`, which
                                  // all from Ampere on run
  int multiprocessors = 1;        // how many have a program at a time
  bool operator==(const Gpu&) const = default;
};

/// What a computer is, as data: what schedules are reasoned from and code is generated for. Which
/// roundings code may do is not said here, but by the options of a compilation.
struct Machine {
  Architecture architecture = Architecture::AArch64;
  std::string cpu = {};  // as LLVM names it: neoverse-v1, sapphirerapids

  int cores = 1;                                // physical, that this process may use at a time
  std::vector<std::vector<int>> siblings = {};  // hardware threads of each core
  std::int64_t l1d = 32 << 10, l2 = 512 << 10,
               l3 = 8 << 20;  // bytes of data; l3 of all cores together
  int cache_line = 64;

  int vector_bytes = 16;  // of the widest vector register that pays
  int vector_registers = 32;
  /// What both the processor and the system offer, by LLVM's names: neon, bf16, i8mm, dotprod,
  /// fullfp16, avx2, fma, f16c, avx512f, avx512bw, avx512vl, avx512dq, avx512bf16, avx512vnni, …
  std::vector<std::string> features = {};

  std::optional<Gpu> gpu = {};  // none: this is a CPU

  bool is_gpu() const { return gpu.has_value(); }
  bool has(std::string_view feature) const;
  /// Hardware threads of all cores.
  int threads() const;

  bool operator==(const Machine&) const = default;
};

/// This computer, with the cores that this process may use. SVE is claimed only where the system
/// lets programs use it. It reads files of the system: ask once.
Machine host();

/// Bytes of memory that this process may use: what the computer has, or what the control groups of
/// the process leave it. The files of the system are below `root`.
std::int64_t host_memory(const std::filesystem::path& root = "/");

/// An NVIDIA GPU, as far as schedules are reasoned from it: what a program keeps at hand lies in
/// the registers of a block of threads (l1d) and in shared memory (l2).
Machine cuda(std::string_view architecture = "sm_90a");

/// Bytes of shared memory that a block of threads may have.
std::int64_t shared_bytes_of_block(std::string_view architecture);

/// Element types narrower than f32 of which a machine multiplies matrices faster, the fastest
/// first.
std::vector<DType> fast_product_types(const Machine& machine);

/// A machine by name, for code that runs elsewhere: `host`, or an LLVM CPU name of either
/// architecture that tessera knows (`neoverse-v1`, `haswell`, `sapphirerapids`, …).
Expected<Machine> named(std::string_view name);

/// The names that named() knows, without `host`.
std::vector<std::string> known_names();

/// What computes several elements at once, by the width of its operands: a vector unit, or one that
/// adds up products (`sdot`) or multiplies matrices (`bfmmla`).
struct Unit {
  enum class Kind : std::uint8_t { Vector, Dot, Matrix };
  Kind kind = Kind::Vector;
  std::string name;     // NEON, AVX-512, bfmmla
  std::string feature;  // that it comes with
  std::string does = {};
  bool operator==(const Unit&) const = default;
};
std::vector<Unit> units(const Machine& machine);
std::string_view to_string(Unit::Kind kind);

/// One line per property.
std::string to_text(const Machine& machine);

/// What LLVM is to switch off and on, of all that tessera knows: `-sve,+neon`. It is exact
/// whichever features LLVM takes a CPU to have.
std::string llvm_features(const Machine& machine);

}  // namespace tessera::machine
