#include "tessera/passes/pipeline.h"

#include <fmt/format.h>

#include "tessera/ir/rebuild.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/algebra.h"
#include "tessera/passes/batch_norm.h"
#include "tessera/passes/cse.h"
#include "tessera/passes/dce.h"
#include "tessera/passes/fold.h"
#include "tessera/passes/moves.h"
#include "tessera/passes/recognize.h"
#include "tessera/passes/sequences.h"
#include "tessera/passes/validate.h"
#include "tessera/support/stopwatch.h"

namespace tessera::passes {
namespace {

/// A pass is a function from a graph to a graph; it says what it changed.
struct Pass {
  std::string_view name;
  Expected<Graph> (*run)(const Graph& graph, const Options& options, Changes& changes);
};

Expected<Graph> fold(const Graph& graph, const Options& options, Changes& changes) {
  return Rewriter(graph, {folding({.most_bytes = options.most_folded_bytes}, changes)}).run();
}

Expected<Graph> moves(const Graph& graph, const Options&, Changes& changes) {
  return Rewriter(graph, {without_sequences(changes), joining_moves(changes)}).run();
}

Expected<Graph> cse(const Graph& graph, const Options&, Changes& changes) {
  return Rewriter(graph, {sharing(changes)}).run();
}

Expected<Graph> dce(const Graph& graph, const Options&, Changes&) {
  return without_dead(graph);
}

Expected<Graph> recognize(const Graph& graph, const Options& options, Changes& changes) {
  if (options.exact) return graph;  // equal over the reals is what is proved
  return recognized(graph, changes);
}

/// Until nothing changes: a value that is used less often may let more rules match.
Expected<Graph> algebra(const Graph& graph, const Options& options, Changes& changes) {
  constexpr int kMostRounds = 4;
  Graph current = graph;
  for (int round = 0; round < kMostRounds; ++round) {
    Changes now;
    TESSERA_TRY(Rewriter::Change rules, applying_rules(options.exact, now));
    Changes folded, moved;
    std::vector<Rewriter::Change> all = {folding({.most_bytes = options.most_folded_bytes}, folded),
                                         joining_moves(moved), std::move(rules)};
    if (!options.exact) all.push_back(plain_batch_norms());
    TESSERA_TRY(current, Rewriter(current, std::move(all)).run());
    changes.insert(changes.end(), now.begin(), now.end());
    if (now.empty()) break;
  }
  return current;
}

/// In this order. A pass may come again; it has its name for all its turns.
constexpr Pass kPasses[] = {
    {"dce", dce},          // unused weights first: nothing else looks at them
    {"fold", fold},        // sizes become numbers, which what follows asks for
    {"moves", moves},      //
    {"cse", cse},          //
    {"algebra", algebra},  // constants that belong together meet
    {"recognize", recognize},
    {"algebra", algebra},  // folds the constants that rules bring together
    {"cse", cse},          // rules make the same thing in several places
    {"dce", dce},          //
};

/// A pass in the subgraphs of control flow too.
Expected<Graph> everywhere(const Pass& pass, const Graph& graph, const Options& options,
                           Changes& changes) {
  TESSERA_TRY(const Graph made, pass.run(graph, options, changes));
  std::optional<Diagnostic> error;
  Graph whole = rebuild(made, [&](Rebuilder& out, const GraphNode& node) {
    if (made.subgraphs(node).empty()) return out.copy(node);
    Graph::NewNode copy{.op = node.op, .attrs = *node.attrs, .inputs = out.inputs_of(node)};
    for (const ValueId id : made.outputs(node)) copy.outputs.push_back(made.type(id));
    for (const auto& subgraph : made.subgraphs(node)) {
      auto inner = everywhere(pass, *subgraph, options, changes);
      if (!inner && !error) error = inner.error();
      copy.subgraphs.push_back(inner ? std::make_shared<const Graph>(*std::move(inner)) : subgraph);
    }
    return out.add(std::move(copy));
  });
  if (error) return *error;
  return whole;
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

Expected<Optimized> optimize(const Graph& graph, const Options& options) {
  Optimized result{.graph = graph};
  for (const Pass& pass : kPasses) {
    Record record{.pass = std::string(pass.name), .nodes_before = result.graph.nodes().size()};
    if (options.disabled.contains(record.pass)) continue;
    const Stopwatch watch;
    TESSERA_TRY(Graph after, everywhere(pass, result.graph, options, record.changes));
    record.seconds = watch.seconds();
    record.nodes_after = after.nodes().size();
    const auto valid = verify(after);
    TESSERA_CHECK(valid, "after {}: {}", pass.name, to_string(valid.error()));
    if (options.validate) TESSERA_TRY_DONE(validated(record.pass, result.graph, after));
    result.graph = std::move(after);
    if (options.observe) options.observe(record.pass, result.graph);
    result.log.push_back(std::move(record));
  }
  return result;
}

}  // namespace tessera::passes
