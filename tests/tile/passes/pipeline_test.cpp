#include <fmt/format.h>

#include "examples/attention.h"
#include "examples/dropout.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

/// All passes in their order.
Kernel through_passes(const Kernel& kernel) {
  return split(simplify(recover(simplify(kernel))));
}

void expect_keeps(const Expected<Kernel>& kernel, const Grid& grid,
                  const std::vector<Extents>& arguments) {
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  SCOPED_TRACE(kernel->name);
  expect_same_meaning(through_passes, launched(*kernel, grid, arguments));
  const Kernel after = through_passes(*kernel);
  EXPECT_EQ(count_of(after, Code::Load) + count_of(after, Code::Store), 0) << to_text(after);
  EXPECT_EQ(anonymous(through_passes(after)), anonymous(after));
}

TEST(Passes, KeepTheMeaningOfElementwiseExamples) {
  for (const std::int64_t n : {0, 1, 63, 64, 65, 200}) {
    SCOPED_TRACE(n);
    const Grid grid = {cdiv(n, 64), 1, 1};
    expect_keeps(examples::vector_add(DType::F32, 64), grid, {{n}, {n}, {n}, {n}});
    expect_keeps(examples::dropout(DType::F32, 64), grid, {{n}, {n}, {n}, {0}, {12345}});
  }
}

TEST(Passes, KeepTheMeaningOfRowExamples) {
  for (const std::int64_t n : {1, 7, 64, 129}) {
    SCOPED_TRACE(n);
    expect_keeps(examples::softmax(DType::F32, n), {3, 1, 1}, {{3, n}, {3, n}});
    expect_keeps(examples::online_softmax(DType::F32, 32), {3, 1, 1}, {{3, n}, {3, n}});
    expect_keeps(examples::layer_norm(DType::F32, n), {3, 1, 1}, {{3, n}, {n}, {n}, {3, n}, {1}});
  }
}

TEST(Passes, KeepTheMeaningOfProducts) {
  const examples::MatmulTiles tiles{.m = 8, .n = 16, .k = 4, .group = 2};
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, {8, 16, 4}, {17, 33, 7}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
    const Grid grid = {examples::matmul_programs(m, n, tiles), 1, 1};
    expect_keeps(examples::matmul(DType::F32, DType::F32, tiles), grid, {{m, k}, {k, n}, {m, n}});
    expect_keeps(examples::matmul_pointers(DType::F32, tiles), grid,
                 {{m * k}, {k * n}, {m * n}, {m}, {n}, {k}, {k}, {1}, {n}, {1}, {n}, {1}});
    expect_keeps(examples::matmul_packed(DType::F32, tiles, 8), grid,
                 {{m, k}, {cdiv(n, 8), k, 8}, {m, n}});
  }
}

TEST(Passes, KeepTheMeaningOfAttention) {
  const examples::AttentionTiles tiles{.queries = 8, .keys = 4};
  for (const auto mask : {examples::Mask::None, examples::Mask::Causal}) {
    for (const std::int64_t length : {1, 8, 13}) {
      SCOPED_TRACE(length);
      const Extents shape = {2, length, 4};
      expect_keeps(examples::attention(DType::F32, 4, tiles, mask), {cdiv(length, 8), 2, 1},
                   {shape, shape, shape, shape});
    }
  }
}

TEST(Passes, EndOnDeeplyNestedLoops) {
  std::string text = "kernel k(x: view f32[8], n: i64) {\n t: f32[8] = vload(x, 0)\n";
  std::string end;
  std::string value = "t";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format(
        "r{0}: f32[8] = for (i{0}: i64 = 0 to n step 1, a{0}: f32[8] = {1}, c{0}: i64 = n) {{\n", i,
        value);
    text.replace(text.rfind(fmt::format("r{}: f32[8]", i)), fmt::format("r{}: f32[8]", i).size(),
                 fmt::format("(r{0}: f32[8], d{0}: i64)", i));
    value = fmt::format("a{}", i);
    end = fmt::format("e{0}: i64 = add(c{0}, i{0})\n yield({1}, e{0})\n }}\n", i,
                      i == 39 ? "b" : fmt::format("r{}", i + 1)) +
          end;
  }
  text += "b: f32[8] = exp(a39)\n" + end + "vstore(x, 0, r0)\n }";
  const Kernel kernel = through_passes(parsed_kernel(text));
  expect_valid(kernel);
  EXPECT_EQ(count_of(kernel, Code::For), 40);
}

TEST(Passes, EndOnLongChains) {
  Builder b("chain");
  const ValueId out = b.param(Type::pointer(DType::I64), "out");
  const ValueId n = b.param(Type::scalar(DType::I64), "n");
  ValueId x = n, mask = b.map(Function::Less, {b.iota(DType::I64, 8), b.broadcast(n, {8})});
  for (int i = 0; i < 1500; ++i) {
    x = b.add(x, b.mul(x, n));
    const ValueId bound = b.map(Function::Less, {b.iota(DType::I64, 8), b.broadcast(x, {8})});
    mask = b.map(Function::And, {mask, b.map(Function::And, {bound, mask})});
  }
  const ValueId at = b.add(b.broadcast(x, {8}), b.iota(DType::I64, 8));
  b.assume(b.map(Function::Less, {x, n}));
  b.store(b.offset(b.broadcast(out, {8}), at), at, mask);
  const auto kernel = b.finish();
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  expect_valid(through_passes(*kernel));
}

}  // namespace
}  // namespace tessera::tile
