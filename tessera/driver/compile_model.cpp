#include "tessera/driver/compile_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/driver/golden.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/runnable_program.h"
#include "tessera/driver/step_names.h"
#include "tessera/ir/bind.h"
#include "tessera/program/lowerings.h"
#include "tessera/support/stopwatch.h"

namespace tessera {
namespace {

Expected<std::vector<Datum>> outputs_of(const runtime::Program& program,
                                        std::span<const Datum> inputs) {
  TESSERA_TRY(const auto runnable,
              RunnableProgram::create(program, {.memory_limit = INT64_MAX - 1}));
  return runnable->run(inputs);
}

/// Largest error of a program against another one, on sine and random inputs.
Expected<double> largest_error(const Graph& graph, const runtime::Program& program,
                               const runtime::Program& reference) {
  double largest = 0;
  for (const InputOptions::Fill fill : {InputOptions::Fill::Sin, InputOptions::Fill::Random}) {
    TESSERA_TRY(const std::vector<Datum> inputs, make_inputs(graph, {.fill = fill, .seed = 1}));
    TESSERA_TRY(const std::vector<Datum> found, outputs_of(program, inputs));
    TESSERA_TRY(const std::vector<Datum> expected, outputs_of(reference, inputs));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].is_tensor() || !is_float(found[i].tensor().dtype)) continue;
      largest = std::max(largest, distance(found[i].tensor(), expected[i].tensor()).error);
    }
  }
  return largest;
}

/// Compiles with the first precision that is close enough to f32; a single candidate is not
/// checked.
Expected<program::Compiled> compile_as(const Graph& graph, const CompileModelOptions& options,
                                       CompiledModel& result) {
  const std::vector<DType> candidates = contraction_dtypes(options);
  const auto compiled_with = [&](DType products) {
    program::CompileOptions code = options.code;
    result.contraction_dtype = code.contraction_dtype = products;
    return program::compile(graph, code);
  };
  if (candidates.size() == 1) return compiled_with(candidates[0]);
  TESSERA_TRY(program::Compiled reference, compiled_with(DType::F32));
  for (const DType products : candidates) {
    if (products == DType::F32) break;
    TESSERA_TRY(program::Compiled compiled, compiled_with(products));
    TESSERA_TRY(result.error, largest_error(graph, compiled.program, reference.program));
    if (*result.error <= options.max_error) return compiled;
  }
  result.contraction_dtype = DType::F32;
  return reference;
}

/// Notes of the steps, for profiles and reports, also of saved programs.
void name_steps(const Graph& original, const Graph& compiled, CompiledModel& result) {
  std::vector<std::vector<std::string>> names = step_names(original, compiled, result.report.steps);
  for (std::size_t i = 0; i < names.size(); ++i) {
    result.program.notes[i].names = std::move(names[i]);
    result.program.notes[i].strategy = result.report.steps[i].strategy;
  }
}

}  // namespace

namespace {

/// Tensors beyond what a program can address: more than 2^48 bytes.
Expected<Done> check_sizes(const Graph& graph) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
    const Type& type = graph.type(ValueId{i});
    if (!type.is_ranked_tensor() || type.dtype == DType::String) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *type.shape)
      if (const auto size = dim.constant()) shape.push_back(*size);
    if (shape.size() != type.shape->size()) continue;
    const auto count = element_count(shape);
    if (count && *count <= kMostBytes / std::max(byte_width(type.dtype), 1)) continue;
    return Diagnostic{
        .id = "memory-limit",
        .where = {.item = graph.name(ValueId{i})},
        .message = fmt::format("a tensor of shape {} is too large", fmt::join(shape, "x")),
        .note = fmt::format("a tensor of a program has at most {} bytes", kMostBytes),
        .help = "compile for smaller sizes"};
  }
  return Done{};
}

}  // namespace

std::vector<DType> contraction_dtypes(const CompileModelOptions& options) {
  std::vector<DType> fast = machine::fast_product_types(options.code.machine);
  const auto has = [&](DType dtype) { return std::ranges::find(fast, dtype) != fast.end(); };
  switch (options.precision) {
    case Precision::F32: break;
    case Precision::F16:
      if (!fast.empty()) return {fast.front()};
      break;
    case Precision::Bf16:
      if (has(DType::BF16)) return {DType::BF16};
      break;
    case Precision::Auto: fast.push_back(DType::F32); return fast;
  }
  return {DType::F32};
}

InputShapes shapes_of(std::span<const Datum> inputs) {
  InputShapes shapes;
  for (const Datum& input : inputs) {
    shapes.push_back(input.is_tensor() ? std::optional(input.tensor().shape) : std::nullopt);
  }
  return shapes;
}

Expected<Graph> specialized(const Graph& graph, const InputShapes& shapes) {
  GraphBuilder out;
  Vals inputs;
  Binding binding;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    Type type = graph.type(id);
    if (shapes[i]) {
      if (type.shape && type.shape->size() != shapes[i]->size())
        return Diagnostic{.id = "run-input-shape",
                          .where = {.item = graph.name(id)},
                          .message = fmt::format("the input has {} axes", shapes[i]->size()),
                          .note = fmt::format("the model declares {}", to_string(type))};
      for (std::size_t axis = 0; type.shape && axis < shapes[i]->size(); ++axis) {
        if (const auto symbol = (*type.shape)[axis].as_symbol()) {
          binding.bind_size(std::string(*symbol), (*shapes[i])[axis]);
        }
      }
      type.shape = Shape(shapes[i]->begin(), shapes[i]->end());
    }
    inputs.push_back(out.input(graph.is_named(id) ? graph.name(id) : "", {.type = type}));
  }
  TESSERA_TRY(const Vals outputs, placed(out, graph, inputs, binding, KnownSizes::Constant));
  TESSERA_TRY(Graph made, out.finish(outputs));
  made.set_name(graph.name());
  return made;
}

program::ScheduleBook schedules_of(const program::CompileReport& report) {
  program::ScheduleBook book;
  for (const program::CompileReport::Step& step : report.steps)
    if (step.group != nullptr && step.group->made->schedule)
      book.entries.insert_or_assign(
          step.group->key, program::ScheduleBook::Entry{*step.group->made->schedule, step.what});
  return book;
}

Expected<CompiledModel> compile_model(const Model& model, const InputShapes& shapes,
                                      const CompileModelOptions& given) {
  const Stopwatch watch;
  CompiledModel result;
  TESSERA_TRY(const Graph graph, specialized(model.graph, shapes));
  TESSERA_TRY_DONE(check_sizes(graph));
  CompileModelOptions options = given;
  const auto last = std::make_shared<Graph>(graph);
  options.code.passes.observe = [last, observe = given.code.passes.observe](const std::string& pass,
                                                                            const Graph& after) {
    *last = after;
    if (observe) observe(pass, after);
  };
  TESSERA_TRY(passes::Optimized optimized, passes::optimize(graph, options.code.passes));
  if (options.search) {
    program::CompileOptions code = options.code;
    code.contraction_dtype = contraction_dtypes(options).front();
    code.passes = {.exact = code.passes.exact, .disabled = code.passes.disabled};
    TESSERA_TRY(SearchedGraph better, search_graph(optimized.graph, code, *options.search));
    optimized.graph = std::move(better.graph);
    result.search = std::move(better.report);
  }
  if (options.keep_graph) {
    program::CompileOptions code = options.code;
    code.contraction_dtype = contraction_dtypes(options).front();
    TESSERA_TRY(result.gains, rewrite_gains(graph, optimized.log, {code, options.store}));
  }
  result.before = inspect(graph);
  result.after = inspect(optimized.graph);
  result.passes = std::move(optimized.log);
  TESSERA_TRY(program::Compiled compiled, compile_as(optimized.graph, options, result));
  if (options.requires_schedules && !compiled.report.illegal_schedules.empty())
    return Diagnostic{.id = "schedule-illegal",
                      .message = fmt::format("the schedule of group {}",
                                             compiled.report.illegal_schedules.front()),
                      .note = fmt::format("{} of the given schedules cannot be applied",
                                          compiled.report.illegal_schedules.size())};
  result.program = std::move(compiled.program);
  result.report = std::move(compiled.report);
  result.passes.insert(result.passes.end(), std::make_move_iterator(result.report.passes.begin()),
                       std::make_move_iterator(result.report.passes.end()));
  result.report.passes.clear();
  name_steps(model.graph, *last, result);
  if (options.keep_graph) result.graph = last;
  result.kernels = std::move(compiled.kernels);
  for (std::size_t i = 0; i < model.output_names.size(); ++i) {
    result.program.values[result.program.outputs[i]].name = model.output_names[i];
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tessera
