#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/cost/model.h"
#include "tessera/passes/pipeline.h"

namespace tessera {

/// Gain of a rewrite rule, or of a whole pass, by the cost model: expected time of the model
/// compiled without it, all else alike, and with it. Other rules may do part of its work where it
/// is missing, and may need it, so gains of several do not add up.
struct RewriteGain {
  std::string pass = {}, rule = {};  // an empty rule: the pass as a whole
  double before = 0, after = 0;      // seconds of a run of the whole model
  bool measured = false;  // all kernels of both were measured; else by the roofline model
};

/// Options of rewrite_gains.
struct GainOptions {
  program::CompileOptions code = {};
  std::filesystem::path store = {};  // file of measurements; in memory if empty
};

/// Gains of the rules that passes::optimize() applied to a graph, and of its passes of the stage
/// Algebra that changed it; `log` is its log. Each is one more run of the passes and one plan of a
/// program, without code. None where sizes of the graph are unknown.
Expected<std::vector<RewriteGain>> rewrite_gains(const Graph& graph,
                                                 const std::vector<passes::Record>& log,
                                                 const GainOptions& options);

}  // namespace tessera
