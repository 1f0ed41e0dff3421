#include "tests/support/graph_check.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tessera/ir/verify.h"

namespace tessera::testing {

Graph parsed(std::string_view text) {
  auto graph = parse_graph(text);
  if (graph) return *std::move(graph);
  ADD_FAILURE() << to_string(graph.error()) << "\nin\n" << text;
  return {};
}

void expect_valid(const Graph& graph) {
  const auto valid = verify(graph);
  EXPECT_TRUE(valid) << to_string(valid.error()) << "\nin\n" << to_text(graph);
}

void expect_graph(const Graph& graph, std::string_view text) {
  expect_valid(graph);
  const Graph expected = parsed(text);
  if (graph.hash() != expected.hash() || graph.nodes().size() != expected.nodes().size())
    ADD_FAILURE() << "expected\n" << to_text(expected) << "but it is\n" << to_text(graph);
}

void expect_prints(std::string_view text) {
  EXPECT_EQ(to_text(parsed(text)), text);
}

void expect_parse_error(std::string_view text, std::string_view message) {
  const auto graph = parse_graph(text);
  ASSERT_FALSE(graph) << text;
  EXPECT_EQ(to_string(graph.error()), message);
}

void expect_round_trip(const Graph& graph) {
  const std::string text = to_text(graph);
  const auto read = parse_graph(text);
  ASSERT_TRUE(read) << to_string(read.error()) << "\nin\n" << text;
  EXPECT_EQ(to_text(*read), text);
  EXPECT_EQ(read->hash(), graph.hash());
  expect_valid(*read);
}

}  // namespace tessera::testing
