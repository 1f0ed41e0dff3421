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
#include <array>

#include "python/bindings/array.h"
#include "python/bindings/bind.h"
#include "python/bindings/direct_call.h"
#include "python/bindings/error.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/program_signature.h"
#include "tessera/driver/step_profile.h"
#include "tessera/driver/target_selection.h"
#include "tessera/machine/machine.h"
#include "tessera/machine/peak.h"
#include "tessera/report/page.h"
#include "tessera/runtime/arguments.h"
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

std::shared_ptr<NativeModel> compile(const ModelHandle& handle, const CompileArguments& arguments) {
  CompileModelOptions options;
  value_or_throw(select_target(arguments.target, arguments.precision, options));
  options.code.threads = arguments.threads;
  options.code.passes = {.exact = arguments.numerics == "exact", .disabled = arguments.disabled};
  options.code.cache = arguments.cache;
  if (!arguments.cache.empty()) options.program_cache = arguments.cache / "programs";
  options.max_error = arguments.max_error;
  auto model = std::make_shared<NativeModel>(handle.model, std::move(options),
                                             run_options(arguments.threads, arguments.cache));
  // Sizes that are still open are those of the arrays of the first call.
  auto shapes =
      input_shapes(handle.model->graph, {.dims = arguments.sizes, .shapes = arguments.shapes});
  if (!shapes && (!arguments.sizes.empty() || !arguments.shapes.empty()))
    throw DiagnosticError(std::move(shapes).error());
  if (shapes && is_static(*shapes)) value_or_throw(model->program_for(*shapes));
  return model;
}

/// Arguments in the order of the program's inputs, by position or by name.
std::vector<nb::object> ordered(const NativeModel& model, nb::handle positional, nb::handle named) {
  const std::vector<std::string>& names = model.input_names();
  const auto fail = [&](std::string message) {
    throw DiagnosticError({.id = "program-argument",
                           .message = std::move(message),
                           .note = fmt::format("inputs are {}", fmt::join(names, ", "))});
  };
  std::vector<nb::object> objects(names.size());
  std::size_t count = 0;
  for (const nb::handle object : positional) {
    if (count == names.size()) fail(fmt::format("{} inputs are given", nb::len(positional)));
    objects[count++] = nb::borrow(object);
  }
  for (const auto& [key, object] : nb::cast<nb::dict>(named)) {
    const std::string name = nb::cast<std::string>(key);
    const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (at == names.size()) fail(fmt::format("there is no input '{}'", name));
    if (objects[at].is_valid()) fail(fmt::format("input '{}' is given twice", name));
    objects[at] = nb::borrow(object);
  }
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (!objects[i].is_valid()) fail(fmt::format("input '{}' is missing", names[i]));
  return objects;
}

/// Arguments as data, and the library whose arrays they are.
struct HostArguments {
  HostArguments(const NativeModel& model, std::span<const nb::object> objects) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      try {
        data.push_back(datum_of(objects[i], library));
      } catch (const DiagnosticError& error) {
        throw DiagnosticError(located(error.diagnostic(), {.item = model.input_names()[i]}));
      }
    }
  }

  std::vector<Datum> data = {};
  ArrayLibrary library = {};
};

std::vector<nb::object> run_on_host(NativeModel& model, std::span<const nb::object> objects) {
  const HostArguments arguments(model, objects);
  std::vector<Datum> results;
  {
    const nb::gil_scoped_release nogil;
    results = value_or_throw(model.run(arguments.data));
  }
  std::vector<nb::object> arrays;
  for (const Datum& result : results) arrays.push_back(to_python(result, arguments.library));
  return arrays;
}

/// The array that an object is, if it is one on a GPU.
std::optional<DirectArray> gpu_array(DirectCall& program, nb::handle object) {
  const DirectArrays::LibraryRef library = program.arrays().library_of(object.ptr());
  if (library == nullptr) return std::nullopt;
  auto array = DirectArrays::read(*library, object.ptr());
  if (array && array->device.device_type != nb::device::cuda::value) array.reset();
  return array;
}

/// Runs on arrays of torch on a GPU that a direct call declined: those of sizes that are not
/// compiled yet, strided or unaligned ones, which torch copies on the GPU, and mistakes. Programs
/// whose arguments have no static size take them through host memory.
std::vector<nb::object> run_on_gpu(DirectCall& program, std::vector<nb::object> objects) {
  NativeModel& model = program.model();
  InputShapes shapes;
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto array = gpu_array(program, objects[i]);
    const auto fail = [&](std::string message, std::string help) {
      throw DiagnosticError({.id = "program-argument",
                             .where = {.item = model.input_names()[i]},
                             .message = std::move(message),
                             .help = std::move(help)});
    };
    if (!array) fail("it is in host memory, and other inputs are on a GPU", "copy it with .cuda()");
    if (!model.is_for_gpu())
      fail("it is on a GPU, and the program is for a CPU",
           "compile the model with target=\"cuda\", or copy the array with .cpu()");
    if (!array->is_dense || !runtime::is_aligned(array->data))
      objects[i] = objects[i].attr("clone")(
          "memory_format"_a = nb::module_::import_("torch").attr("contiguous_format"));
    shapes.emplace_back(std::vector(array->shape.begin(), array->shape.end()));
    dtypes.push_back(array->dtype);
  }
  std::shared_ptr<const NativeModel::Entry> entry;
  {
    const nb::gil_scoped_release nogil;
    entry = value_or_throw(model.program_for_arrays(shapes));
  }
  if (!entry->runnable->has_static_arguments()) {
    const nb::object device = objects.at(0).attr("device");
    for (nb::object& object : objects) object = object.attr("cpu")();
    std::vector<nb::object> results = run_on_host(model, objects);
    for (nb::object& result : results)
      if (nb::hasattr(result, "to")) result = result.attr("to")(device);
    return results;
  }
  const runtime::Program& compiled = entry->program();
  for (std::size_t i = 0; i < objects.size(); ++i)
    value_or_throw(runtime::check_type(dtypes[i], *shapes[i], compiled.values[compiled.inputs[i]]));
  std::vector<PyObject*> inputs;
  for (const nb::object& object : objects) inputs.push_back(object.ptr());
  std::optional<Diagnostic> failure;
  auto results = program.run(inputs, &failure);
  if (!results)
    throw DiagnosticError(failure.value_or(
        Diagnostic{.id = "program-argument",
                   .message = "the arrays cannot be used on the GPU",
                   .note = "inputs are on one GPU, and torch has memory for the results"}));
  return {results->begin(), results->end()};
}

/// Results of a call that a direct call declined.
std::vector<nb::object> results_of(DirectCall& program, std::vector<nb::object> objects) {
  for (nb::object& object : objects)
    if (exchange_of(object) != nullptr && is_negated(object)) object = object.attr("resolve_neg")();
  const bool is_on_gpu = std::ranges::any_of(
      objects, [&](const nb::object& object) { return gpu_array(program, object).has_value(); });
  return is_on_gpu ? run_on_gpu(program, std::move(objects))
                   : run_on_host(program.model(), objects);
}

nb::object call(DirectCall& program, nb::args positional, nb::kwargs named) {
  std::vector<nb::object> results =
      results_of(program, ordered(program.model(), positional, named));
  if (results.size() == 1) return std::move(results[0]);
  nb::list list;
  for (const nb::object& result : results) list.append(result);
  return nb::tuple(list);
}

/// __call__ as a slot of the type: a direct call, or else the method `call_any`, which also turns
/// diagnostics into exceptions.
PyObject* call_slot(PyObject* self, PyObject* positional, PyObject* named) noexcept {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "the program is not initialized");
    return nullptr;
  }
  try {
    if (named == nullptr || PyDict_Size(named) == 0) {
      SmallVector<PyObject*, 8> inputs;
      const Py_ssize_t count = PyTuple_Size(positional);
      for (Py_ssize_t i = 0; i < count; ++i) inputs.push_back(PyTuple_GetItem(positional, i));
      auto results = nb::inst_ptr<DirectCall>(self)->run({inputs.begin(), inputs.size()});
      if (results && results->size() == 1) return (*results)[0].release().ptr();
      if (results) {
        PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(results->size()));
        for (std::size_t i = 0; tuple != nullptr && i < results->size(); ++i)
          PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), (*results)[i].release().ptr());
        return tuple;
      }
    }
  } catch (const nb::python_error&) {  // the general way meets it again
  } catch (const std::exception&) {
  }
  return general_call(self, positional, named);
}

nb::dict run(DirectCall& program, nb::dict inputs,
             const std::optional<std::vector<std::string>>& wanted) {
  const std::vector<std::string>& names = program.model().output_names();
  for (const std::string& name : wanted.value_or(std::vector<std::string>{}))
    if (std::ranges::find(names, name) == names.end())
      throw DiagnosticError({.id = "program-argument",
                             .message = fmt::format("there is no output '{}'", name),
                             .note = fmt::format("outputs are {}", fmt::join(names, ", "))});
  const std::vector<nb::object> results =
      results_of(program, ordered(program.model(), nb::tuple(), inputs));
  nb::dict outputs;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!wanted || std::ranges::find(*wanted, names[i]) != wanted->end())
      outputs[names[i].c_str()] = results[i];
  return outputs;
}

/// The program that was used last; a model whose sizes are open has none before its first call.
std::shared_ptr<const NativeModel::Entry> current(const DirectCall& program) {
  const auto programs = program.model().programs();
  if (programs.empty())
    throw DiagnosticError({.id = "program-argument",
                           .message = "the program is not compiled yet",
                           .note = "the sizes of its inputs are those of the first call",
                           .help = "call it once, or give compile() the sizes"});
  return programs.front();
}

void save(const DirectCall& program, const std::filesystem::path& path) {
  const auto entry = current(program);
  const nb::gil_scoped_release nogil;
  value_or_throw(runtime::save(entry->program(), path));
}

/// Compilation of a program that came from the cache, for its report.
CompiledModel recompiled(const NativeModel& model, const NativeModel::Entry& entry) {
  const nb::gil_scoped_release nogil;
  return value_or_throw(compile_model(*model.model(), entry.shapes, model.compile_options()));
}

nb::dict explain(const DirectCall& handle) {
  const auto entry = current(handle);
  const runtime::Program& program = entry->program();
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
    step["strategy"] = program.notes[i].strategy;
    steps.append(step);
  }
  result["steps"] = steps;
  if (handle.model().is_saved_program()) return result;
  std::optional<CompiledModel> again;
  if (!entry->compiled) again = recompiled(handle.model(), *entry);
  const CompiledModel& compiled = again ? *again : *entry->compiled;
  result["seconds"] = compiled.seconds;
  result["precision"] = std::string(to_string(compiled.contraction_dtype));
  nb::dict interpreted;
  for (const auto& [name, entry] : compiled.report.interpreted)
    interpreted[name.c_str()] = nb::make_tuple(entry.count, entry.why);
  result["interpreted"] = interpreted;
  nb::list passes;
  for (const auto* log : {&compiled.passes, &compiled.report.passes})
    for (const passes::Record& record : *log) {
      std::vector<std::string> changes;
      for (const passes::Change& change : record.changes) changes.push_back(change.what);
      passes.append(nb::make_tuple(record.pass, record.nodes_before, record.nodes_after, changes));
    }
  result["passes"] = passes;
  return result;
}

/// Rows of the profile as tuples, and the trace of the last run.
nb::tuple profile(DirectCall& handle, int runs, nb::args positional, nb::kwargs named) {
  NativeModel& model = handle.model();
  const HostArguments arguments(model, ordered(model, positional, named));
  StepProfile profile;
  std::string trace;
  {
    const nb::gil_scoped_release nogil;
    const auto entry = value_or_throw(model.program_for_arrays(shapes_of(arguments.data)));
    const runtime::Program& program = entry->program();
    const ProfiledRuns measured =
        value_or_throw(profile_runs(*entry->runnable, arguments.data, model.run_options(), runs));
    const double peak =
        program.is_for_gpu() ? 0 : machine::measured_peak() * model.run_options().threads;
    profile = step_profile(program, measured, peak);
    trace = trace_json(program, profile.last_run);
  }
  nb::list steps;
  for (const StepTime& row : profile.steps) {
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

/// Report of the program that was used last, on these inputs or on sines: the page and the event
/// log. The model is compiled again, since a program keeps no graph.
nb::tuple report(DirectCall& handle, int runs, nb::args positional, nb::kwargs named) {
  NativeModel& model = handle.model();
  std::optional<HostArguments> arguments;
  if (nb::len(positional) > 0 || nb::len(named) > 0)
    arguments.emplace(model, ordered(model, positional, named));
  const auto used = arguments ? nullptr : current(handle);
  const nb::gil_scoped_release nogil;
  const std::vector<Datum> inputs =
      arguments
          ? arguments->data
          : value_or_throw(make_program_inputs(used->program(), {.fill = InputOptions::Fill::Sin}));
  const auto entry = value_or_throw(model.program_for_arrays(shapes_of(inputs)));
  const runtime::Program& program = entry->program();
  std::optional<CompiledModel> compiled;
  CompileModelOptions options = model.compile_options();
  options.keep_graph = true;
  if (!model.is_saved_program())
    compiled = value_or_throw(compile_model(*model.model(), entry->shapes, options));
  const ProfiledRuns measured =
      value_or_throw(profile_runs(*entry->runnable, inputs, model.run_options(), runs));
  const StepProfile profile = step_profile(program, measured, 0);
  report::EventLog log("report");
  value_or_throw(
      add_model_records(log, {.model = compiled ? *model.model() : signature_model(program),
                              .file = compiled ? model.model()->graph.name() : program.name,
                              .program = compiled ? compiled->program : program,
                              .threads = model.run_options().threads,
                              .compiled = compiled ? &*compiled : nullptr,
                              .options = compiled ? &options : nullptr,
                              .profile = &profile}));
  const std::string page = report::page(log), events = report::to_json_lines(log);
  const nb::gil_scoped_acquire gil;
  return nb::make_tuple(page, events);
}

}  // namespace

void bind_programs(nb::module_& module) {
  const std::array slots = {PyType_Slot{Py_tp_call, reinterpret_cast<void*>(call_slot)},
                            PyType_Slot{0, nullptr}};
  nb::class_<DirectCall>(module, "Program", nb::type_slots(slots.data()))
      .def(
          "__init__",
          [](DirectCall* self, const DirectCall& other) {
            new (self) DirectCall(other.shared_model());
          },
          "program"_a)
      .def("call_any", call)
      .def("run", run, "inputs"_a, "outputs"_a.none() = nb::none())
      .def("save", save, "path"_a)
      .def("explain", explain)
      .def("profile", profile, "runs"_a, "inputs"_a, "named"_a)
      .def("report", report, "runs"_a, "inputs"_a, "named"_a)
      .def_prop_ro("input_names",
                   [](const DirectCall& program) { return program.model().input_names(); })
      .def_prop_ro("output_names",
                   [](const DirectCall& program) { return program.model().output_names(); });
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
        return DirectCall(compile(model, arguments));
      },
      "model"_a, "threads"_a, "target"_a, "precision"_a, "numerics"_a, "max_error"_a, "sizes"_a,
      "shapes"_a, "disable"_a, "cache"_a);
  module.def(
      "open",
      [](const std::filesystem::path& path, int threads, const std::filesystem::path& cache) {
        const nb::gil_scoped_release nogil;
        return DirectCall(value_or_throw(
            NativeModel::load(value_or_throw(runtime::load(path)), run_options(threads, cache))));
      },
      "path"_a, "threads"_a, "cache"_a);
}

}  // namespace tessera::python
