#include "tessera/tile/cpu/vectors.h"

#include <fmt/format.h>

#include <utility>

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

/// Vectorized axis and lanes of a kernel that doubles a dense tile, with vectors of 16 floats.
std::pair<int, int> lanes_of_tile(std::string_view shape) {
  machine::Machine machine;
  machine.vector_bytes = 64;
  machine.vector_registers = 32;
  const int axes = shape.find(',') == std::string_view::npos ? 1 : 2;
  const std::string zeros = axes == 1 ? "0" : "0, 0";
  const ScheduledKernel scheduled =
      schedule(testing::parsed_kernel(fmt::format(
                   "kernel k(x: view f32[{0}], out: view f32[{0}]) {{ t: f32[{0}] = vload(x, {1})\n"
                   "vstore(out, {1}, add(t, t): f32[{0}]) }}",
                   shape, zeros)),
               machine, {});
  for (const Step& step : scheduled.steps)
    if (step.kind == Step::Kind::Nest) return {step.nest.lane, step.nest.width};
  return {};
}

TEST(Vectors, AreShorterWhereNoAxisFillsOne) {
  EXPECT_EQ(lanes_of_tile("12"), std::pair(0, 8));
  EXPECT_EQ(lanes_of_tile("4"), std::pair(0, 4));
  EXPECT_EQ(lanes_of_tile("3"), std::pair(0, 1));
}

TEST(Vectors, AreContiguousRatherThanFull) {
  EXPECT_EQ(lanes_of_tile("64, 8"), std::pair(1, 8));
  EXPECT_EQ(lanes_of_tile("64, 20"), std::pair(1, 16));
  EXPECT_EQ(lanes_of_tile("64, 2").second, 16);
}

}  // namespace
}  // namespace tessera::tile::cpu
