#include "tessera/tile/cpu/vectors.h"

#include <fmt/format.h>

#include "tessera/machine/machine.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile::cpu {
namespace {

/// Elements of a vector of a kernel that takes bytes through so many operations on floats.
int width_of_bytes(int operations) {
  std::string text =
      "kernel k(x: view u8[256], out: view u8[256]) { t: u8[256] = vload(x, 0)\n"
      "v0: f32[256] = cast(t)\n";
  for (int i = 0; i < operations; ++i) text += fmt::format("v{} = add(v{}, v0)\n", i + 1, i);
  text += fmt::format("vstore(out, 0, cast(v{}): u8[256]) }}", operations);
  machine::Machine machine;
  machine.vector_bytes = 16;
  machine.vector_registers = 32;
  const ScheduledKernel scheduled = schedule(testing::parsed_kernel(text), machine, {});
  int width = 0;
  for (const Step& step : scheduled.steps)
    if (step.kind == Step::Kind::Nest) width = step.nest.width;
  return width;
}

TEST(Vectors, AreOfTheNarrowestTypeInAShortBody) {
  EXPECT_EQ(width_of_bytes(3), 16);
}

TEST(Vectors, AreOfTheWidestTypeInALongBody) {
  EXPECT_EQ(width_of_bytes(400), 4);
}

}  // namespace
}  // namespace tessera::tile::cpu
