#include "tessera/driver/inspect.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"

namespace tessera {
namespace {

Inventory inventory_of(std::string_view text) {
  const auto graph = parse_graph(text, {});
  EXPECT_TRUE(graph) << to_string(graph.error());
  return inspect(*graph);
}

TEST(Inspect, CountsOperatorsAndMultiplyAdds) {
  const Inventory inventory = inventory_of(
      "graph(x: f32[1, 8, 10, 10], w: f32[16, 4, 3, 3]) { y = conv(x, w) {group=2, pads=[1, 1, 1, "
      "1]}  return relu(y) }");
  EXPECT_EQ(inventory.operators.at("conv"), 1);
  EXPECT_EQ(inventory.nodes, 2);
  EXPECT_EQ(inventory.multiply_adds, Dim(16 * 10 * 10 * 4 * 9));
  EXPECT_EQ(inventory.activation_bytes,
            4 * (8 * 100 + 16 * 4 * 9 + 16 * 100) + 4 * (16 * 100) - 4 * (8 * 100 + 16 * 4 * 9));
}

TEST(Inspect, CountsOverSymbolicSizes) {
  const Inventory inventory =
      inventory_of("graph(x: f32[n, 64], w: f32[64, 32]) { return matmul(x, w) }");
  EXPECT_EQ(inventory.multiply_adds, Dim::symbol("n") * Dim(64 * 32));
  EXPECT_FALSE(inventory.activation_bytes.has_value());
}

TEST(Inspect, LooksIntoComposites) {
  const Inventory inventory =
      inventory_of("graph(x: f32[1, 2, 4, 8]) { return attention(x, x, x) }");
  EXPECT_EQ(inventory.multiply_adds, Dim(2 * (2 * 4 * 4 * 8)));
}

}  // namespace
}  // namespace tessera
