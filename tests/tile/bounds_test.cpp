#include "tessera/tile/cpu/bounds.h"

#include <gtest/gtest.h>

#include "tessera/tile/text.h"

namespace tessera::tile::cpu {
namespace {

/// Of the value that is called `d` in a body whose x is a square tile.
bool never_positive(const std::string& body) {
  const auto kernel = parse_kernel(
      "kernel k(m: view f32[8, 8], g: view f32[8]) {\n  x: f32[8, 8] = vload(m, 0, 0)\n" + body +
      "  vstore(m, 0, 0, d)\n}");
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  for (ValueId id = 0; id < kernel->values.size(); ++id)
    if (kernel->values[id].name == "d") return is_never_positive(*kernel, definitions(*kernel), id);
  ADD_FAILURE() << "no d";
  return false;
}

std::string less_the_fold(const std::string& fold, const std::string& axis,
                          const std::string& shape) {
  return "  r: f32[8] = reduce(x) {fn = " + fold + ", axis = " + axis + "}\n  s: f32[" + shape +
         "] = reshape(r)\n  b: f32[8, 8] = broadcast(s)\n  d: f32[8, 8] = sub(x, b)\n";
}

TEST(Bounds, KnowWhatIsLessItsGreatest) {
  EXPECT_TRUE(never_positive(less_the_fold("max", "0", "1, 8")));
  EXPECT_TRUE(never_positive(less_the_fold("max", "1", "8, 1")));
  EXPECT_TRUE(never_positive("  y: f32[8, 8] = max(x, 0.5)\n  d: f32[8, 8] = sub(x, y)\n"));
}

TEST(Bounds, KnowTheGreatestSoFar) {
  EXPECT_TRUE(never_positive(
      "  r: f32[8] = reduce(x) {fn = max, axis = 0}\n  p: f32[8] = vload(g, 0)\n"
      "  n: f32[8] = max(p, r)\n  s: f32[1, 8] = reshape(n)\n  b: f32[8, 8] = broadcast(s)\n"
      "  d: f32[8, 8] = sub(x, b)\n"));
}

TEST(Bounds, AssumeNothingOfOtherDifferences) {
  EXPECT_FALSE(never_positive(less_the_fold("max", "0", "8, 1")));  // of columns, along rows
  EXPECT_FALSE(never_positive(less_the_fold("max", "1", "1, 8")));
  EXPECT_FALSE(never_positive(less_the_fold("min", "0", "1, 8")));
  EXPECT_FALSE(never_positive(less_the_fold("add", "0", "1, 8")));
  EXPECT_FALSE(never_positive("  y: f32[8, 8] = min(x, 0.5)\n  d: f32[8, 8] = sub(x, y)\n"));
  EXPECT_FALSE(never_positive("  y: f32[8, 8] = max(x, 0.5)\n  d: f32[8, 8] = sub(y, x)\n"));
  EXPECT_FALSE(never_positive("  d: f32[8, 8] = max(x, 0.5)\n"));
}

}  // namespace
}  // namespace tessera::tile::cpu
