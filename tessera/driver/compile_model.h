#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/driver/inspect.h"
#include "tessera/driver/model.h"
#include "tessera/driver/search_model.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/compile.h"
#include "tessera/support/datum.h"

namespace tessera {

/// What products are computed from: f32, or bf16 with sums of f32 where the machine has matrix
/// units for it, on a GPU also f16. Auto is bf16, on a GPU rather f16, where outputs stay within a
/// bound of what f32 gives.
enum class Precision : std::uint8_t { F32, F16, Bf16, Auto };

struct CompileModelOptions {
  program::CompileOptions code = {};
  Precision precision = Precision::F32;
  double max_error = 1e-2;  // of Auto, relative to the root mean square of an output
  std::optional<SearchOptions> search = {};
};

struct CompiledModel {
  runtime::Program program = {};
  program::CompileReport report = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels = {};  // as tile programs
  std::vector<passes::Record> passes = {};
  std::optional<SearchReport> search = {};
  Inventory before = {}, after = {};  // of the passes
  DType products = DType::F32;
  std::optional<double> error = {};  // Auto: how far bf16 is from f32
  double seconds = 0;
};

/// The graph on inputs of these shapes; symbols are replaced by their sizes everywhere. A shape of
/// nothing leaves an input as it is declared.
using InputShapes = std::vector<std::optional<std::vector<std::int64_t>>>;
Expected<Graph> specialized(const Graph& graph, const InputShapes& shapes);
InputShapes shapes_of(std::span<const Datum> inputs);

/// The whole way from a model to a program for inputs of these shapes: passes, groups, machine
/// code, memory.
Expected<CompiledModel> compile_model(const Model& model, const InputShapes& shapes,
                                      const CompileModelOptions& options);

}  // namespace tessera
