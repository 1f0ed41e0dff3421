#include "tessera/tile/passes/exponents.h"

#include <cmath>
#include <limits>

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

constexpr std::string_view kScaledSoftmax = R"(
    kernel softmax(x: view f32[4, 8], out: view f32[4, 8]) {
      t: f32[4, 8] = vload(x, 0, 0)
      c: f32[4, 8] = 0.7
      s: f32[4, 8] = mul(t, c)
      m: f32[4] = reduce(s) {fn = maximum, axis = 1}
      wide: f32[4, 8] = broadcast(reshape(m): f32[4, 1])
      vstore(out, 0, 0, exp(sub(s, wide)))
    })";

TEST(FuseExponents, OneMultiplyAddPerElementAndOneProductPerRow) {
  const Kernel once = fuse_exponents(parsed_kernel(kScaledSoftmax));
  expect_valid(once);
  int products = 0, fused = 0, exponentials = 0;
  for_each_op(once, once.body, [&](OpId id) {
    const Operation& op = once.ops[id];
    if (op.code == Code::Reduce) {
      // of what was loaded, not of the products
      EXPECT_EQ(once.values[op.in[0]].name, "t") << to_text(once);
    }
    if (op.code != Code::Map) return;
    products += op.function == Function::Mul && once.type(op.out[0]).count() == 4 ? 1 : 0;
    fused += op.function == Function::Fma ? 1 : 0;
    exponentials += op.function == Function::Exp2 ? 1 : 0;
    EXPECT_NE(op.function, Function::Exp);
  });
  EXPECT_EQ(fused, 1) << to_text(once);
  EXPECT_EQ(exponentials, 1);
  EXPECT_EQ(products, 2) << to_text(once);  // the maximum, and what is subtracted
}

TEST(FuseExponents, ANegativeFactorKeepsItsMaximum) {
  expect_unchanged(fuse_exponents, R"(
    kernel k(x: view f32[4, 8], out: view f32[4]) {
      t: f32[4, 8] = vload(x, 0, 0)
      c: f32[4, 8] = -2.0
      m: f32[4] = reduce(mul(t, c)) {fn = maximum, axis = 1}
      vstore(out, 0, m)
    })");
}

TEST(SimplifyReals, ZerosAndInverseRoots) {
  const Kernel before = parsed_kernel(R"(
    kernel k(x: view f32[4, 8], out: view f32[4, 8]) {
      t: f32[4, 8] = vload(x, 0, 0)
      zero: f32[4, 8] = 0.0
      one: f32[4, 8] = 1.0
      s: f32[4, 8] = sqrt(add(t, zero))
      vstore(out, 0, 0, div(one, s))
    })");
  const Kernel after = parsed_kernel(R"(
    kernel k(x: view f32[4, 8], out: view f32[4, 8]) {
      t: f32[4, 8] = vload(x, 0, 0)
      vstore(out, 0, 0, rsqrt(t))
    })");
  EXPECT_EQ(anonymous(simplify(simplify_reals(before))), anonymous(simplify(after)));
  expect_unchanged(simplify_reals, R"(
    kernel k(x: view f32[4, 8], out: view f32[4, 8]) {
      t: f32[4, 8] = vload(x, 0, 0)
      two: f32[4, 8] = 2.0
      vstore(out, 0, 0, div(two, sqrt(sub(t, two))))
    })");
}

TEST(FuseExponents, OtherExponentialsStay) {
  expect_unchanged(fuse_exponents, R"(
    kernel k(x: view f32[4, 8], y: view f32[4, 8], out: view f32[4, 8]) {
      a: f32[4, 8] = vload(x, 0, 0)
      b: f32[4, 8] = vload(y, 0, 0)
      vstore(out, 0, 0, exp(sub(a, b)))
    })");
}

/// Also -inf and NaN: the maximum of a row that has nothing else is -inf.
TEST(FuseExponents, ComputesTheSameUpToRounding) {
  const Kernel before = parsed_kernel(kScaledSoftmax);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 13) * 1.7F - 9.0F;
  x[3] = -kInf;                                       // in row 0
  for (std::size_t i = 8; i < 16; ++i) x[i] = -kInf;  // all of row 1
  x[17] = std::numeric_limits<float>::quiet_NaN();    // in row 2
  std::vector<float> results[2] = {std::vector<float>(32), std::vector<float>(32)};
  for (const int i : {0, 1}) {
    const std::vector<Argument> arguments = {Argument::view(DType::F32, x.data(), {4, 8}),
                                             Argument::view(DType::F32, results[i].data(), {4, 8})};
    ASSERT_TRUE(interpret(i == 0 ? before : fuse_exponents(before), arguments, {1, 1, 1}));
  }
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(std::isnan(results[0][i]), std::isnan(results[1][i])) << i;
    if (std::isnan(results[0][i])) continue;
    EXPECT_NEAR(results[1][i], results[0][i], 2e-6) << i;
  }
}

}  // namespace
}  // namespace tessera::tile
