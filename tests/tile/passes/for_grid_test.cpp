#include "tessera/tile/passes/for_grid.h"

#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

constexpr std::string_view kRows = R"(kernel rows(x: view f32[6, 96], out: view f32[6, 96]) {
  row: i64 = pid() {axis = 1}
  width: i64 = 32
  column: i64 = mul(pid() {axis = 0}, width)
  n: i64 = npid() {axis = 2}
  t: f32[1, 32] = vload(x, row, column)
  vstore(out, row, add(column, sub(n, n)), t)
})";

TEST(ForGrid, KnowsThatEvenPartsAreInside) {
  const auto kernel = parse_kernel(kRows);
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const auto accesses_inside = [&](const Grid& grid) {
    int count = 0;
    const Kernel marked = split(simplify(for_grid(*kernel, grid)), Loops::Whole);
    for_each_op(marked, marked.body, [&](OpId id) {
      const Operation& op = marked.ops[id];
      if (op.code == Code::Vload || op.code == Code::Vstore)
        count += op.ints == std::vector<std::int64_t>{1, 1} ? 1 : 0;
    });
    return count;
  };
  EXPECT_EQ(accesses_inside({3, 6, 1}), 2);
  EXPECT_EQ(accesses_inside({1, 6, 5}), 2);
  EXPECT_EQ(accesses_inside({4, 6, 1}), 0);
  EXPECT_EQ(accesses_inside({3, 7, 1}), 0);
}

TEST(ForGrid, KeepsWhatALaunchDoes) {
  const auto kernel = parse_kernel(kRows);
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  for (const Grid& grid : {Grid{3, 6, 1}, Grid{1, 1, 1}, Grid{2, 3, 2}}) {
    const auto run = [&](const Kernel& k, const Grid& launched) {
      std::vector<float> x(6 * 96), out(6 * 96, -1.0f);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      const std::vector<Argument> arguments = {
          Argument::view(DType::F32, reinterpret_cast<std::byte*>(x.data()), {6, 96}),
          Argument::view(DType::F32, reinterpret_cast<std::byte*>(out.data()), {6, 96})};
      const auto done = interpret(k, arguments, launched);
      EXPECT_TRUE(done) << to_string(done.error());
      return out;
    };
    EXPECT_EQ(run(*kernel, grid), run(for_grid(*kernel, grid), grid));
    EXPECT_EQ(run(*kernel, grid),
              run(along_one_axis(*kernel, grid), {grid[0] * grid[1] * grid[2], 1, 1}));
  }
}

}  // namespace
}  // namespace tessera::tile
