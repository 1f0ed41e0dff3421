#include "tessera/driver/event_records.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tessera/driver/provenance.h"
#include "tessera/driver/rules.h"
#include "tessera/driver/step_names.h"
#include "tessera/expr/text.h"
#include "tessera/ir/text.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/region_picture.h"
#include "tessera/rules/shipped.h"
#include "tessera/rules/text.h"

namespace tessera {
namespace {

constexpr std::size_t kLongestText = 4000;    // of attributes and definitions
constexpr std::size_t kLongestProof = 12000;  // of a certificate
constexpr std::size_t kMostPlaces = 400;      // of one change

std::string shortened(std::string text, std::size_t most = kLongestText) {
  if (text.size() > most) text.resize(most), text += " …";
  return text;
}

report::TensorType tensor_of(const Graph& graph, ValueId value) {
  return {.name = graph.name(value), .type = to_string(graph.type(value))};
}

/// Definition of a node as text: index notation of a core operator, in words for the others.
std::string definition_text(const Graph& graph, const GraphNode& node) {
  if (const auto definition = rules::definition_of(graph, node)) return to_text(*definition);
  switch (node.op->kind()) {
    case OpDef::Kind::Core: return node.op->summary + " (of unknown sizes)";
    case OpDef::Kind::Composite: return node.op->summary + " (a composite of core operators)";
    case OpDef::Kind::Opaque: return node.op->summary + " (computed by a host function)";
    case OpDef::Kind::Control: return node.op->summary + " (control flow)";
  }
  return {};
}

/// Adds the nodes of a graph; definitions are shared.
class GraphRecords {
 public:
  explicit GraphRecords(report::EventLog& log) : log_(log) {
    for (const auto* definition : log.all<report::Definition>())
      definitions_.emplace(definition->text, definition->id);
  }

  void add(const Graph& graph, const std::string& which,
           const std::vector<std::vector<std::int64_t>>& origins) {
    const GraphNode* const first = graph.nodes().data();
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      report::Node record{.graph = which,
                          .id = static_cast<std::int64_t>(n),
                          .name = node_label(graph, n),
                          .op = node.op->name,
                          .attributes = shortened(attrs_text(*node.op, *node.attrs)),
                          .definition = definition(graph, node)};
      for (const ValueId input : graph.inputs(node)) {
        if (!input.present()) continue;
        const GraphNode* const producer = graph.producer(input);
        record.operands.push_back({.node = producer == nullptr ? -1 : producer - first,
                                   .name = graph.name(input),
                                   .type = to_string(graph.type(input)),
                                   .constant = graph.constant(input) != nullptr});
      }
      for (const ValueId output : graph.outputs(node))
        record.results.push_back(tensor_of(graph, output));
      if (n < origins.size()) record.origins = origins[n];
      log_.add(std::move(record));
    }
  }

 private:
  std::int64_t definition(const Graph& graph, const GraphNode& node) {
    const std::string text = shortened(definition_text(graph, node));
    const auto [it, is_new] =
        definitions_.emplace(text, static_cast<std::int64_t>(definitions_.size()));
    if (is_new) log_.add(report::Definition{.id = it->second, .op = node.op->name, .text = text});
    return it->second;
  }

  report::EventLog& log_;
  std::map<std::string, std::int64_t> definitions_;
};

report::Drawing drawing_of(const Graph& graph) {
  report::Drawing drawing;
  std::map<ValueId, std::int64_t> box_of;
  const auto add_box = [&](std::string label) {
    drawing.labels.push_back(shortened(std::move(label)));
    return static_cast<std::int64_t>(drawing.labels.size() - 1);
  };
  const auto box = [&](ValueId value) {
    const auto it = box_of.find(value);
    if (it != box_of.end()) return it->second;
    const Tensor* const constant = graph.constant(value);
    const std::string type = to_string(graph.type(value));
    return box_of[value] = add_box(constant != nullptr && constant->count() == 1
                                       ? "constant " + type
                                       : graph.name(value) + ": " + type);
  };
  for (const ValueId input : graph.inputs()) box(input);
  for (const GraphNode& node : graph.nodes()) {
    const std::int64_t self = add_box(node.op->name + attrs_text(*node.op, *node.attrs));
    for (const ValueId input : graph.inputs(node))
      if (input.present()) drawing.edges.push_back({box(input), self});
    for (const ValueId output : graph.outputs(node)) box_of[output] = self;
  }
  for (const ValueId output : graph.outputs()) {
    const std::int64_t from = box(output);
    drawing.edges.push_back({from, add_box("output")});
  }
  return drawing;
}

/// Rewrites of a log by rule, with what is known of the rules.
class RewriteRecords {
 public:
  explicit RewriteRecords(bool rejected = false) : rejected_(rejected) {}

  void add(const std::string& rule, const std::string& by, const std::string& where, int times) {
    report::Rewrite& record = records_[{by, rule}];
    record.rule = rule;
    record.by = by;
    record.times += times;
    record.rejected = rejected_;
    if (!where.empty() && record.where.size() < kMostPlaces &&
        std::ranges::find(record.where, where) == record.where.end())
      record.where.push_back(where);
  }
  report::Rewrite& of(const std::string& rule, const std::string& by) {
    return records_[{by, rule}];
  }

  /// Proves the rules again, and adds the records to a log.
  Expected<Done> finish(report::EventLog& log) {
    if (records_.empty()) return Done{};
    TESSERA_TRY(const std::vector<rules::Rule> shipped, rules::shipped());
    for (auto& [key, record] : records_) {
      const auto rule = std::ranges::find(shipped, record.rule, &rules::Rule::name);
      if (rule != shipped.end()) TESSERA_TRY_DONE(describe(*rule, record));
      log.add(std::move(record));
    }
    return Done{};
  }

 private:
  static Expected<Done> describe(const rules::Rule& rule, report::Rewrite& record) {
    record.about = rule.about;
    record.equation = rules::equation(rule);
    record.guard = rules::in_words(rule.guard);
    record.numerics = rules::to_text(rule.numerics);
    record.found = rule.found;
    record.source = drawing_of(rule.source);
    record.target = drawing_of(rule.target);
    if (rule.mutant) describe(*rule.mutant, rule, record);
    TESSERA_TRY(const auto proofs, prove_rules({.rules = {rule}}, {}));
    record.verdict = prove::to_string(proofs[0].verdict);
    for (const auto& [kind, count] : steps_by_kind(proofs[0]))
      record.proof_steps[kind] = static_cast<std::int64_t>(count);
    if (const auto* proved = std::get_if<prove::Proved>(&proofs[0].verdict)) {
      for (const prove::Assumption& assumption : proved->assumptions)
        record.assumptions.push_back(assumption.text);
      record.certificate = shortened(certify::to_text(proved->certificate), kLongestProof);
    }
    return Done{};
  }

  static void describe(const rules::Mutant& mutant, const rules::Rule& rule,
                       report::Rewrite& record) {
    record.mutant = drawing_of(mutant.target);
    record.corrected = rules::in_words(mutant.wrong);
    const auto grids = rules::region_grids(rule);
    if (!grids) return;  // sizes that satisfy the guard are large: in words only
    for (const rules::RegionGrid& grid : *grids) {
      report::RegionGrid shown{.output = static_cast<std::int64_t>(grid.output),
                               .row_axis = static_cast<std::int64_t>(grid.row_axis),
                               .column_axis = static_cast<std::int64_t>(grid.column_axis),
                               .rows = grid.rows,
                               .columns = grid.columns};
      for (const auto& box : grid.boxes) shown.boxes.emplace_back(box.begin(), box.end());
      record.regions.push_back(std::move(shown));
    }
  }

  bool rejected_;
  std::map<std::pair<std::string, std::string>, report::Rewrite> records_;
};

const passes::PassInfo* info_of(const std::string& pass) {
  for (const passes::PassInfo& info : passes::pass_list())
    if (info.name == pass) return &info;
  return nullptr;
}

/// Gain of a pass or of a rule that a pass applied, in its record.
void set_gain(const RewriteGain& gain, auto& record) {
  record.before_ms = 1e3 * gain.before;
  record.after_ms = 1e3 * gain.after;
  record.expected_ms = record.after_ms - record.before_ms;
  record.measured = gain.measured;
}

void add_tuning_task(report::EventLog& log, std::int64_t id, const tune::Task& task,
                     const tune::TaskResult& result, std::vector<std::string> names) {
  log.add(report::TuningTask{.id = id,
                             .key = task.key,
                             .what = task.what,
                             .names = std::move(names),
                             .uses = task.uses,
                             .space = static_cast<std::int64_t>(task.space.size()),
                             .known = static_cast<std::int64_t>(result.known),
                             .failed = static_cast<std::int64_t>(result.failed),
                             .default_ms = 1e3 * result.default_seconds,
                             .default_schedule = task.space[task.usual].schedule,
                             .schedule = result.chosen ? task.space[*result.chosen].schedule : "",
                             .ratio = result.ratio,
                             .ratio_low = result.low,
                             .ratio_high = result.high});
  for (const tune::Trial& trial : result.trials)
    log.add(report::Trial{.task = id,
                          .schedule = task.space[trial.candidate].schedule,
                          .at = trial.at,
                          .predicted = trial.predicted,
                          .ratio = trial.ratio});
}

std::string graph_text(const Graph& graph) {
  return to_text(graph, {.inline_limit = 16});
}

}  // namespace

void add_tuning(report::EventLog& log, const TunedModel& tuned, const CompiledModel* compiled) {
  report::Tuning record{.target = tuned.target,
                        .stopped_by = std::string(tune::to_string(tuned.result.end)),
                        .seconds = tuned.result.seconds,
                        .default_ms = 1e3 * tuned.default_seconds(),
                        .tuned_ms = 1e3 * tuned.tuned_seconds(),
                        .kept = tuned.kept};
  if (tuned.comparison) {
    record.ratio = tuned.comparison->ratio;
    record.ratio_low = tuned.comparison->low;
    record.ratio_high = tuned.comparison->high;
  }
  log.add(std::move(record));
  std::map<std::string, std::vector<std::string>> names;  // by key of the group
  if (compiled != nullptr)
    for (std::size_t i = 0; i < compiled->report.steps.size(); ++i)
      if (const auto& group = compiled->report.steps[i].group; group != nullptr)
        names.emplace(group->key, compiled->program.notes[i].names);
  for (std::size_t i = 0; i < tuned.tasks.size(); ++i)
    add_tuning_task(log, static_cast<std::int64_t>(i), tuned.tasks[i], tuned.result.tasks[i],
                    names[tuned.tasks[i].key]);
}

void add_tuning(report::EventLog& log, const TunedKernel& tuned) {
  const tune::TaskResult& result = tuned.outcome();
  log.add(report::Tuning{.target = tuned.target,
                         .stopped_by = std::string(tune::to_string(tuned.result.end)),
                         .seconds = tuned.result.seconds,
                         .default_ms = 1e3 * result.default_seconds,
                         .tuned_ms = 1e3 * result.default_seconds * result.ratio,
                         .kept = true,
                         .ratio = result.ratio,
                         .ratio_low = result.low,
                         .ratio_high = result.high});
  add_tuning_task(log, 0, tuned.task, result, {});
}

void add_model(report::EventLog& log, const Model& model, const std::string& file) {
  const Graph& graph = model.graph;
  const Inventory inventory = inspect(graph);
  report::Model record{
      .name = graph.name(),
      .file = std::filesystem::path(file).filename().string(),
      .nodes = inventory.nodes,
      .parameters = inventory.parameters,
      .parameter_bytes = inventory.parameter_bytes,
      .multiply_adds = static_cast<double>(inventory.multiply_adds.constant().value_or(0))};
  for (const ValueId input : graph.inputs()) record.inputs.push_back(tensor_of(graph, input));
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    report::TensorType output = tensor_of(graph, graph.outputs()[i]);
    if (i < model.output_names.size()) output.name = model.output_names[i];
    record.outputs.push_back(std::move(output));
  }
  log.add(std::move(record));
  GraphRecords(log).add(graph, "original", {});
}

Expected<Done> add_pass_records(report::EventLog& log, const std::vector<passes::Record>& passes,
                                const std::vector<RewriteGain>& gains) {
  RewriteRecords rewrites;
  std::set<std::string> estimated;  // a pass may run twice: the gain is of both
  for (const passes::Record& pass : passes) {
    report::Pass record{.name = pass.pass,
                        .seconds = pass.seconds,
                        .nodes_before = static_cast<std::int64_t>(pass.nodes_before),
                        .nodes_after = static_cast<std::int64_t>(pass.nodes_after),
                        .changed = pass.changed,
                        .validation = pass.validation};
    const passes::PassInfo* const info = info_of(pass.pass);
    if (info != nullptr) {
      record.summary = info->summary;
      record.stage = passes::to_string(info->stage);
      record.numerics = passes::to_string(info->numerics);
    }
    const bool applies_rules = info != nullptr && info->numerics == passes::NumericsClass::PerRule;
    std::map<std::string, report::PassChange> changes;
    for (const passes::Change& change : pass.changes) {
      report::PassChange& entry = changes[change.what];
      entry.what = change.what;
      ++entry.times;
      if (!change.where.empty() && entry.where.size() < kMostPlaces)
        entry.where.push_back(change.where);
      if (applies_rules) rewrites.add(change.what, pass.pass, change.where, 1);
    }
    for (auto& [what, entry] : changes) record.changes.push_back(std::move(entry));
    for (const RewriteGain& gain : gains)
      if (gain.pass == pass.pass && gain.rule.empty() && pass.changed &&
          estimated.insert(pass.pass).second)
        set_gain(gain, record);
    log.add(std::move(record));
  }
  for (const RewriteGain& gain : gains)
    if (!gain.rule.empty()) set_gain(gain, rewrites.of(gain.rule, gain.pass));
  return rewrites.finish(log);
}

Expected<Done> add_search(report::EventLog& log, const SearchReport& search) {
  report::Search record{.seconds = search.seconds,
                        .before_ms = 1e3 * search.found.before,
                        .after_ms = 1e3 * search.found.after,
                        .steps = search.found.steps,
                        .regions = static_cast<std::int64_t>(search.found.regions),
                        .distinct_regions = static_cast<std::int64_t>(search.found.distinct),
                        .stopped_by = std::string(search::to_string(search.found.why)),
                        .kept = search.kept};
  if (search.comparison) {
    record.ratio = search.comparison->ratio;
    record.ratio_low = search.comparison->low;
    record.ratio_high = search.comparison->high;
  }
  log.add(std::move(record));
  RewriteRecords rewrites(!search.kept);
  for (const std::string& rule : search.found.normalization) rewrites.add(rule, "search", {}, 1);
  const auto is_named = [](const std::string& value) { return !value.starts_with('%'); };
  for (const search::Choice& choice : search.found.choices) {
    // A value that an earlier rule made has no name in the model: its region stands for it.
    const auto named =
        std::ranges::find_if(choice.rules, is_named, &search::RuleApplication::where);
    const std::string region = named == choice.rules.end() ? "" : named->where;
    for (const search::RuleApplication& step : choice.rules) {
      const std::string where = is_named(step.where) ? step.where : region;
      rewrites.add(step.rule, "search", where, step.times);
      report::Rewrite& rewrite = rewrites.of(step.rule, "search");
      rewrite.before_ms = 1e3 * choice.before;
      rewrite.after_ms = 1e3 * choice.after;
      rewrite.measured = choice.measured;
      rewrite.expected_ms += 1e3 * (step.after - step.before) * static_cast<double>(choice.places);
      for (const std::string& also : step.also) rewrites.add(also, "search", where, 1);
    }
  }
  return rewrites.finish(log);
}

void add_rewritten_graph(report::EventLog& log, const RewrittenGraph& of) {
  GraphRecords(log).add(of.rewritten, of.which, origins_of(of.original, of.rewritten));
}

Expected<Done> add_compilation(report::EventLog& log, const CompilationRecords& of) {
  const program::CompileOptions& code = of.options.code;
  log.add(report::Target{.architecture = of.architecture,
                         .cpu = code.machine.cpu,
                         .features = code.machine.features,
                         .threads = code.threads,
                         .precision = std::string(to_string(of.compiled.contraction_dtype)),
                         .numerics = code.passes.exact ? "exact" : "reals",
                         .error = of.compiled.error.value_or(-1),
                         .peak_gflops = of.peak_gflops,
                         .bandwidth_gbytes = of.bandwidth_gbytes});
  add_model(log, of.model, of.file);
  TESSERA_TRY_DONE(add_pass_records(log, of.compiled.passes, of.compiled.gains));
  if (of.compiled.search) TESSERA_TRY_DONE(add_search(log, *of.compiled.search));
  if (of.compiled.graph)
    add_rewritten_graph(
        log, {.which = "compiled", .original = of.model.graph, .rewritten = *of.compiled.graph});
  const program::CompileReport& report = of.compiled.report;
  report::Compilation record{
      .seconds = of.compiled.seconds,
      .lowering_seconds = report.seconds_lowering,
      .code_seconds = report.seconds_code,
      .weight_seconds = report.seconds_weights,
      .kernels = static_cast<std::int64_t>(report.kernels),
      .kernels_from_cache = static_cast<std::int64_t>(report.kernels_from_cache)};
  for (const auto& [name, entry] : report.interpreted)
    record.interpreted[name] = fmt::format("{} times: {}", entry.count, entry.why);
  log.add(std::move(record));
  return Done{};
}

void add_proof(report::EventLog& log, const ProofRecords& of) {
  const prove::SweepResult& result = of.result;
  const auto base = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  report::Proof record{.source = base(of.source),
                       .target = base(of.target),
                       .verdict = std::string(prove::to_string(result.verdict)),
                       .seconds = of.seconds,
                       .values = static_cast<std::int64_t>(result.values),
                       .congruent = static_cast<std::int64_t>(result.congruent),
                       .proved = static_cast<std::int64_t>(result.proved)};
  const auto show = [&](const Graph& source, const Graph& target) {
    record.source_graph = graph_text(source);
    record.target_graph = graph_text(target);
    record.source_drawing = drawing_of(source);
    record.target_drawing = drawing_of(target);
  };
  if (const auto* proved = std::get_if<prove::Proved>(&result.verdict)) {
    for (const prove::Assumption& assumption : proved->assumptions)
      record.assumptions.push_back(assumption.text);
  } else if (const auto* refuted = std::get_if<prove::Refuted>(&result.verdict)) {
    record.why = refuted->what;
    if (refuted->output < result.output_names.size())
      record.output = result.output_names[refuted->output];
    record.position = refuted->position;
    record.source_value = refuted->source;
    record.target_value = refuted->target;
    if (result.divergence) {
      record.difference = prove::to_string(*result.divergence);
      show(result.divergence->source.subgraph, result.divergence->target.subgraph);
    }
  } else {
    record.why = std::get<prove::Unknown>(result.verdict).why;
    if (result.unrelated) show(result.unrelated->source, result.unrelated->target);
  }
  log.add(std::move(record));
}

}  // namespace tessera
