#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/direct_call.h"
#include "python/bindings/versions.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

using Positions = std::vector<std::pair<std::size_t, std::size_t>>;

/// One program that computes a graph from arguments as they are.
struct GraphProgram {
  nb::object program;
  nb::object weights;               // TensorVersions of the arguments that it has as constants
  std::vector<std::size_t> inputs;  // positions among the arguments
  ArrayLayouts layouts;
  nb::list results;            // those that are neither computed nor arguments are in their places
  Positions computed, passed;  // (place among the results, output of the program or argument)
};

/// A captured graph as AOT Autograd calls it: with a list of arguments, which it empties. Calls
/// that one program computes need no Python code; those of changed weights, of other arguments and
/// of graphs without such a program go to the method `call_any` of the derived class.
class GraphCall {
 public:
  void set_program(GraphProgram program) {
    program_ = std::make_shared<const GraphProgram>(std::move(program));
  }
  void clear_program() { program_.reset(); }
  bool has_program() const { return program_ != nullptr; }

  /// Results, or nothing where the call is declined. May throw python_error.
  nb::object run(PyObject* arguments) const {
    const std::shared_ptr<const GraphProgram> graph = program_;  // held while the GIL is released
    if (graph == nullptr || PyList_Check(arguments) == 0) return {};
    if (!graph->weights.is_none() &&
        !nb::inst_ptr<TensorVersions>(graph->weights)->match(arguments))
      return {};
    SmallVector<PyObject*, 8> inputs;
    for (const std::size_t position : graph->inputs) {
      inputs.push_back(PyList_GetItem(arguments, static_cast<Py_ssize_t>(position)));
      if (inputs.back() == nullptr) throw nb::python_error();
    }
    auto outputs = nb::inst_ptr<DirectCall>(graph->program)
                       ->run({inputs.begin(), inputs.size()}, nullptr, graph->layouts);
    if (!outputs) return {};
    const Py_ssize_t count = PyList_Size(graph->results.ptr());
    nb::object results = nb::steal(PyList_GetSlice(graph->results.ptr(), 0, count));
    if (!results.is_valid()) throw nb::python_error();
    const auto put = [&](std::size_t place, nb::object value) {
      if (PyList_SetItem(results.ptr(), static_cast<Py_ssize_t>(place), value.release().ptr()) != 0)
        throw nb::python_error();
    };
    for (const auto& [place, output] : graph->computed) put(place, (*outputs)[output]);
    for (const auto& [place, position] : graph->passed)
      put(place, nb::borrow(PyList_GetItem(arguments, static_cast<Py_ssize_t>(position))));
    if (PyList_SetSlice(arguments, 0, PyList_Size(arguments), nullptr) != 0)
      throw nb::python_error();
    return results;
  }

 private:
  std::shared_ptr<const GraphProgram> program_;
};

PyObject* call_slot(PyObject* self, PyObject* positional, PyObject* named) noexcept {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "the graph is not initialized");
    return nullptr;
  }
  try {
    if (PyTuple_Size(positional) == 1 && named == nullptr)
      if (nb::object results = nb::inst_ptr<GraphCall>(self)->run(PyTuple_GetItem(positional, 0));
          results.is_valid())
        return results.release().ptr();
  } catch (const nb::python_error&) {  // the general way meets it again
  } catch (const std::exception&) {
  }
  return general_call(self, positional, named);
}

}  // namespace

void bind_graph_calls(nb::module_& module) {
  nb::class_<ArrayLayout>(module, "ArrayLayout")
      .def(nb::init<std::vector<std::int64_t>, std::vector<std::int64_t>>(), "order"_a,
           "strides"_a);
  const std::array slots = {PyType_Slot{Py_tp_call, reinterpret_cast<void*>(call_slot)},
                            PyType_Slot{0, nullptr}};
  nb::class_<GraphCall>(module, "GraphCall", nb::type_slots(slots.data()))
      .def(nb::init<>())
      .def(
          "set_program",
          [](GraphCall& self, const nb::typed<nb::object, DirectCall>& program,
             const nb::typed<nb::object, TensorVersions>& weights, std::vector<std::size_t> inputs,
             std::vector<ArrayLayout> input_layouts, std::vector<ArrayLayout> output_layouts,
             nb::list results, Positions computed, Positions passed) {
            self.set_program({.program = program,
                              .weights = weights,
                              .inputs = std::move(inputs),
                              .layouts = {.inputs = std::move(input_layouts),
                                          .outputs = std::move(output_layouts)},
                              .results = std::move(results),
                              .computed = std::move(computed),
                              .passed = std::move(passed)});
          },
          "program"_a, "weights"_a.none(), "inputs"_a, "input_layouts"_a, "output_layouts"_a,
          "results"_a, "computed"_a, "passed"_a)
      .def("clear_program", &GraphCall::clear_program)
      .def_prop_ro("has_program", &GraphCall::has_program);
}

}  // namespace tessera::python
