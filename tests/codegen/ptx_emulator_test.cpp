#include "tests/codegen/ptx_emulator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/codegen/ptx_expect.h"

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Problem that the emulator reports for a matmul whose first operand and result have so many
/// elements of memory.
std::string problem_of(std::int64_t a_elements, std::int64_t c_elements,
                       const PtxOptions& options) {
  const auto kernel = parsed(R"(kernel product(a: *f16, b: view f16[512, 64], c: *f32) {
    x: view f16[128, 512] = view(a)
    y: view f32[128, 64] = view(c)
    row = mul(pid(), 64)
    sum = for (k = 0 to 512 step 32, acc: f32[64, 64] = 0.0) {
      p: f16[64, 32] = vload(x, row, k)
      q: f16[32, 64] = vload(b, k, 0)
      yield(dot(p, q, acc))
    }
    vstore(y, row, 0, sum)
  })");
  std::vector<std::vector<std::byte>> memory;
  const auto arguments = TestArguments(1)
                             .pointer(DType::F16, a_elements)
                             .view(DType::F16, {512, 64})
                             .pointer(DType::F32, c_elements)
                             .copy(memory);
  const auto done = emulate(kernel, arguments, {2, 1, 1}, {.ptx = options});
  return done ? "" : done.error().message;
}

// By all threads, by producers, and by tensor maps.
TEST(PtxEmulator, ReportsAccessesOutsideOfMemory) {
  constexpr std::int64_t kA = 128 * 512, kC = 128 * 64;
  const std::vector<PtxOptions> all = {
      {.warp_specialization = false}, {.persistent = true}, {.persistent = true, .maps = true}};
  for (const PtxOptions& options : all) {
    EXPECT_THAT(problem_of(kA, kC, options), IsEmpty());
    EXPECT_THAT(problem_of(kA - 8, kC, options), HasSubstr("outside of memory"));
    EXPECT_THAT(problem_of(kA, kC - 1, options), HasSubstr("outside of memory"));
  }
}

}  // namespace
}  // namespace tessera::codegen
