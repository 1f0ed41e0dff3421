#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/expr/shape.h"
#include "tessera/ir/graph.h"

namespace tessera::prove {

/// The names in a graph that stand for numbers.
struct GraphSymbols {
  std::set<std::string> sizes;       // in the types of inputs
  std::set<std::string> axes;        // those of them that are the size of an axis: at least 1
  std::set<std::string> attributes;  // integers, at least 1
  std::set<std::string> entries;     // of attributes that are lists: `s0`, `s1`

  void add(const GraphSymbols& more);
  bool contains(const std::string& name) const;
};
GraphSymbols symbols_of(const Graph& graph);

/// What a whole is a multiple of.
struct Multiple {
  Dim whole, divisor;
  Dim quotient() const { return floor_div(whole, divisor); }
};

/// What has to hold between the sizes (and the symbols of attributes) that graphs mention, for all
/// their operators to fit their inputs.
///
///     graph(x: f32[n, c, h, w], k: f32[f, d, 3, 3]) { return conv(x, k) {group=$g} }
///
///     solved    c: d*g,  f: f.part*g        open    0 <= h - 2,  0 <= w - 2
struct SizeRelations {
  /// Symbols in terms of free ones. An attribute's is only ever a number or another symbol, an
  /// entry's is never solved for.
  Sizes solved = {};
  /// What was not solved: equations, and bounds that do not go without saying (an axis of an input
  /// is at least 1, that of a result and a symbol at least 0).
  Guard open = {};
  /// Of the graphs so far; those of a later graph are solved for first.
  GraphSymbols symbols = {};
  /// Symbols made up where a size has to be a multiple of another: the quotient, in terms of the
  /// symbols of the graphs.
  std::map<std::string, Multiple> parts = {};
  /// Sizes of operands that meet by broadcasting and were taken to be equal: one may also be 1.
  Guard broadcasts = {};
};

/// Two sizes that meet by broadcasting are taken to be equal, or are left as they are: one of them
/// may be 1.
enum class Broadcasting : std::uint8_t { Equal, Open };

/// Adds what a graph asks for to what is given. That its sizes contradict it is a diagnostic.
Expected<SizeRelations> relate_sizes(const Graph& graph, const SizeRelations& given = {},
                                     Broadcasting broadcasting = Broadcasting::Equal);

/// What an operator asks of sizes that its definition takes for one: they are equal, unless the
/// operator would stretch one that is 1.
Guard asked_of_sizes(const OpDef& op, const Attrs& attrs, const Signature& signature);

/// Adds conditions.
Expected<SizeRelations> relate_sizes(const Guard& conditions, const SizeRelations& given);

/// Adds that the outputs of two graphs, which are given already, have the same shapes.
Expected<SizeRelations> relate_outputs(const Graph& source, const Graph& target,
                                       const SizeRelations& given);

/// What the second says beyond the first, in terms of the symbols of the graphs of the first.
Guard beyond(const SizeRelations& given, const SizeRelations& all);

/// The graph with symbols of sizes and attributes replaced, types inferred anew. An attribute whose
/// replacement is neither a number nor a symbol stays.
Expected<Graph> with_sizes(const Graph& graph, const Sizes& sizes);

}  // namespace tessera::prove
