#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "python/bindings/bind.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// Addresses and versions of torch tensors at some positions of a list of arguments. Each write to
/// a tensor increases its version; an assignment to `.data` changes its address alone.
class TensorVersions {
 public:
  TensorVersions(const nb::list& arguments, std::vector<std::int64_t> positions)
      : positions_(std::move(positions)),
        version_(nb::steal(PyUnicode_InternFromString("_version"))),
        data_ptr_(nb::steal(PyUnicode_InternFromString("data_ptr"))) {
    for (const std::int64_t position : positions_)
      states_.push_back(state_of(argument(arguments.ptr(), position)));
  }

  /// Whether all tensors have the addresses and versions that they had.
  bool match(const nb::list& arguments) const {
    for (std::size_t i = 0; i < positions_.size(); ++i)
      if (state_of(argument(arguments.ptr(), positions_[i])) != states_[i]) return false;
    return true;
  }

  /// Positions of those that have not.
  std::vector<std::int64_t> changes(const nb::list& arguments) const {
    std::vector<std::int64_t> changed;
    for (std::size_t i = 0; i < positions_.size(); ++i)
      if (state_of(argument(arguments.ptr(), positions_[i])) != states_[i])
        changed.push_back(positions_[i]);
    return changed;
  }

 private:
  struct State {
    unsigned long long address = 0, version = 0;
    bool operator==(const State&) const = default;
  };

  static PyObject* argument(PyObject* arguments, std::int64_t position) {
    PyObject* const object = PyList_GetItem(arguments, static_cast<Py_ssize_t>(position));
    if (object == nullptr) throw nb::python_error();
    return object;
  }

  static unsigned long long number(PyObject* result) {
    const nb::object held = nb::steal(result);
    if (!held.is_valid()) throw nb::python_error();
    return PyLong_AsUnsignedLongLong(held.ptr());
  }

  State state_of(PyObject* tensor) const {
    return {.address = number(PyObject_CallMethodObjArgs(tensor, data_ptr_.ptr(), nullptr)),
            .version = number(PyObject_GetAttr(tensor, version_.ptr()))};
  }

  std::vector<std::int64_t> positions_;
  nb::object version_, data_ptr_;  // names
  std::vector<State> states_;
};

}  // namespace

void bind_versions(nb::module_& module) {
  nb::class_<TensorVersions>(module, "TensorVersions")
      .def(nb::init<const nb::list&, std::vector<std::int64_t>>(), "arguments"_a, "positions"_a)
      .def("match", &TensorVersions::match, "arguments"_a)
      .def("changes", &TensorVersions::changes, "arguments"_a);
}

}  // namespace tessera::python
