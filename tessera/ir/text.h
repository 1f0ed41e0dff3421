#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "tessera/ir/graph.h"
#include "tessera/support/lexer.h"

namespace tessera {

struct TextOptions {
  bool types = true;  // of the results of nodes
  /// Constants with more elements lie in `data_file`. Where that is not named their content is left
  /// out (`...`), and the text is for reading only.
  std::int64_t inline_limit = std::numeric_limits<std::int64_t>::max();
  std::string data_file = {};
};

/// A graph as text; docs/ir.md describes the form. What is printed parses back to the same graph
/// and prints the same.
///
///   graph net(x: f32[n, 2], k: i64[1]) {
///     w = const f32[2, 2] [1.0, 2.0, 3.0, 4.0]
///     a: f32[n, 2] = matmul(x, w)
///     b: f32[n, 2] = softmax(a) {axis=1}
///     return b
///   }
std::string to_text(const Graph& graph, const TextOptions& options = {});

struct ParseOptions {
  std::string file = {};              // for diagnostics
  std::filesystem::path folder = {};  // where data files lie; empty: there are none
};

/// Reads what `to_text` writes and, for tests, what is shorter: inputs without a type (f32 of
/// unknown shape), calls within calls, numbers and lists as operands.
Expected<Graph> parse_graph(std::string_view text, const ParseOptions& options = {});

/// An input of a graph whose inputs are declared elsewhere.
struct NamedType {
  std::string name;
  Type type;
};

/// Reads `{ statements return … }`, what a graph is over these inputs.
Expected<Graph> parse_body(Lexer& lexer, const std::vector<NamedType>& inputs);

/// The attributes of a node that are not the default: ` {axis=1}`, or nothing.
std::string attrs_text(const OpDef& op, const Attrs& attrs);

/// Writes a graph to `path` and its weights to the file `path` + ".weights" beside it.
Expected<Done> write_text(const Graph& graph, const std::filesystem::path& path);

/// Reads a graph and maps its weights.
Expected<Graph> read_text_graph(const std::filesystem::path& path);

}  // namespace tessera
