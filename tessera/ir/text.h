#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "tessera/ir/graph.h"
#include "tessera/support/lexer.h"

namespace tessera {

/// Options of the printed form of graphs.
struct TextOptions {
  bool types = true;  // print the types of node results
  /// Constants with more elements are stored in `data_file`. Without one their content is elided
  /// (`...`), and the text cannot be parsed.
  std::int64_t inline_limit = std::numeric_limits<std::int64_t>::max();
  std::string data_file = {};
};

/// Text form of a graph, which docs/ir.md describes. The printed text parses back to the same
/// graph.
///
///   graph net(x: f32[n, 2], k: i64[1]) {
///     w = const f32[2, 2] [1.0, 2.0, 3.0, 4.0]
///     a: f32[n, 2] = matmul(x, w)
///     b: f32[n, 2] = softmax(a) {axis=1}
///     return b
///   }
std::string to_text(const Graph& graph, const TextOptions& options = {});

/// Options of the parser of graphs.
struct ParseOptions {
  std::string file = {};              // for diagnostics
  std::filesystem::path folder = {};  // folder of data files; empty: none are allowed
};

/// Parses the output of `to_text` and, for tests, a shorter form: inputs without a type (f32 of
/// unknown shape), nested calls, numbers and lists as operands.
Expected<Graph> parse_graph(std::string_view text, const ParseOptions& options = {});

/// Input that is declared outside of the parsed text.
struct NamedType {
  std::string name;
  Type type;
};

/// Operators that a text calls by other names than their own.
using OpAliases = std::map<std::string, const OpDef*, std::less<>>;

/// Parses the body `{ statements return … }` of a graph over these inputs.
Expected<Graph> parse_body(Lexer& lexer, const std::vector<NamedType>& inputs,
                           const OpAliases& aliases = {});

/// Attributes that differ from their defaults as text: ` {axis=1}`, or nothing.
std::string attrs_text(const OpDef& op, const Attrs& attrs);

/// Writes a graph to `path` and its weights to the file `path` + ".weights" beside it.
Expected<Done> write_text(const Graph& graph, const std::filesystem::path& path);

/// Reads a graph and maps its weights.
Expected<Graph> read_text_graph(const std::filesystem::path& path);

}  // namespace tessera
