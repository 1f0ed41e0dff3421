#include "tessera/machine/peak.h"

#include <algorithm>
#include <chrono>

namespace tessera::machine {

// Chains enough to fill every pipe, in assembly, so that no compiler improves on them.

#if defined(__aarch64__)

double fma_rounds(std::int64_t rounds) {
  const std::int64_t operations = rounds * 24 * 4 * 2;
  __asm__ volatile(
      "movi v30.4s, #0\n"
      "movi v31.4s, #0\n"
      "1:\n"
      "fmla v0.4s, v30.4s, v31.4s\n"
      "fmla v1.4s, v30.4s, v31.4s\n"
      "fmla v2.4s, v30.4s, v31.4s\n"
      "fmla v3.4s, v30.4s, v31.4s\n"
      "fmla v4.4s, v30.4s, v31.4s\n"
      "fmla v5.4s, v30.4s, v31.4s\n"
      "fmla v6.4s, v30.4s, v31.4s\n"
      "fmla v7.4s, v30.4s, v31.4s\n"
      "fmla v8.4s, v30.4s, v31.4s\n"
      "fmla v9.4s, v30.4s, v31.4s\n"
      "fmla v10.4s, v30.4s, v31.4s\n"
      "fmla v11.4s, v30.4s, v31.4s\n"
      "fmla v12.4s, v30.4s, v31.4s\n"
      "fmla v13.4s, v30.4s, v31.4s\n"
      "fmla v14.4s, v30.4s, v31.4s\n"
      "fmla v15.4s, v30.4s, v31.4s\n"
      "fmla v16.4s, v30.4s, v31.4s\n"
      "fmla v17.4s, v30.4s, v31.4s\n"
      "fmla v18.4s, v30.4s, v31.4s\n"
      "fmla v19.4s, v30.4s, v31.4s\n"
      "fmla v20.4s, v30.4s, v31.4s\n"
      "fmla v21.4s, v30.4s, v31.4s\n"
      "fmla v22.4s, v30.4s, v31.4s\n"
      "fmla v23.4s, v30.4s, v31.4s\n"
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
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm10\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm11\n"
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
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm0\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm1\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm2\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm3\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm4\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm5\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm6\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm7\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm8\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm9\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm10\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm11\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm12\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm13\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm14\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm15\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm16\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm17\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm18\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm19\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm20\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm21\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm22\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm23\n"
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
    const auto start = std::chrono::steady_clock::now();
    const double operations = fma_rounds(20000);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, operations / took.count());
  }
  return best;
}

}  // namespace tessera::machine
