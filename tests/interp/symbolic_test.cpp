#include <gtest/gtest.h>

#include "tessera/interp/interp.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

TEST(Interp, DoesNotRunWhatLeavesAttributesOpen) {
  const Graph graph = testing::parsed(
      "graph(x: f32[1, 1, 2, 2], w: f32[1, 1, 1, 1]) { return conv(x, w) {strides=$s} }");
  const std::vector<Datum> inputs = {testing::f32({1, 1, 2, 2}, {1, 2, 3, 4}),
                                     testing::f32({1, 1, 1, 1}, {1})};
  const auto results = interp::run(graph, inputs, {});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message, "attribute strides has no value");
}

}  // namespace
}  // namespace tessera
