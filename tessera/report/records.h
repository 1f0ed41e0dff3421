#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Records of an event log: what a command did to a model, as data. docs/report.md describes them.
///
/// A record lists its fields once, in `fields`, which the writer and the reader of the log use.
namespace tessera::report {

/// Version of the schema. A reader accepts logs of its own version; it ignores events and fields
/// that it does not know, so that additions need no new version.
inline constexpr std::int64_t kSchemaVersion = 1;

/// First record of a log.
struct Header {
  static constexpr std::string_view kEvent = "log";
  std::int64_t schema = 0;
  std::string version = {};  // of Tessera
  std::string command = {};  // "compile", "profile", …
  static void fields(auto& self, auto&& field) {
    field("schema", self.schema);
    field("version", self.version);
    field("command", self.command);
  }
};

/// Name and type of a tensor.
struct TensorType {
  std::string name = {}, type = {};
  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("type", self.type);
  }
};

/// Model as it was read.
struct Model {
  static constexpr std::string_view kEvent = "model";
  std::string name = {}, file = {};
  std::int64_t nodes = 0, parameters = 0, parameter_bytes = 0;
  double multiply_adds = 0;  // 0: not known
  std::vector<TensorType> inputs = {}, outputs = {};
  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("file", self.file);
    field("nodes", self.nodes);
    field("parameters", self.parameters);
    field("parameter_bytes", self.parameter_bytes);
    field("multiply_adds", self.multiply_adds);
    field("inputs", self.inputs);
    field("outputs", self.outputs);
  }
};

/// Target machine and options of the compilation.
struct Target {
  static constexpr std::string_view kEvent = "target";
  std::string architecture = {}, cpu = {};
  std::vector<std::string> features = {};
  std::int64_t threads = 0;
  std::string precision = {}, numerics = {};
  double error = -1;  // --precision auto: measured against f32, relative to the RMS; -1: none
  double peak_gflops = 0, bandwidth_gbytes = 0;  // of all threads, measured; 0: not known
  static void fields(auto& self, auto&& field) {
    field("architecture", self.architecture);
    field("cpu", self.cpu);
    field("features", self.features);
    field("threads", self.threads);
    field("precision", self.precision);
    field("numerics", self.numerics);
    field("error", self.error);
    field("peak_gflops", self.peak_gflops);
    field("bandwidth_gbytes", self.bandwidth_gbytes);
  }
};

/// Definition of an operator in index notation; nodes refer to it by its number.
struct Definition {
  static constexpr std::string_view kEvent = "definition";
  std::int64_t id = 0;
  std::string op = {}, text = {};
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("op", self.op);
    field("text", self.text);
  }
};

/// Operand of a node: the node that computes it, or -1 for inputs and constants.
struct Operand {
  std::int64_t node = -1;
  std::string name = {}, type = {};
  bool constant = false;
  static void fields(auto& self, auto&& field) {
    field("node", self.node);
    field("name", self.name);
    field("type", self.type);
    field("constant", self.constant);
  }
};

/// Node of a graph: of the model ("original"), or of what steps compute ("compiled").
struct Node {
  static constexpr std::string_view kEvent = "node";
  std::string graph = {};
  std::int64_t id = 0;
  std::string name = {};  // ONNX node name, or the name of its first result
  std::string op = {}, attributes = {};
  std::int64_t definition = -1;
  std::vector<Operand> operands = {};
  std::vector<TensorType> results = {};
  std::vector<std::int64_t> origins = {};  // of "compiled": nodes of "original" it came from
  static void fields(auto& self, auto&& field) {
    field("graph", self.graph);
    field("id", self.id);
    field("name", self.name);
    field("op", self.op);
    field("attributes", self.attributes);
    field("definition", self.definition);
    field("operands", self.operands);
    field("results", self.results);
    field("origins", self.origins);
  }
};

/// Change by a pass: what was done, how often, and to which values.
struct PassChange {
  std::string what = {};
  std::int64_t times = 0;
  std::vector<std::string> where = {};
  static void fields(auto& self, auto&& field) {
    field("what", self.what);
    field("times", self.times);
    field("where", self.where);
  }
};

/// Run of a pass.
struct Pass {
  static constexpr std::string_view kEvent = "pass";
  std::string name = {}, summary = {}, stage = {}, numerics = {};
  double seconds = 0;
  std::int64_t nodes_before = 0, nodes_after = 0;
  bool changed = false;  // the graph after it is another one
  std::string validation = {};
  std::vector<PassChange> changes = {};
  double before_ms = 0, after_ms = 0;  // expected, of the whole model without and with the pass
  double expected_ms = 0;              // the difference
  bool measured = false;               // by measurements of all kernels; else by the model alone
  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("summary", self.summary);
    field("stage", self.stage);
    field("numerics", self.numerics);
    field("seconds", self.seconds);
    field("nodes_before", self.nodes_before);
    field("nodes_after", self.nodes_after);
    field("changed", self.changed);
    field("validation", self.validation);
    field("changes", self.changes);
    field("before_ms", self.before_ms);
    field("after_ms", self.after_ms);
    field("expected_ms", self.expected_ms);
    field("measured", self.measured);
  }
};

/// Small graph as a drawing: labels of the boxes, and edges between their numbers.
struct Drawing {
  std::vector<std::string> labels = {};
  std::vector<std::vector<std::int64_t>> edges = {};  // [from, to]
  static void fields(auto& self, auto&& field) {
    field("labels", self.labels);
    field("edges", self.edges);
  }
};

/// Output of a mutant at small sizes, as a grid over two of its axes, with the corrected boxes.
struct RegionGrid {
  std::int64_t output = 0, row_axis = 0, column_axis = 0, rows = 0, columns = 0;
  std::vector<std::vector<std::int64_t>> boxes = {};  // [row, end of rows, column, end of columns]
  static void fields(auto& self, auto&& field) {
    field("output", self.output);
    field("row_axis", self.row_axis);
    field("column_axis", self.column_axis);
    field("rows", self.rows);
    field("columns", self.columns);
    field("boxes", self.boxes);
  }
};

/// Rewrite rule that was applied, with its proof.
struct Rewrite {
  static constexpr std::string_view kEvent = "rewrite";
  std::string rule = {}, about = {}, equation = {}, guard = {}, numerics = {}, found = {};
  std::string by = {};  // pass, or "search"
  std::int64_t times = 0;
  std::vector<std::string> where = {};  // names of values, as far as they have names
  Drawing source = {}, target = {};
  std::string verdict = {};  // of the proof, done again for this log
  std::map<std::string, std::int64_t> proof_steps = {};
  std::vector<std::string> assumptions = {};
  // Search: of one place, with all rules that were applied. Pass: of the whole model without and
  // with the rule.
  double before_ms = 0, after_ms = 0;
  bool measured = false;         // by measurements of all kernels; else by the model alone
  double expected_ms = 0;        // change of time by the cost model, in all places
  bool rejected = false;         // search: the whole graph was not faster; not applied
  std::string certificate = {};  // proof, a step a line; a long one is cut
  Drawing mutant = {};           // of a mutant: its target before the correction,
  std::string corrected = {};    // where that is wrong, in words
  std::vector<RegionGrid> regions = {};
  static void fields(auto& self, auto&& field) {
    field("rule", self.rule);
    field("about", self.about);
    field("equation", self.equation);
    field("guard", self.guard);
    field("numerics", self.numerics);
    field("found", self.found);
    field("by", self.by);
    field("times", self.times);
    field("where", self.where);
    field("source", self.source);
    field("target", self.target);
    field("verdict", self.verdict);
    field("proof_steps", self.proof_steps);
    field("assumptions", self.assumptions);
    field("before_ms", self.before_ms);
    field("after_ms", self.after_ms);
    field("measured", self.measured);
    field("expected_ms", self.expected_ms);
    field("rejected", self.rejected);
    field("certificate", self.certificate);
    field("mutant", self.mutant);
    field("corrected", self.corrected);
    field("regions", self.regions);
  }
};

/// Graph search.
struct Search {
  static constexpr std::string_view kEvent = "search";
  double seconds = 0, before_ms = 0, after_ms = 0;
  std::int64_t steps = 0, regions = 0, distinct_regions = 0;
  std::string stopped_by = {};
  bool kept = false;
  std::optional<double> ratio = {}, ratio_low = {}, ratio_high = {};  // new over old, measured
  static void fields(auto& self, auto&& field) {
    field("seconds", self.seconds);
    field("before_ms", self.before_ms);
    field("after_ms", self.after_ms);
    field("steps", self.steps);
    field("regions", self.regions);
    field("distinct_regions", self.distinct_regions);
    field("stopped_by", self.stopped_by);
    field("kept", self.kept);
    field("ratio", self.ratio);
    field("ratio_low", self.ratio_low);
    field("ratio_high", self.ratio_high);
  }
};

/// Step of the program.
struct Step {
  static constexpr std::string_view kEvent = "step";
  std::int64_t id = 0;
  std::string kind = {};                 // "launch", "copy", "host", "loop", …
  std::string what = {}, strategy = {};  // operators; how they are computed
  std::vector<std::string> names = {};   // ONNX nodes
  std::vector<std::int64_t> nodes = {};  // of the graph "compiled"
  std::int64_t kernel = -1;
  std::vector<std::int64_t> grid = {};
  double flops = 0, bytes = 0;  // of one execution; 0: not known
  std::int64_t loop = -1;       // step of the innermost loop around it
  std::int64_t iterations = 0;  // of "loop"
  std::string precision = {};   // narrowest float type that the kernel reads
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("kind", self.kind);
    field("what", self.what);
    field("strategy", self.strategy);
    field("names", self.names);
    field("nodes", self.nodes);
    field("kernel", self.kernel);
    field("grid", self.grid);
    field("flops", self.flops);
    field("bytes", self.bytes);
    field("loop", self.loop);
    field("iterations", self.iterations);
    field("precision", self.precision);
  }
};

/// Measured time of a step in a run, over all its executions.
struct StepTime {
  static constexpr std::string_view kEvent = "step_time";
  std::int64_t step = 0, calls = 0;
  double ms = 0;
  std::optional<double> expected_ms = {};  // of the group of steps that ends here
  std::string expected_from = {};          // "store" (measured before) or "roofline"
  static void fields(auto& self, auto&& field) {
    field("step", self.step);
    field("calls", self.calls);
    field("ms", self.ms);
    field("expected_ms", self.expected_ms);
    field("expected_from", self.expected_from);
  }
};

/// Measured runs: `ms` is the sum of all step times and `between_ms`.
struct Run {
  static constexpr std::string_view kEvent = "run";
  std::int64_t runs = 0;
  double ms = 0, between_ms = 0, least_ms = 0, median_ms = 0;
  static void fields(auto& self, auto&& field) {
    field("runs", self.runs);
    field("ms", self.ms);
    field("between_ms", self.between_ms);
    field("least_ms", self.least_ms);
    field("median_ms", self.median_ms);
  }
};

/// One execution of a step in the last run, for traces.
struct Span {
  static constexpr std::string_view kEvent = "span";
  std::int64_t step = 0;
  double start_us = 0, us = 0;
  static void fields(auto& self, auto&& field) {
    field("step", self.step);
    field("start_us", self.start_us);
    field("us", self.us);
  }
};

/// Schedule that was not chosen.
struct ScheduleAlternative {
  std::string schedule = {};
  double cost = 0;  // predicted time over that of the chosen one; 0: not predicted
  static void fields(auto& self, auto&& field) {
    field("schedule", self.schedule);
    field("cost", self.cost);
  }
};

/// Kernel of the program, in its forms.
struct Kernel {
  static constexpr std::string_view kEvent = "kernel";
  std::int64_t id = 0;
  std::string name = {};
  std::string tile = {}, schedule = {}, assembly = {};  // empty: left out
  std::int64_t code_bytes = 0, scratch_bytes = 0;
  std::string left_out = {};                           // why forms are missing
  std::string chosen = {}, chosen_by = {};             // schedule of its group, and what chose it
  std::int64_t candidates = 0;                         // legal schedules of the group
  std::vector<ScheduleAlternative> alternatives = {};  // the best of them that were not chosen
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("name", self.name);
    field("tile", self.tile);
    field("schedule", self.schedule);
    field("assembly", self.assembly);
    field("code_bytes", self.code_bytes);
    field("scratch_bytes", self.scratch_bytes);
    field("left_out", self.left_out);
    field("chosen", self.chosen);
    field("chosen_by", self.chosen_by);
    field("candidates", self.candidates);
    field("alternatives", self.alternatives);
  }
};

/// Value of the program and its memory, from step `first` to step `last`.
struct Value {
  static constexpr std::string_view kEvent = "value";
  std::int64_t id = 0;
  std::string name = {}, home = {}, type = {};
  std::int64_t offset = 0, bytes = 0, first = 0, last = 0;
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("name", self.name);
    field("home", self.home);
    field("type", self.type);
    field("offset", self.offset);
    field("bytes", self.bytes);
    field("first", self.first);
    field("last", self.last);
  }
};

/// Memory of the program.
struct Memory {
  static constexpr std::string_view kEvent = "memory";
  std::int64_t arena_bytes = 0, lower_bound = 0, weight_bytes = 0, code_bytes = 0, swap_bytes = 0;
  std::vector<std::string> notes = {};  // what a memory limit cost
  static void fields(auto& self, auto&& field) {
    field("arena_bytes", self.arena_bytes);
    field("lower_bound", self.lower_bound);
    field("weight_bytes", self.weight_bytes);
    field("code_bytes", self.code_bytes);
    field("swap_bytes", self.swap_bytes);
    field("notes", self.notes);
  }
};

/// Compilation as a whole.
struct Compilation {
  static constexpr std::string_view kEvent = "compilation";
  double seconds = 0, lowering_seconds = 0, code_seconds = 0, weight_seconds = 0;
  std::int64_t kernels = 0, kernels_from_cache = 0;
  std::map<std::string, std::string> interpreted = {};  // operators without code, and why
  static void fields(auto& self, auto&& field) {
    field("seconds", self.seconds);
    field("lowering_seconds", self.lowering_seconds);
    field("code_seconds", self.code_seconds);
    field("weight_seconds", self.weight_seconds);
    field("kernels", self.kernels);
    field("kernels_from_cache", self.kernels_from_cache);
    field("interpreted", self.interpreted);
  }
};

/// Latency, and that of a peer measured interleaved with it.
struct Benchmark {
  static constexpr std::string_view kEvent = "benchmark";
  std::int64_t runs = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0;
  std::string peer = {};  // empty: none
  double peer_p50_ms = 0;
  double speedup = 0, speedup_low = 0, speedup_high = 0;  // 95 % confidence interval
  double error = 0;                                       // of outputs, relative to the RMS
  bool agrees = true;
  static void fields(auto& self, auto&& field) {
    field("runs", self.runs);
    field("p50_ms", self.p50_ms);
    field("p90_ms", self.p90_ms);
    field("p99_ms", self.p99_ms);
    field("peer", self.peer);
    field("peer_p50_ms", self.peer_p50_ms);
    field("speedup", self.speedup);
    field("speedup_low", self.speedup_low);
    field("speedup_high", self.speedup_high);
    field("error", self.error);
    field("agrees", self.agrees);
  }
};

/// Equivalence check of two models.
struct Proof {
  static constexpr std::string_view kEvent = "proof";
  std::string source = {}, target = {};  // files
  std::string verdict = {}, why = {};
  double seconds = 0;
  std::int64_t values = 0, congruent = 0, proved = 0;
  std::vector<std::string> assumptions = {};
  std::string output = {};                  // of a refutation: which differs,
  std::vector<std::int64_t> position = {};  // where,
  double source_value = 0, target_value = 0;
  std::string difference = {};                       // the first difference, in words
  std::string source_graph = {}, target_graph = {};  // the two subgraphs, as text
  Drawing source_drawing = {}, target_drawing = {};
  static void fields(auto& self, auto&& field) {
    field("source", self.source);
    field("target", self.target);
    field("verdict", self.verdict);
    field("why", self.why);
    field("seconds", self.seconds);
    field("values", self.values);
    field("congruent", self.congruent);
    field("proved", self.proved);
    field("assumptions", self.assumptions);
    field("output", self.output);
    field("position", self.position);
    field("source_value", self.source_value);
    field("target_value", self.target_value);
    field("difference", self.difference);
    field("source_graph", self.source_graph);
    field("target_graph", self.target_graph);
    field("source_drawing", self.source_drawing);
    field("target_drawing", self.target_drawing);
  }
};

/// Tuning of the schedules of a model.
struct Tuning {
  static constexpr std::string_view kEvent = "tuning";
  std::string target = {}, stopped_by = {};
  double seconds = 0;
  double default_ms = 0, tuned_ms = 0;  // of all tasks in a run
  bool kept = true;                     // false: the whole program was slower
  std::optional<double> ratio = {}, ratio_low = {}, ratio_high = {};  // whole program, new over old
  static void fields(auto& self, auto&& field) {
    field("target", self.target);
    field("stopped_by", self.stopped_by);
    field("seconds", self.seconds);
    field("default_ms", self.default_ms);
    field("tuned_ms", self.tuned_ms);
    field("kept", self.kept);
    field("ratio", self.ratio);
    field("ratio_low", self.ratio_low);
    field("ratio_high", self.ratio_high);
  }
};

/// Tuning task: a fusion group and what came of its schedules.
struct TuningTask {
  static constexpr std::string_view kEvent = "tuning_task";
  std::int64_t id = 0;
  std::string key = {}, what = {};
  std::vector<std::string> names = {};            // ONNX nodes of the first step that computes it
  double uses = 0;                                // in a run
  std::int64_t space = 0, known = 0, failed = 0;  // candidates; in the store before; not runnable
  double default_ms = 0;                          // of one use
  std::string default_schedule = {}, schedule = {};  // chosen; empty: the default one is kept
  double ratio = 1, ratio_low = 1, ratio_high = 1;   // chosen over default, 95 % interval
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("key", self.key);
    field("what", self.what);
    field("names", self.names);
    field("uses", self.uses);
    field("space", self.space);
    field("known", self.known);
    field("failed", self.failed);
    field("default_ms", self.default_ms);
    field("default_schedule", self.default_schedule);
    field("schedule", self.schedule);
    field("ratio", self.ratio);
    field("ratio_low", self.ratio_low);
    field("ratio_high", self.ratio_high);
  }
};

/// Candidate schedule that was measured.
struct Trial {
  static constexpr std::string_view kEvent = "trial";
  std::int64_t task = 0;
  std::string schedule = {};
  double at = 0;                    // seconds since the start
  double predicted = 0, ratio = 0;  // to the default; 0: not predicted, not runnable
  static void fields(auto& self, auto&& field) {
    field("task", self.task);
    field("schedule", self.schedule);
    field("at", self.at);
    field("predicted", self.predicted);
    field("ratio", self.ratio);
  }
};

/// Time of the same ONNX nodes in two logs.
struct Difference {
  static constexpr std::string_view kEvent = "difference";
  std::vector<std::string> names = {};
  double a_ms = 0, b_ms = 0;
  std::string a_how = {}, b_how = {};  // operators and strategies
  static void fields(auto& self, auto&& field) {
    field("names", self.names);
    field("a_ms", self.a_ms);
    field("b_ms", self.b_ms);
    field("a_how", self.a_how);
    field("b_how", self.b_how);
  }
};

/// All kinds of records but the header.
using Record = std::variant<Model, Target, Definition, Node, Pass, Rewrite, Search, Step, StepTime,
                            Run, Span, Kernel, Value, Memory, Compilation, Benchmark, Proof, Tuning,
                            TuningTask, Trial, Difference>;

}  // namespace tessera::report
