#include "tessera/driver/event_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/driver/inputs.h"
#include "tessera/driver/provenance.h"
#include "tessera/runtime/program_file.h"
#include "tests/support/command.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Model model_of(const std::string& text) {
  Model model{.graph = testing::parsed(text), .output_names = {}};
  for (const ValueId output : model.graph.outputs())
    model.output_names.push_back(model.graph.name(output));
  return model;
}

TEST(Provenance, FollowsValuesByTheirNames) {
  const Graph before = testing::parsed(
      "graph(x: f32[4]) { a = mul(x, 1.0)  b = relu(a)  c = exp(b)  d = neg(c)  return d }");
  const Graph after = testing::parsed("graph(x: f32[4]) { b = relu(x)  d = exp(b)  return d }");
  const auto origins = origins_of(before, after);
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_THAT(origins[0], ElementsAre(0, 1));
  EXPECT_THAT(origins[1], ElementsAre(2, 3));
}

TEST(Provenance, OfAnUnchangedGraphIsTheIdentity) {
  const Graph graph =
      testing::parsed("graph(x: f32[4]) { a = relu(x)  b = neg(x)  c = add(a, b)  return c }");
  const auto origins = origins_of(graph, graph);
  ASSERT_EQ(origins.size(), 3u);
  for (std::size_t n = 0; n < 3; ++n)
    EXPECT_THAT(origins[n], ElementsAre(static_cast<std::int64_t>(n)));
}

TEST(Provenance, PairsOutputsThatHaveNoCommonName) {
  const Graph before = testing::parsed("graph(x: f32[4]) { a = relu(x)  return a }");
  const Graph after = testing::parsed("graph(x: f32[4]) { z = relu(x)  return z }");
  EXPECT_THAT(origins_of(before, after), ElementsAre(ElementsAre(0)));
}

/// Log of a model that is compiled, run and timed.
report::EventLog measured(const Model& model) {
  CompileModelOptions options{.keep_graph = true};
  const InputShapes shapes(model.graph.inputs().size());
  auto compiled = compile_model(model, shapes, options);
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  auto runnable = RunnableProgram::create(compiled->program, {});
  EXPECT_TRUE(runnable);
  const auto inputs = make_inputs(model.graph, {.fill = InputOptions::Fill::Sin});
  EXPECT_TRUE(inputs);
  const auto runs = profile_runs(**runnable, *inputs, {}, 9);
  EXPECT_TRUE(runs) << to_string(runs.error());
  report::EventLog log("test");
  EXPECT_TRUE(add_compilation(
      log, {.model = model, .file = "m.onnx", .compiled = *compiled, .options = options}));
  add_profile(log, step_profile(compiled->program, *runs, 0));
  add_program(log, {.program = compiled->program, .compiled = &*compiled, .options = &options});
  return log;
}

/// Every step has a time and ONNX names, and the times add up to a run.
void expect_complete(const report::EventLog& log) {
  const auto* run = log.last<report::Run>();
  ASSERT_NE(run, nullptr);
  double sum = run->between_ms;
  std::map<std::int64_t, std::int64_t> calls;
  for (const auto* time : log.all<report::StepTime>()) {
    sum += time->ms;
    calls[time->step] = time->calls;
  }
  EXPECT_NEAR(sum, run->ms, 0.02 * run->ms);
  // The rest of a run is not negative, as it would be if steps in loops counted twice. How long it
  // is depends on the load of the machine; that no step is left out is seen by their calls.
  EXPECT_GE(run->between_ms, -0.02 * run->ms);
  std::map<std::int64_t, const report::Step*> steps;
  for (const auto* step : log.all<report::Step>()) steps[step->id] = step;
  EXPECT_FALSE(steps.empty());
  for (const auto& [id, step] : steps) {
    EXPECT_THAT(step->names, Not(IsEmpty())) << id;
    for (const std::string& name : step->names)
      EXPECT_THAT(name, Not(::testing::StartsWith("%"))) << id;
    EXPECT_TRUE(calls.contains(id)) << id;
    EXPECT_EQ(calls[id], step->loop < 0 ? 1 : steps.at(step->loop)->iterations) << id;
  }
}

constexpr const char* kConvolutions = R"(graph(x: f32[1, 8, 20, 20], w: f32[16, 8, 3, 3]) {
  a = conv(x, w) {pads=[1, 1, 1, 1]}
  b = relu(a)
  c = max_pool(b) {kernel_shape=[2, 2], strides=[2, 2]}
  d = mul(c, 1.0)
  y = softmax(d) {axis=1}
  return y
})";

TEST(EventRecords, NameEveryStepAndItsTime) {
  const report::EventLog log = measured(model_of(kConvolutions));
  expect_complete(log);
  // The operators of the model, as far as they are left, are in the names of some step.
  std::set<std::string> names;
  for (const auto* step : log.all<report::Step>())
    names.insert(step->names.begin(), step->names.end());
  for (const char* name : {"a", "b", "c", "y"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(EventRecords, TimesOfLoopsAddUp) {
  const report::EventLog log = measured(model_of(
      "graph(s: f32[64, 64], xs: f32[50, 64, 64]) {"
      "  y, ys = scan(s, xs) {states=1, elements=1} {"
      "    body(a: f32[64, 64], x: f32[64, 64]) { b = matmul(a, x)  c = tanh(b)  return c, c } }"
      "  return y, ys }"));
  expect_complete(log);
  const auto steps = log.all<report::Step>();
  EXPECT_TRUE(std::ranges::any_of(steps, [](const auto* step) { return step->iterations == 50; }));
  EXPECT_TRUE(std::ranges::any_of(steps, [](const auto* step) { return step->loop >= 0; }));
}

TEST(EventRecords, ShowRulesWithTheirProofsAndPlaces) {
  const report::EventLog log = measured(
      model_of("graph(x: f32[64, 32]) { a = mul(x, 2.0)  b = mul(a, 3.0)  y = neg(b)  return y }"));
  const auto rewrites = log.all<report::Rewrite>();
  ASSERT_THAT(rewrites, Not(IsEmpty()));
  for (const auto* rewrite : rewrites) {
    EXPECT_EQ(rewrite->verdict, "proved") << rewrite->rule;
    EXPECT_THAT(rewrite->proof_steps, Not(IsEmpty())) << rewrite->rule;
    EXPECT_FALSE(rewrite->equation.empty()) << rewrite->rule;
    EXPECT_THAT(rewrite->source.labels, Not(IsEmpty())) << rewrite->rule;
    EXPECT_THAT(rewrite->where, Not(IsEmpty())) << rewrite->rule;
  }
}

TEST(EventRecords, RulesAndPassesHaveTheirExpectedGain) {
  // (x·v)·w = x·(v·w) saves one of two matmuls.
  const report::EventLog log =
      measured(model_of("graph(x: f32[256, 256]) {"
                        "  v = reshape(sin(range(0.0, 65536.0, 1.0)), [256, 256])"
                        "  a = matmul(x, v)  y = matmul(a, v)  return y }"));
  const auto rewrites = log.all<report::Rewrite>();
  ASSERT_EQ(rewrites.size(), 1u);
  const report::Rewrite& rule = *rewrites[0];
  EXPECT_EQ(rule.by, "algebra");
  EXPECT_GT(rule.before_ms, 1.6 * rule.after_ms) << rule.rule;
  EXPECT_GT(rule.after_ms, 0);
  EXPECT_DOUBLE_EQ(rule.expected_ms, rule.after_ms - rule.before_ms);
  // The pass as a whole applied this rule alone; it is listed twice, and its gain once.
  std::vector<double> of_passes;
  for (const auto* pass : log.all<report::Pass>()) {
    EXPECT_TRUE(pass->changed || pass->before_ms == 0) << pass->name;
    if (pass->before_ms > 0) of_passes.push_back(pass->expected_ms);
  }
  EXPECT_THAT(of_passes, Contains(::testing::DoubleNear(rule.expected_ms, 1e-9)));
}

TEST(EventRecords, GainsOfUnknownSizesAreNotEstimated) {
  const Graph graph = testing::parsed(
      "graph(x: f32[n, 4]) { a = mul(x, 2.0)  b = mul(a, 3.0)  y = neg(b)  return y }");
  const auto made = passes::optimize(graph, {});
  ASSERT_TRUE(made) << to_string(made.error());
  const auto gains = rewrite_gains(graph, made->log, {});
  ASSERT_TRUE(gains) << to_string(gains.error());
  EXPECT_THAT(*gains, IsEmpty());
}

TEST(EventRecords, SavedProgramsKeepTheNamesAndStrategiesOfSteps) {
  const Model model = model_of(kConvolutions);
  const auto compiled = compile_model(model, InputShapes(model.graph.inputs().size()), {});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(runtime::save(compiled->program, folder.path() / "m.tsr"));
  const auto program = runtime::load(folder.path() / "m.tsr");
  ASSERT_TRUE(program) << to_string(program.error());
  report::EventLog log("report");
  add_program(log, {.program = *program});
  std::set<std::string> names;
  for (const auto* step : log.all<report::Step>()) {
    EXPECT_FALSE(step->strategy.empty()) << step->id;
    names.insert(step->names.begin(), step->names.end());
  }
  for (const char* name : {"a", "b", "c", "y"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(EventRecords, NameWhatAMemoryLimitRecomputesAndSwaps) {
  const Model model = model_of(
      "graph(x: f32[64, 64], w: f32[64, 64]) {"
      "  a = matmul(x, w)  b = matmul(a, w)  c = matmul(b, w)  d = matmul(c, w)"
      "  e = matmul(d, a)  return e }");
  CompileModelOptions options;
  options.code.memory_limit = 2 * 64 * 64 * 4;  // two values; a waits for e
  const auto compiled = compile_model(model, InputShapes(2), options);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  report::EventLog log("compile");
  add_program(log, {.program = compiled->program, .compiled = &*compiled, .options = &options});
  std::size_t additional = 0;
  for (const auto* step : log.all<report::Step>()) {
    EXPECT_THAT(step->names, Not(IsEmpty())) << step->id;
    if (step->kind != "swap" && step->strategy != "recomputed") continue;
    ++additional;
    for (const std::string& name : step->names)
      EXPECT_THAT(name, ::testing::AnyOf("a", "b", "c", "d", "e")) << step->id;
  }
  EXPECT_GT(additional, 0u);
}

TEST(EventRecords, MutantsHaveTheirCorrectedRegion) {
  const std::string rule = "concat_columns_conv_conv_as_conv_concat_columns";
  SearchReport search{.kept = true};
  search.found.choices = {{.places = 2,
                           .rules = {{.rule = rule, .where = "y", .before = 2e-3, .after = 1e-3}},
                           .before = 3e-3,
                           .after = 2e-3,
                           .measured = true}};
  for (const bool kept : {true, false}) {
    search.kept = kept;
    report::EventLog log("compile");
    ASSERT_TRUE(add_search(log, search));
    const auto* rewrite = log.last<report::Rewrite>();
    ASSERT_NE(rewrite, nullptr);
    EXPECT_EQ(rewrite->rejected, !kept);
    EXPECT_EQ(rewrite->verdict, "proved");
    EXPECT_NEAR(rewrite->expected_ms, -2, 1e-9);
    EXPECT_THAT(rewrite->certificate, ::testing::HasSubstr("unfold"));
    EXPECT_THAT(rewrite->corrected, ::testing::HasSubstr("axis 3"));
    EXPECT_THAT(rewrite->mutant.labels, Not(IsEmpty()));
    // Columns beside the seam, in all rows.
    ASSERT_EQ(rewrite->regions.size(), 1u);
    const report::RegionGrid& grid = rewrite->regions[0];
    EXPECT_EQ(grid.column_axis, 3);
    ASSERT_EQ(grid.boxes.size(), 1u);
    EXPECT_EQ(grid.boxes[0][0], 0);
    EXPECT_EQ(grid.boxes[0][1], grid.rows);
    EXPECT_GT(grid.boxes[0][2], 0);
    EXPECT_LT(grid.boxes[0][3], grid.columns);
  }
}

TEST(EventRecords, TuningHasEveryCandidate) {
  const lower::GroupSchedule usual = lower::RowsSchedule{{8}}, other = lower::RowsSchedule{{16}};
  TunedModel tuned{.target = "here"};
  tuned.tasks.emplace_back().set_space({{usual, 0}, {other, 0}}, usual);
  tuned.tasks[0].key = "k";
  tuned.tasks[0].what = "softmax";
  tuned.tasks[0].uses = 3;
  tuned.result = {
      .tasks = {{.default_seconds = 2e-3,
                 .trials = {{.candidate = 1, .at = 0.5, .predicted = 0.9, .ratio = 0.8}},
                 .chosen = 1,
                 .ratio = 0.8,
                 .low = 0.7,
                 .high = 0.9}},
      .seconds = 1};
  report::EventLog log("tune");
  add_tuning(log, tuned, nullptr);
  const auto* trial = log.last<report::Trial>();
  ASSERT_NE(trial, nullptr);
  EXPECT_EQ(trial->schedule, lower::to_text(other));
  EXPECT_EQ(trial->predicted, 0.9);
  EXPECT_EQ(trial->ratio, 0.8);
  EXPECT_EQ(log.last<report::TuningTask>()->schedule, lower::to_text(other));
  EXPECT_NEAR(log.last<report::Tuning>()->default_ms, 6, 1e-9);
  EXPECT_NEAR(log.last<report::Tuning>()->tuned_ms, 4.8, 1e-9);
}

TEST(EventRecords, NodesHaveDefinitionsInIndexNotation) {
  const report::EventLog log = measured(model_of(kConvolutions));
  std::map<std::int64_t, std::string> definitions;
  for (const auto* definition : log.all<report::Definition>())
    definitions[definition->id] = definition->text;
  for (const auto* node : log.all<report::Node>()) {
    ASSERT_TRUE(definitions.contains(node->definition)) << node->name;
    if (node->op != "conv") continue;
    EXPECT_THAT(definitions[node->definition], ::testing::HasSubstr("sum("));
  }
}

TEST(EventRecords, ValuesOfTheArenaDoNotOverlapWhileTheyLive) {
  const report::EventLog log = measured(model_of(kConvolutions));
  std::vector<const report::Value*> values;
  for (const auto* value : log.all<report::Value>())
    if (value->home == "arena") values.push_back(value);
  ASSERT_THAT(values, Not(IsEmpty()));
  for (const auto* a : values) {
    EXPECT_LE(a->offset + a->bytes, log.last<report::Memory>()->arena_bytes);
    for (const auto* b : values) {
      if (a == b || a->last < b->first || b->last < a->first) continue;
      EXPECT_TRUE(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset)
          << a->name << " and " << b->name;
    }
  }
}

TEST(EventRecords, KernelsHaveTheirForms) {
  const report::EventLog log = measured(model_of(kConvolutions));
  const auto kernels = log.all<report::Kernel>();
  ASSERT_THAT(kernels, Not(IsEmpty()));
  for (const auto* kernel : kernels) {
    EXPECT_THAT(kernel->tile, ::testing::StartsWith("kernel ")) << kernel->id;
    EXPECT_THAT(kernel->schedule, ::testing::HasSubstr("scheduled")) << kernel->id;
    EXPECT_THAT(kernel->assembly, ::testing::HasSubstr("ret")) << kernel->id;
  }
}

TEST(StepProfile, AddsUpWhateverTheRunsAre) {
  runtime::Program program;
  program.steps.resize(2, runtime::step::Copy{});
  program.notes.resize(2);
  ProfiledRuns runs;
  for (int run = 0; run < 8; ++run) {
    const std::int64_t noise = run == 7 ? 50'000'000 : run * 1000;
    runs.spans.push_back({run, 0, 0, 1'000'000 + noise});
    runs.spans.push_back({run, 1, 2'000'000 + noise, 2'500'000 + noise});
    runs.ms.push_back(static_cast<double>(2'600'000 + noise) / 1e6);
  }
  const StepProfile profile = step_profile(program, runs, 0);
  double sum = profile.between_ms;
  for (const StepTime& step : profile.steps) sum += step.ms;
  EXPECT_NEAR(sum, profile.ms, 1e-9);
  EXPECT_LT(profile.ms, 2.7);  // the run that was disturbed does not count
  EXPECT_EQ(profile.last_run.size(), 2u);
}

}  // namespace
}  // namespace tessera
