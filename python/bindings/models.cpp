#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/inspect.h"
#include "tessera/ir/text.h"
#include "tessera/passes/pipeline.h"
#include "tessera/passes/portable.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A declared size: an int, or the text of a symbolic one.
nb::object size_of(const Dim& size) {
  if (const auto constant = size.constant()) return nb::int_(*constant);
  return nb::cast(size.to_string());
}

/// (name, dtype, shape) of a value; the shape is None where nothing is declared.
nb::tuple described(const std::string& name, const Type& type) {
  if (!type.is_ranked_tensor()) return nb::make_tuple(name, to_string(type), nb::none());
  nb::list sizes;
  for (const Dim& size : *type.shape) sizes.append(size_of(size));
  return nb::make_tuple(name, std::string(to_string(type.dtype)), nb::tuple(sizes));
}

nb::list inputs_of(const ModelHandle& handle) {
  const Graph& graph = handle.model->graph;
  nb::list values;
  for (const ValueId id : graph.inputs())
    values.append(described(std::string(graph.name(id)), graph.type(id)));
  return values;
}

nb::list outputs_of(const ModelHandle& handle) {
  const Graph& graph = handle.model->graph;
  nb::list values;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    values.append(described(handle.model->output_names[i], graph.type(graph.outputs()[i])));
  return values;
}

ModelHandle load(const std::filesystem::path& path) {
  const nb::gil_scoped_release nogil;
  auto model = load_model(path);
  if (!model) throw DiagnosticError(located(std::move(model).error(), {.file = path.string()}));
  return {std::make_shared<const Model>(*std::move(model))};
}

ModelHandle parse(const std::string& text) {
  Model model;
  model.graph = value_or_throw(parse_graph(text));
  for (const ValueId id : model.graph.outputs())
    model.output_names.emplace_back(model.graph.name(id));
  return {std::make_shared<const Model>(std::move(model))};
}

void save(const ModelHandle& handle, const std::filesystem::path& path) {
  const nb::gil_scoped_release nogil;
  Model model = *handle.model;
  if (!is_text_form(path)) model.graph = value_or_throw(passes::portable(model.graph));
  value_or_throw(save_model(model, path));
}

ModelHandle optimize(const ModelHandle& handle, const std::string& numerics,
                     const std::set<std::string>& disabled) {
  const nb::gil_scoped_release nogil;
  Model model = *handle.model;
  model.graph = value_or_throw(passes::optimize(model.graph, {.exact = numerics == "exact",
                                                              .disabled = disabled}))
                    .graph;
  return {std::make_shared<const Model>(std::move(model))};
}

nb::dict inspected(const ModelHandle& handle) {
  const Inventory all = inspect(handle.model->graph);
  nb::dict result;
  result["nodes"] = all.nodes;
  result["parameters"] = all.parameters;
  result["parameter_bytes"] = all.parameter_bytes;
  result["multiply_adds"] = all.multiply_adds.to_string();
  nb::dict operators;
  for (const auto& [name, count] : all.operators) operators[name.c_str()] = count;
  result["operators"] = operators;
  return result;
}

nb::list pass_names() {
  nb::list passes;
  for (const passes::PassInfo& pass : passes::pass_list())
    passes.append(nb::make_tuple(std::string(pass.name), std::string(to_string(pass.stage)),
                                 std::string(to_string(pass.numerics)),
                                 std::string(to_string(pass.target)), std::string(pass.summary)));
  return passes;
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<ModelHandle>(module, "Model")
      .def_prop_ro("inputs", inputs_of)
      .def_prop_ro("outputs", outputs_of)
      .def("save", save, "path"_a)
      .def("optimize", optimize, "numerics"_a, "disable"_a)
      .def("inspect", inspected)
      .def("text", [](const ModelHandle& handle) {
        return to_text(handle.model->graph, {.inline_limit = 16});
      });
  module.def("load", load, "path"_a);
  module.def("parse", parse, "text"_a);
  module.def("passes", pass_names);
}

}  // namespace tessera::python
