#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/lower/group.h"
#include "tessera/machine/machine.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/schedule_book.h"
#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Options of code generation for one graph.
struct CompileOptions {
  /// Target machine: a CPU or a GPU (machine::cuda()).
  machine::Machine machine = machine::host();
  int threads = 1;                       // for compilation; schedules assume as many at run time
  passes::Options passes = {};           // for the stage Target; `exact` applies to code too
  DType contraction_dtype = DType::F32;  // operands of matmul and conv are rounded to it
  bool tf32 = false;                     // on a GPU: f32 operands may be rounded to tf32
  std::filesystem::path cache = {};      // object code cache; empty: none
  std::int64_t memory_limit = 0;         // of the arena; 0: none
  /// Schedules of fusion groups in place of the default ones; null: none. One that is not legal for
  /// its group is left out, and the report says so.
  std::shared_ptr<const ScheduleBook> schedules = {};
  std::function<void(std::size_t done, std::size_t all)> progress = {};
  const std::atomic<bool>* stop = nullptr;
};

struct Lowering;

/// Report of a compilation: passes, steps, fallbacks, memory and times.
struct CompileReport {
  struct Step {
    std::string what;                            // the operators
    std::string strategy;                        // lowering strategy
    std::shared_ptr<const Lowering> group = {};  // of launches: the lowered group
    std::vector<std::size_t> nodes = {};  // nodes of the core graph; in a loop, that of the loop
  };
  std::vector<passes::Record> passes = {};  // of the stage Target
  std::vector<Step> steps = {};
  /// Operators without code generation, which fall back to the interpreter: number of nodes, and
  /// the reason for the first.
  struct Interpreted {
    std::int64_t count = 0;
    std::string why = {};
  };
  std::map<std::string, Interpreted> interpreted = {};
  /// Tensors that are stored in another dtype than their type: the producer casts on store, the
  /// consumers on load.
  struct Cast {
    std::string value;
    DType from = DType::F32, to = DType::F32;
  };
  std::vector<Cast> casts = {};
  std::size_t kernels = 0, kernels_from_cache = 0;
  std::int64_t arena_bytes = 0, arena_lower_bound = 0, weight_bytes = 0;
  double seconds_lowering = 0, seconds_code = 0, seconds_weights = 0;
  std::vector<std::string> notes = {};  // effects of a memory limit
  /// Groups that were lowered by a schedule of CompileOptions::schedules, and the schedules that
  /// are not legal, with the reasons.
  std::size_t scheduled_groups = 0;
  std::vector<std::string> illegal_schedules = {};
};

/// Compiled program with its report.
struct Compiled {
  runtime::Program program = {};
  CompileReport report = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels =
      {};  // of the program, as tile programs
};

/// Compiles a graph of static shapes to a program for a CPU or a GPU: fusion, layouts, kernels,
/// packed weights, memory plan.
Expected<Compiled> compile(const Graph& graph, const CompileOptions& options);

}  // namespace tessera::program
