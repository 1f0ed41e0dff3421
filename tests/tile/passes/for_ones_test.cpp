#include "tessera/tile/passes/for_ones.h"

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

constexpr std::string_view kColumns =
    R"(kernel columns(x: view f32[?, ?] by [?, ?], out: view f32[?], step: i64, scale: f32) {
  at = mul(pid(), step)
  t: f32[4, 8] = vload(x, at, 0)
  s = add(reduce(t) {fn = add, axis = 0}, cast(stride(x) {axis = 1}): f32)
  vstore(out, at, mul(s, scale))
})";

/// x has rows of 9 elements, or lies column by column.
std::vector<Argument> columns_arguments(std::vector<float>& x, std::vector<float>& out, bool turned,
                                        std::int64_t step) {
  return {Argument::view(DType::F32, x.data(), {6, 8}, turned ? Extents{1, 6} : Extents{9, 1}),
          Argument::view(DType::F32, out.data(), {16}), Argument::integer(DType::I64, step),
          Argument::number(DType::F32, 1.0)};
}

TEST(ForOnes, StridesAndIntegersThatAreOneAreKnown) {
  const Kernel kernel = parsed_kernel(kColumns);
  std::vector<float> x(60), out(16);
  const auto rows = for_ones(kernel, ones_of(kernel, columns_arguments(x, out, false, 1)));
  expect_valid(rows);
  EXPECT_EQ(rows.type(rows.params()[0]).strides, (Extents{kDynamic, 1}));
  EXPECT_EQ(count_of(simplify(rows), Code::Stride), 0);
  EXPECT_EQ(count_of(simplify(rows), Code::Map),
            2);  // neither pid() * 1 nor what scales: it is open
  const auto columns = for_ones(kernel, ones_of(kernel, columns_arguments(x, out, true, 2)));
  EXPECT_EQ(columns.type(columns.params()[0]).strides, (Extents{1, kDynamic}));
  EXPECT_EQ(word_positions(columns), word_positions(kernel));
}

TEST(ForOnes, KeepsWhatALaunchDoes) {
  const Kernel kernel = parsed_kernel(kColumns);
  for (const bool turned : {false, true}) {
    for (const std::int64_t step : {1, 2}) {
      const auto run = [&](bool known) {
        std::vector<float> x(60), out(16, -1.0F);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13);
        const auto on = columns_arguments(x, out, turned, step);
        const auto done =
            interpret(known ? for_ones(kernel, ones_of(kernel, on)) : kernel, on, {3, 1, 1});
        EXPECT_TRUE(done) << to_string(done.error());
        return out;
      };
      EXPECT_EQ(run(true), run(false)) << turned << ' ' << step;
    }
  }
}

TEST(ForOnes, NothingIsOneLeavesAKernelAlone) {
  expect_unchanged([](const Kernel& kernel) { return for_ones(kernel, std::vector<bool>(9)); },
                   kColumns);
}

}  // namespace
}  // namespace tessera::tile
