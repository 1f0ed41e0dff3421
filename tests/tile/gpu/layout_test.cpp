#include "tessera/tile/gpu/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/tile/gpu/schedule.h"
#include "tests/tile/random_kernel.h"

namespace tessera::tile::gpu {
namespace {

/// All bits of all indices, each once: nothing is lost, nothing is held twice but by threads that
/// stand for no bit.
void expect_covers(const Layout& layout, const Extents& shape) {
  std::multiset<IndexBit> held;
  for (const auto* bits : {&layout.register_bits(), &layout.thread_bits()})
    for (const IndexBit& bit : *bits)
      if (bit.axis >= 0) held.insert(bit);
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    EXPECT_GE(layout.extent(axis), shape[static_cast<std::size_t>(axis)]);
    for (int bit = 0; std::int64_t{1} << bit < layout.extent(axis); ++bit)
      EXPECT_EQ(held.erase({axis, bit}), 1u) << "bit " << bit << " of axis " << axis;
  }
  EXPECT_TRUE(held.empty());
}

TEST(Layout, HoldsEachElementOnce) {
  for (const std::int64_t rows : {1, 3, 16, 64, 200})
    for (const std::int64_t columns : {1, 8, 24, 256})
      for (const int threads : {32, 128, 512}) {
        const Extents shape = {rows, columns};
        expect_covers(Layout::blocked({shape, {1, 0}, threads, 4}), shape);
        expect_covers(Layout::blocked({shape, {0, 1}, threads, 1}), shape);
        expect_covers(Layout::in_order(shape, 1, threads), shape);
        expect_covers(Layout::patches(shape, threads), shape);
        expect_covers(Layout::matrix({shape, threads, false}), shape);
        expect_covers(Layout::matrix({shape, threads, true}), shape);
        if (threads >= 128) expect_covers(Layout::warpgroups(shape, threads), shape);
      }
}

TEST(Layout, AxesComeGoAndChangePlaces) {
  const Layout layout = Layout::blocked({{16, 64}, {1, 0}, 32, 8});
  EXPECT_EQ(layout.run(1), 8);
  EXPECT_EQ(layout.run(0), 1);
  EXPECT_EQ(layout.permuted({1, 0}).run(0), 8);
  EXPECT_EQ(layout.permuted({1, 0}).permuted({1, 0}), layout);
  EXPECT_EQ(layout.without(0).extent(0), 64);
  EXPECT_EQ(layout.collapsed(0).extent(0), 1);
  EXPECT_EQ(layout.inserted(0).collapsed(0).without(0), layout);
  expect_covers(layout.inserted(1), {16, 1, 64});
}

TEST(Layout, RegistersThatOnlyChangeNamesAreToldApart) {
  const Layout a(1, {{0, 0}, {0, 1}}, {{0, 2}}), b(1, {{0, 1}, {0, 0}}, {{0, 2}});
  const Layout c(1, {{0, 0}, {0, 2}}, {{0, 1}});
  EXPECT_TRUE(renames(a, b));
  EXPECT_FALSE(renames(a, c));
}

TEST(Plan, GivesEveryTileOfAnyKernelAWholeLayout) {
  tessera::testing::for_each_random_kernel(1, 200, {}, [](const auto& random) {
    const auto made = schedule(random.kernel, {.persistent = true, .maps = true});
    ASSERT_TRUE(made) << to_string(made.error());
    const ScheduledKernel& scheduled = **made;
    for (ValueId id = 0; id < scheduled.kernel.values.size(); ++id) {
      const std::optional<Layout>& home = scheduled.plan->home(id);
      if (!home) continue;
      expect_covers(*home, scheduled.kernel.type(id).shape);
      EXPECT_EQ(1 << home->thread_bits().size(), scheduled.plan->threads());
    }
  });
}

}  // namespace
}  // namespace tessera::tile::gpu
