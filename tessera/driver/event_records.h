#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/prove.h"
#include "tessera/driver/step_profile.h"
#include "tessera/driver/tune_kernel.h"
#include "tessera/driver/tune_model.h"
#include "tessera/report/event_log.h"

namespace tessera {

/// Model and its original graph.
void add_model(report::EventLog& log, const Model& model, const std::string& file);

/// Passes with their changes, and the rules that they applied, with proofs and gains.
Expected<Done> add_pass_records(report::EventLog& log, const std::vector<passes::Record>& passes,
                                const std::vector<RewriteGain>& gains);

/// Graph search: its result, and the rules that it applied, with proofs.
Expected<Done> add_search(report::EventLog& log, const SearchReport& search);

/// Rewritten graph, "optimized" or "compiled", with the original nodes that each of its nodes came
/// from.
struct RewrittenGraph {
  std::string which = {};
  const Graph& original;
  const Graph& rewritten;
};
void add_rewritten_graph(report::EventLog& log, const RewrittenGraph& of);

/// Compilation of a model: graphs, passes, search, memory and times.
/// Needs: CompileModelOptions::keep_graph.
struct CompilationRecords {
  const Model& model;
  std::string file = {};
  const CompiledModel& compiled;
  const CompileModelOptions& options;
  std::string architecture = {};                 // of the program
  double peak_gflops = 0, bandwidth_gbytes = 0;  // of the target, if they were measured
};
Expected<Done> add_compilation(report::EventLog& log, const CompilationRecords& of);

/// Steps, values, memory and kernels of a program. Add it after the compilation and the profile:
/// kernels that take longest are shown in full.
struct ProgramRecords {
  const runtime::Program& program;
  const CompiledModel* compiled = nullptr;       // null for a saved program, as
  const CompileModelOptions* options = nullptr;  // these are
};
void add_program(report::EventLog& log, const ProgramRecords& of);

/// Times of steps and of whole runs, and the spans of the last run.
void add_profile(report::EventLog& log, const StepProfile& profile);

/// A program with the model that it was compiled from, and its profile. Measures the peak rates of
/// the CPU cores in use, for the roofline.
struct ModelRecords {
  const Model& model;  // of a saved program: its signature
  std::string file = {};
  const runtime::Program& program;
  int threads = 1;
  const CompiledModel* compiled = nullptr;       // null for a saved program, as
  const CompileModelOptions* options = nullptr;  // these are
  const StepProfile* profile = nullptr;          // null if nothing was measured
};
Expected<Done> add_model_records(report::EventLog& log, const ModelRecords& of);

/// Tuning: tasks and the candidates that were measured. Tasks have the ONNX names of the compiled
/// model's steps, if it is given.
void add_tuning(report::EventLog& log, const TunedModel& tuned, const CompiledModel* compiled);
/// Adds the tuning of a kernel: the candidates and the choice.
void add_tuning(report::EventLog& log, const TunedKernel& tuned);

/// Equivalence check of two model files.
struct ProofRecords {
  std::string source = {}, target = {};
  const prove::SweepResult& result;
  double seconds = 0;
};
void add_proof(report::EventLog& log, const ProofRecords& of);

}  // namespace tessera
