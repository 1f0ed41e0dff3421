#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/driver/inspect.h"
#include "tessera/driver/model.h"
#include "tessera/driver/rewrite_gains.h"
#include "tessera/driver/search_model.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/compile.h"
#include "tessera/support/datum.h"

namespace tessera {

/// Element type of matmul and convolution operands: f32, or bf16 with f32 accumulation where the
/// machine has matrix units for it, on a GPU also f16. Auto is the fastest type whose outputs stay
/// within an error bound of f32: bf16, on a GPU first f16.
enum class Precision : std::uint8_t { F32, F16, Bf16, Auto };

/// Options of compile_model.
struct CompileModelOptions {
  program::CompileOptions code = {};
  Precision precision = Precision::F32;
  double max_error = 1e-2;  // error bound of Auto, relative to the root mean square of an output
  std::optional<SearchOptions> search = {};
  bool keep_graph = false;           // keep CompiledModel::graph and gains, for reports
  std::filesystem::path store = {};  // file of measurements for the gains; in memory if empty
  /// A schedule of code.schedules that is not legal is a diagnostic, `schedule-illegal`.
  bool requires_schedules = false;
  /// Folder of compiled programs, for NativeModel; empty: none.
  std::filesystem::path program_cache = {};
};

/// Compiled program with everything a report needs.
struct CompiledModel {
  runtime::Program program = {};
  program::CompileReport report = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels = {};  // tile programs of the kernels
  std::vector<passes::Record> passes = {};
  std::vector<RewriteGain> gains = {};  // of rules and passes; empty unless keep_graph
  std::optional<SearchReport> search = {};
  Inventory before = {}, after = {};     // the graph before and after the passes
  DType contraction_dtype = DType::F32;  // element type of matmul operands
  std::optional<double> error = {};      // Auto: measured error of the chosen type against f32
  double seconds = 0;
  /// Graph that was compiled, after all passes, whose nodes CompileReport::Step names. Null unless
  /// CompileModelOptions::keep_graph.
  std::shared_ptr<const Graph> graph = {};
};

/// Shapes of the inputs, and the graph specialized to them: symbols are replaced by sizes
/// everywhere. An input without a shape stays as declared.
using InputShapes = std::vector<std::optional<std::vector<std::int64_t>>>;
Expected<Graph> specialized(const Graph& graph, const InputShapes& shapes);
InputShapes shapes_of(std::span<const Datum> inputs);

/// Candidate element types of matmul operands, the fastest first.
std::vector<DType> contraction_dtypes(const CompileModelOptions& options);

/// Schedules that the groups of a program were lowered by.
program::ScheduleBook schedules_of(const program::CompileReport& report);

/// Compiles a model for inputs of these shapes: passes, fusion groups, machine code, memory plan.
Expected<CompiledModel> compile_model(const Model& model, const InputShapes& shapes,
                                      const CompileModelOptions& options);

}  // namespace tessera
