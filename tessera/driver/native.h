#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/graph.h"
#include "tessera/support/datum.h"

namespace tessera {

struct NativeOptions {
  /// Of the run as a whole: threads, limits, progress; a result is freed after its last use.
  interp::Options run = {};
  std::filesystem::path cache = {};  // for object code; nowhere if empty
};

/// How a graph was run.
struct NativeReport {
  std::int64_t native = 0;    // operators that ran as machine code, those of composites counted
  std::int64_t launches = 0;  // of kernels
  std::int64_t compiled = 0;  // kernels that were not known before
  double compile_seconds = 0;
  /// Operators that the interpreter computed: how many, and why the first of them.
  struct Interpreted {
    std::int64_t count = 0;
    std::string why = {};
  };
  std::map<std::string, Interpreted> interpreted = {};
};

struct NativeRun {
  std::vector<Datum> outputs = {};
  NativeReport report = {};
};

/// Runs a graph operator by operator: what each means is lowered with its default schedule and
/// compiled for this computer (once per process for equal definitions and sizes). Operators that
/// have no form as a tile program are left to the interpreter.
Expected<NativeRun> run_native(const Graph& graph, std::span<const Datum> inputs,
                               const NativeOptions& options);

/// The report in a line or a few.
std::string to_text(const NativeReport& report);

}  // namespace tessera
