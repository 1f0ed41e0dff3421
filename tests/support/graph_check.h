#pragma once

#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera::testing {

/// The graph that a text says; one that does not parse fails the test and gives an empty graph.
Graph parsed(std::string_view text);

/// The graph is valid.
void expect_valid(const Graph& graph);

/// The graph is valid and computes what the text says, node by node; names do not count.
void expect_graph(const Graph& graph, std::string_view text);

/// The graph that the text says prints as this very text.
void expect_prints(std::string_view text);

/// The text does not parse; the diagnostic prints as `message`.
void expect_parse_error(std::string_view text, std::string_view message);

/// Printing, parsing and printing again changes nothing.
void expect_round_trip(const Graph& graph);

}  // namespace tessera::testing
