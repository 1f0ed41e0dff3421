#include "tessera/machine/peak.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/support/stopwatch.h"

namespace tessera::machine {

// Chains enough to fill every pipe, in assembly, so that no compiler improves on them.

#if defined(__aarch64__)

double fma_rounds(std::int64_t rounds) {
  const std::int64_t operations = rounds * 24 * 4 * 2;
  __asm__ volatile(
      "movi v30.4s, #0\n"
      "movi v31.4s, #0\n"
      "1:\n"
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
      "fmla v\\n\\().4s, v30.4s, v31.4s\n"
      ".endr\n"
      "subs %0, %0, #1\n"
      "b.ne 1b\n"
      : "+r"(rounds)
      :
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v30", "v31");
  return static_cast<double>(operations);
}

#elif defined(__x86_64__)

namespace {

double avx2_rounds(std::int64_t rounds) {
  const std::int64_t operations = rounds * 12 * 8 * 2;
  __asm__ volatile(
      "vxorps %%ymm14, %%ymm14, %%ymm14\n"
      "vxorps %%ymm15, %%ymm15, %%ymm15\n"
      "1:\n"
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\n\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return static_cast<double>(operations);
}

double avx512_rounds(std::int64_t rounds) {
  const std::int64_t operations = rounds * 24 * 16 * 2;
  __asm__ volatile(
      "vpxorq %%zmm30, %%zmm30, %%zmm30\n"
      "vpxorq %%zmm31, %%zmm31, %%zmm31\n"
      "1:\n"
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\n\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(rounds)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return static_cast<double>(operations);
}

}  // namespace

double fma_rounds(std::int64_t rounds) {
  return __builtin_cpu_supports("avx512f") ? avx512_rounds(rounds) : avx2_rounds(rounds);
}

#else
#error "no peak is known for this processor"
#endif

double measured_peak() {
  double best = 0;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const Stopwatch watch;
    const double operations = fma_rounds(20000);
    best = std::max(best, operations / watch.seconds());
  }
  return best;
}

double measured_bandwidth() {
  constexpr std::size_t words = std::size_t{16} << 20;  // more than caches hold
  const std::vector<std::uint64_t> memory(words, 1);
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Stopwatch watch;
    const std::uint64_t sum = std::accumulate(memory.begin(), memory.end(), std::uint64_t{0});
    // The sum is used, so that it is computed.
    if (sum == words) best = std::max(best, words * sizeof(memory[0]) / watch.seconds());
  }
  return best;
}

}  // namespace tessera::machine
