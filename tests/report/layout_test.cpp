#include "tessera/report/layout.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::report {
namespace {

/// Layers of five boxes, each with edges from two of the layer before, and some that skip layers.
BoxGraph ladder(std::size_t layers) {
  BoxGraph graph;
  for (std::size_t i = 0; i < 5 * layers; ++i) {
    graph.boxes.push_back({.width = 80.0 + static_cast<double>(i * 37 % 90), .height = 30});
    if (i >= 5) {
      graph.edges.emplace_back(i - 5, i);
      graph.edges.emplace_back(i - 5 - (i * 7 % 5) % (i - 4), i);
    }
    if (i >= 20 && i % 11 == 0) graph.edges.emplace_back(i - 18, i);
  }
  return graph;
}

void expect_sound(const BoxGraph& graph, const BoxLayout& layout) {
  ASSERT_EQ(layout.centers.size(), graph.boxes.size());
  for (std::size_t i = 0; i < graph.boxes.size(); ++i) {
    const auto [x, y] = layout.centers[i];
    EXPECT_GE(x, graph.boxes[i].width / 2 - 1.5) << i;
    EXPECT_LE(x, layout.width - graph.boxes[i].width / 2 + 1.5) << i;
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart_x = std::abs(x - layout.centers[j].first) + 1 >
                           (graph.boxes[i].width + graph.boxes[j].width) / 2;
      const bool apart_y = std::abs(y - layout.centers[j].second) + 1 >
                           (graph.boxes[i].height + graph.boxes[j].height) / 2;
      EXPECT_TRUE(apart_x || apart_y) << i << " and " << j;
    }
  }
  for (const auto& [from, to] : graph.edges) {
    if (from >= to) continue;
    EXPECT_LT(layout.centers[from].second, layout.centers[to].second) << from << " and " << to;
  }
}

TEST(Layout, LayersDoNotOverlapAndEdgesPointDown) {
  for (const std::size_t layers : {1, 2, 12}) {
    const BoxGraph graph = ladder(layers);
    expect_sound(graph, layered_layout(graph));
  }
}

TEST(Layout, IsSoundWhoeverMakesIt) {
  const BoxGraph graph = ladder(8);
  expect_sound(graph, layout(graph, 600));
}

TEST(Layout, FallsBackToLayersWhenTimeIsUp) {
  const BoxGraph graph = ladder(8);
  const BoxLayout made = layout(graph, 0);
  EXPECT_EQ(made.by, "layers");
  expect_sound(graph, made);
}

TEST(Layout, TakesEmptyGraphsAndCycles) {
  EXPECT_TRUE(layout({}, 1).centers.empty());
  const BoxGraph cycle{.boxes = {{10, 10}, {10, 10}}, .edges = {{0, 1}, {1, 0}, {1, 1}}};
  EXPECT_EQ(layered_layout(cycle).centers.size(), 2u);
}

TEST(Layout, OfThousandsOfBoxesTakesMilliseconds) {
  EXPECT_EQ(layered_layout(ladder(1000)).centers.size(), 5000u);
}

}  // namespace
}  // namespace tessera::report
