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
#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::program {

struct CompileOptions {
  /// Of a GPU (machine::cuda()): a program for it.
  machine::Machine machine = machine::host();
  int threads = 1;  // to compile with, and that the schedules count on when the program runs
  passes::Options passes = {};  // those of the stage Target run; `exact` holds for code too
  DType products = DType::F32;  // factors of products are rounded to it, sums stay in f32
  bool tf32 = false;            // on a GPU: factors of f32 may be rounded to tf32, for tensor cores
  std::filesystem::path cache = {};  // for object code; nowhere if empty
  std::int64_t memory_limit = 0;     // of the arena; 0: none
  std::function<void(std::size_t done, std::size_t all)> progress = {};
  const std::atomic<bool>* stop = nullptr;
};

struct Lowering;

struct CompileReport {
  struct Step {
    std::string what;                            // the operators
    std::string strategy;                        // how they are computed
    std::shared_ptr<const Lowering> group = {};  // of launches: the group that this is a part of
  };
  std::vector<passes::Record> passes = {};  // of the stage Target
  std::vector<Step> steps = {};
  /// Operators without machine code: how many, and why the first of them.
  struct Interpreted {
    std::int64_t count = 0;
    std::string why = {};
  };
  std::map<std::string, Interpreted> interpreted = {};
  /// Tensors that are stored in another type than the graph gives them: the kernel that computes
  /// one casts it, and those that read it cast it back.
  struct Cast {
    std::string value;
    DType from = DType::F32, to = DType::F32;
  };
  std::vector<Cast> casts = {};
  std::size_t kernels = 0, kernels_from_cache = 0;
  std::int64_t arena_bytes = 0, arena_lower_bound = 0, weight_bytes = 0;
  double seconds_lowering = 0, seconds_code = 0, seconds_weights = 0;
  std::vector<std::string> notes = {};  // what a memory limit cost
};

struct Compiled {
  runtime::Program program = {};
  CompileReport report = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels =
      {};  // of the program, as tile programs
};

/// A graph whose sizes are all known as a program for a CPU or a GPU: groups, layouts, kernels,
/// memory.
Expected<Compiled> compile(const Graph& graph, const CompileOptions& options);

}  // namespace tessera::program
