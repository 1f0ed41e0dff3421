#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/bindings/array.h"
#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "python/bindings/executable.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/step_profile.h"
#include "tessera/driver/target_selection.h"
#include "tessera/machine/machine.h"
#include "tessera/machine/peak.h"
#include "tessera/runtime/program_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// Keyword arguments of Model.compile.
struct CompileArguments {
  int threads = 1;
  std::string target, precision, numerics;
  double max_error = 1e-2;
  std::map<std::string, std::int64_t> sizes = {};
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  std::set<std::string> disabled = {};
  std::filesystem::path cache = {};
};

ExecutionOptions run_options(int threads, const std::filesystem::path& cache) {
  return {.threads = threads, .memory_limit = machine::host_memory() / 4 * 3, .cache = cache};
}

bool is_static(const InputShapes& shapes) {
  return std::ranges::all_of(shapes, [](const auto& shape) { return shape.has_value(); });
}

std::shared_ptr<Executable> compile(const ModelHandle& handle, const CompileArguments& arguments) {
  CompileModelOptions options;
  value_or_throw(select_target(arguments.target, arguments.precision, options));
  options.code.threads = arguments.threads;
  options.code.passes = {.exact = arguments.numerics == "exact", .disabled = arguments.disabled};
  options.code.cache = arguments.cache;
  options.max_error = arguments.max_error;
  auto executable = std::make_shared<Executable>(handle.model, std::move(options),
                                                 run_options(arguments.threads, arguments.cache));
  // Sizes that are still open are those of the arrays of the first call.
  auto shapes =
      input_shapes(handle.model->graph, {.dims = arguments.sizes, .shapes = arguments.shapes});
  if (!shapes && (!arguments.sizes.empty() || !arguments.shapes.empty()))
    throw DiagnosticError(std::move(shapes).error());
  if (shapes && is_static(*shapes)) value_or_throw(executable->variant_for(*shapes));
  return executable;
}

/// Inputs in the order of the program, by position or by name.
class Arguments {
 public:
  Arguments(const Executable& executable, nb::handle positional, nb::handle named)
      : names_(executable.input_names()) {
    std::vector<nb::handle> objects(names_.size());
    std::size_t count = 0;
    for (const nb::handle object : positional) {
      if (count == names_.size()) fail(fmt::format("{} inputs are given", nb::len(positional)));
      objects[count++] = object;
    }
    for (const auto& [key, object] : nb::cast<nb::dict>(named)) {
      const std::string name = nb::cast<std::string>(key);
      const auto at = std::ranges::find(names_, name) - names_.begin();
      if (static_cast<std::size_t>(at) == names_.size())
        fail(fmt::format("there is no input '{}'", name));
      if (objects[static_cast<std::size_t>(at)].is_valid())
        fail(fmt::format("input '{}' is given twice", name));
      objects[static_cast<std::size_t>(at)] = object;
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (!objects[i].is_valid()) fail(fmt::format("input '{}' is missing", names_[i]));
      try {
        data.push_back(datum_of(objects[i], library));
      } catch (const DiagnosticError& error) {
        throw DiagnosticError(located(error.diagnostic(), {.item = names_[i]}));
      }
    }
  }

  std::vector<Datum> data = {};
  ArrayLibrary library;

 private:
  [[noreturn]] void fail(std::string message) const {
    throw DiagnosticError({.id = "program-argument",
                           .message = std::move(message),
                           .note = fmt::format("inputs are {}", fmt::join(names_, ", "))});
  }

  const std::vector<std::string>& names_;
};

std::vector<Datum> results_of(Executable& executable, const Arguments& arguments) {
  const nb::gil_scoped_release nogil;
  return value_or_throw(executable.run(arguments.data));
}

nb::object call(Executable& executable, nb::args positional, nb::kwargs named) {
  const Arguments arguments(executable, positional, named);
  const std::vector<Datum> results = results_of(executable, arguments);
  if (results.size() == 1) return to_python(results[0], arguments.library);
  nb::list list;
  for (const Datum& result : results) list.append(to_python(result, arguments.library));
  return nb::tuple(list);
}

nb::dict run(Executable& executable, nb::dict inputs,
             const std::optional<std::vector<std::string>>& wanted) {
  const Arguments arguments(executable, nb::tuple(), inputs);
  const std::vector<std::string>& names = executable.output_names();
  for (const std::string& name : wanted.value_or(std::vector<std::string>{}))
    if (std::ranges::find(names, name) == names.end())
      throw DiagnosticError({.id = "program-argument",
                             .message = fmt::format("there is no output '{}'", name),
                             .note = fmt::format("outputs are {}", fmt::join(names, ", "))});
  const std::vector<Datum> results = results_of(executable, arguments);
  nb::dict outputs;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!wanted || std::ranges::find(*wanted, names[i]) != wanted->end())
      outputs[names[i].c_str()] = to_python(results[i], arguments.library);
  return outputs;
}

/// The variant that was used last; a model whose sizes are open has none before its first call.
std::shared_ptr<const Executable::Variant> current(const Executable& executable) {
  const auto variants = executable.variants();
  if (variants.empty())
    throw DiagnosticError({.id = "program-argument",
                           .message = "the program is not compiled yet",
                           .note = "the sizes of its inputs are those of the first call",
                           .help = "call it once, or give compile() the sizes"});
  return variants.front();
}

void save(const Executable& executable, const std::filesystem::path& path) {
  const auto variant = current(executable);
  const nb::gil_scoped_release nogil;
  value_or_throw(runtime::save(variant->pool->program(), path));
}

nb::dict explain(const Executable& executable) {
  const auto variant = current(executable);
  const runtime::Program& program = variant->pool->program();
  nb::dict result;
  result["architecture"] = program.architecture;
  result["arena_bytes"] = program.arena_bytes;
  result["weight_bytes"] = program.weights.size();
  nb::list steps;
  for (std::size_t i = 0; i < program.notes.size(); ++i) {
    nb::dict step;
    step["what"] = program.notes[i].what;
    step["flops"] = program.notes[i].flops;
    step["bytes"] = program.notes[i].bytes;
    if (variant->compiled) step["strategy"] = variant->compiled->report.steps[i].strategy;
    steps.append(step);
  }
  result["steps"] = steps;
  if (!variant->compiled) return result;
  const CompiledModel& compiled = *variant->compiled;
  result["seconds"] = compiled.seconds;
  result["precision"] = std::string(to_string(compiled.contraction_dtype));
  nb::dict interpreted;
  for (const auto& [name, entry] : compiled.report.interpreted)
    interpreted[name.c_str()] = nb::make_tuple(entry.count, entry.why);
  result["interpreted"] = interpreted;
  nb::list passes;
  for (const auto* log : {&compiled.passes, &compiled.report.passes})
    for (const passes::Record& record : *log)
      passes.append(
          nb::make_tuple(record.pass, record.nodes_before, record.nodes_after, record.changes));
  result["passes"] = passes;
  return result;
}

/// Rows of the profile as tuples, and the trace of the last run.
nb::tuple profile(Executable& executable, int runs, nb::args positional, nb::kwargs named) {
  const Arguments arguments(executable, positional, named);
  std::vector<StepTime> rows;
  std::string trace;
  double peak = 0;
  {
    const nb::gil_scoped_release nogil;
    const auto variant = value_or_throw(
        executable.variant_for(executable.model() ? shapes_of(arguments.data) : InputShapes{}));
    const runtime::Program& program = variant->pool->program();
    std::vector<StepSpan> spans;
    int number = 0;
    ExecutionOptions options = executable.run_options();
    options.observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
      spans.push_back({number, step, start, end});
    };
    const auto session =
        value_or_throw(runtime::Session::create(variant->pool->loaded(), session_options(options)));
    for (int i = 0; i < 2; ++i) value_or_throw(session->run(arguments.data));  // to warm up
    spans.clear();
    std::size_t last = 0;
    for (; number < runs; ++number) {
      last = spans.size();
      value_or_throw(session->run(arguments.data));
    }
    peak = program.is_for_gpu() ? 0 : machine::measured_peak() * executable.run_options().threads;
    const CompiledModel* const compiled = variant->compiled ? &*variant->compiled : nullptr;
    rows = step_times(program, spans, compiled, peak);
    trace = trace_json(program, std::span(spans).subspan(last), compiled);
  }
  nb::list steps;
  for (const StepTime& row : rows) {
    nb::dict step;
    step["step"] = row.step;
    step["what"] = row.what;
    step["how"] = row.how;
    step["calls"] = row.calls;
    step["ms"] = row.ms;
    step["share"] = row.share;
    step["gflops"] = row.gflops;
    step["gbytes_per_second"] = row.gbytes;
    step["of_peak"] = row.of_peak;
    steps.append(step);
  }
  return nb::make_tuple(steps, trace);
}

}  // namespace

void bind_programs(nb::module_& module) {
  nb::class_<Executable>(module, "Program")
      .def("__call__", call)
      .def("run", run, "inputs"_a, "outputs"_a.none() = nb::none())
      .def("save", save, "path"_a)
      .def("explain", explain)
      .def("profile", profile)
      .def_prop_ro("input_names", &Executable::input_names)
      .def_prop_ro("output_names", &Executable::output_names);
  module.def(
      "compile",
      [](const ModelHandle& model, int threads, std::string target, std::string precision,
         std::string numerics, double max_error, std::map<std::string, std::int64_t> sizes,
         std::map<std::string, std::vector<std::int64_t>> shapes, std::set<std::string> disabled,
         std::filesystem::path cache) {
        const CompileArguments arguments{.threads = threads,
                                         .target = std::move(target),
                                         .precision = std::move(precision),
                                         .numerics = std::move(numerics),
                                         .max_error = max_error,
                                         .sizes = std::move(sizes),
                                         .shapes = std::move(shapes),
                                         .disabled = std::move(disabled),
                                         .cache = std::move(cache)};
        const nb::gil_scoped_release nogil;
        return compile(model, arguments);
      },
      "model"_a, "threads"_a, "target"_a, "precision"_a, "numerics"_a, "max_error"_a, "sizes"_a,
      "shapes"_a, "disable"_a, "cache"_a);
  module.def(
      "open",
      [](const std::filesystem::path& path, int threads, const std::filesystem::path& cache) {
        const nb::gil_scoped_release nogil;
        return value_or_throw(Executable::open(path, run_options(threads, cache)));
      },
      "path"_a, "threads"_a, "cache"_a);
}

}  // namespace tessera::python
