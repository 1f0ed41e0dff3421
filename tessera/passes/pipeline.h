#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/machine/machine.h"
#include "tessera/passes/change.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// When a pass runs. Canonical and Algebra passes know nothing of the target machine, and sizes may
/// be symbols; Target passes run on static shapes, after the search.
enum class Stage : std::uint8_t { Canonical, Algebra, Target };

/// Guarantee that a pass gives for floating-point results. Exact: every bit is preserved. Reals:
/// equal over the real numbers only, so `--numerics exact` skips the pass. PerRule: each rewrite
/// rule states its own class, and `exact` skips the rules that are not.
enum class NumericsClass : std::uint8_t { Exact, Reals, PerRule };

/// Target machines that a pass is for.
enum class TargetClass : std::uint8_t { Any, Cpu, Gpu };

std::string_view to_string(Stage stage);
std::string_view to_string(NumericsClass numerics);
std::string_view to_string(TargetClass target);

/// One entry of the list of passes.
struct PassInfo {
  std::string_view name;
  Stage stage = Stage::Canonical;
  NumericsClass numerics = NumericsClass::Exact;
  TargetClass target = TargetClass::Any;
  std::string_view summary;
};

struct Options {
  bool exact = false;                         // keep every bit: skip the passes of class Reals
  std::set<std::string> disabled = {};        // names of passes
  std::set<std::string> disabled_rules = {};  // names of rewrite rules that `algebra` skips
  std::int64_t most_folded_bytes = std::int64_t{1} << 20;  // largest result of folding
  bool validate = false;  // prove or evaluate before against after, pass by pass
  std::function<void(const std::string& pass, const Graph& after)> observe = {};
};

/// Log entry of a pass: its time, size and changes.
struct Record {
  std::string pass;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  Changes changes = {};
  bool changed = false;         // the graph is another one, by its structural hash
  std::string validation = {};  // "unchanged", "proved" or "unknown: why", if asked for
};

struct Optimized {
  Graph graph;
  std::vector<Record> log = {};
};

/// All graph rewrites of a compilation, in the order in which they run. A pass may be listed more
/// than once.
std::span<const PassInfo> pass_list();

/// Names in the list, without duplicates.
std::vector<std::string> pass_names();

/// Runs the passes of the stages Canonical and Algebra. Sizes of the graph may be symbols.
///
/// Keeps:  the meaning (with `exact` bit for bit, else over the reals), inputs and outputs with
///         their names and types.
/// Leaves: softmax, layer_norm, rms_norm, gelu, … as one node each, however they were spelled.
Expected<Optimized> optimize(const Graph& graph, const Options& options);

/// Arguments of the passes of the stage Target besides the options.
struct TargetContext {
  const machine::Machine& machine;
  /// Evaluates constant subgraphs by machine code.
  std::function<Expected<Graph>(const Graph& graph)> evaluate_constants;
  /// For plans: constants are replaced by zeros, so graphs are not verified, validated or observed.
  bool assumes_constants = false;
};

/// Runs the passes of the stage Target.
///
/// Needs:  static shapes.
/// Keeps:  as `optimize` does.
/// Leaves: core operators, and composites whose bodies depend on run-time values, which the host
///         computes.
Expected<Optimized> optimize_for_target(const Graph& graph, const Options& options,
                                        const TargetContext& target);

}  // namespace tessera::passes
