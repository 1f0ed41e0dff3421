#include "tessera/tile/passes/hoist_views.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tessera/tile/passes/version_indices.h"
#include "tessera/tile/passes/version_loops.h"
#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

/// What a kernel is rewritten to for a GPU, before its loops are pipelined.
tile::Kernel prepared(const tile::Kernel& kernel) {
  using namespace tile;  // NOLINT(google-build-using-namespace): the passes
  return simplify(
      hoist_views(simplify(recover(simplify(version_loops(version_indices(simplify(kernel))))))));
}

/// Loops over a dot whose operands are tiles of views that are made in front of the loop.
int pipelined_loops(const tile::Kernel& kernel) {
  int count = 0;
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    const tile::Operation& op = kernel.ops[id];
    if (op.code != tile::Code::For) return;
    int dots = 0, tiles = 0, others = 0;
    tile::for_each_op(kernel, op.regions[0], [&](tile::OpId inner) {
      const tile::Code code = kernel.ops[inner].code;
      dots += code == tile::Code::Dot ? 1 : 0;
      tiles += code == tile::Code::Vload ? 1 : 0;
      others += code == tile::Code::Load || code == tile::Code::View ? 1 : 0;
    });
    count += dots == 1 && tiles == 2 && others == 0 ? 1 : 0;
  });
  return count;
}

TEST(TritonPipeline, DivisorsAreThoseOfTheModule) {
  const auto module = parse_module(R"(module {
    tt.func public @k(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32,
                      %s: i32 {tt.divisibility = 24 : i32}) {
      tt.return
    }
  })");
  ASSERT_TRUE(module) << to_string(module.error());
  EXPECT_EQ(parameter_divisors(*module), (std::vector<std::int64_t>{16, 1, 8}));
}

TEST(TritonPipeline, TheLoopOfAMatmulHasTheFormThatPipelinesNeed) {
  for (const auto& path : fixtures_of("matmul")) {
    const tile::Kernel kernel = prepared(kernel_at(path));
    EXPECT_EQ(pipelined_loops(kernel), 1) << tile::to_text(kernel);
  }
}

struct MatmulLaunch {
  std::int64_t m, n, k, am, ak, bk, bn;
};

/// The kernel does the same before and after the passes, bit for bit or with the same diagnostic.
void expect_prepared_the_same(const MatmulLaunch& sizes) {
  SCOPED_TRACE(::testing::Message() << sizes.m << " x " << sizes.n << " x " << sizes.k);
  const auto [m, n, k, am, ak, bk, bn] = sizes;
  for (const auto& path : fixtures_of("matmul")) {
    const tile::Kernel kernel = kernel_at(path), after = prepared(kernel);
    const auto valid = tile::verify(after);
    ASSERT_TRUE(valid) << to_string(valid.error());
    Launch launch("matmul");
    launch.memory(random_floats(4000, 1)).memory(random_floats(4000, 2));
    launch.memory(random_floats(4000, 3)).numbers(m, n, k, am, ak, bk, bn, n, 1);
    const std::int64_t blocks = std::max<std::int64_t>((m + 15) / 16 * ((n + 15) / 16), 1);
    Memory expected{"", launch.buffers()}, actual{"", launch.buffers()};
    const auto ran = tile::interpret(kernel, launch.arguments(kernel, expected), {blocks, 1, 1});
    const auto reran = tile::interpret(after, launch.arguments(after, actual), {blocks, 1, 1});
    ASSERT_TRUE(ran) << to_string(ran.error());
    ASSERT_TRUE(reran) << to_string(reran.error());
    EXPECT_EQ(expected.buffers, actual.buffers);
  }
}

TEST(TritonPipeline, KeepsTheMeaningOfMatmulsOfAnySizes) {
  expect_prepared_the_same({16, 16, 8, 8, 1, 16, 1});
  expect_prepared_the_same({48, 32, 24, 24, 1, 32, 1});
  expect_prepared_the_same({5, 7, 3, 3, 1, 7, 1});
  expect_prepared_the_same({33, 18, 20, 20, 1, 18, 1});
  expect_prepared_the_same({17, 40, 9, 1, 17, 40, 1});  // the left matrix transposed
  expect_prepared_the_same({17, 40, 9, 9, 1, 1, 9});    // the right one
  expect_prepared_the_same({20, 20, 11, 0, 1, 20, 0});  // strides of 0
  expect_prepared_the_same({16, 16, 0, 8, 1, 16, 1});   // no products
  expect_prepared_the_same({16, 16, -5, 8, 1, 16, 1});  // a size below 0
}

TEST(TritonPipeline, KeepsTheMeaningOfSizesThatWrapToNothing) {
  expect_prepared_the_same({0, 16, 8, 8, 1, 16, 1});
  expect_prepared_the_same({-3, 16, 8, 8, 1, 16, 1});
}

}  // namespace
}  // namespace tessera::triton
