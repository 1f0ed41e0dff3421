#include "python/bindings/versions.h"

#include <dlfcn.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "python/bindings/bind.h"
#include "python/bindings/direct_call.h"
#include "tessera/support/dtype.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

nb::object interned(const char* name) {
  return nb::steal(PyUnicode_InternFromString(name));
}

std::uint64_t number(PyObject* result) {
  const nb::object held = nb::steal(result);
  if (!held.is_valid()) throw nb::python_error();
  const std::uint64_t value = PyLong_AsUnsignedLongLong(held.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

PyObject* argument(PyObject* arguments, Py_ssize_t position) {
  PyObject* const object = PyList_GetItem(arguments, position);
  if (object == nullptr) throw nb::python_error();
  return object;
}

const std::byte* memory_of(PyObject* object) {
  return reinterpret_cast<const std::byte*>(object);
}

std::uintptr_t word_at(const std::byte* memory) {
  std::uintptr_t word = 0;
  std::memcpy(&word, memory, sizeof(word));
  return word;
}

/// Offset of the only word of a tensor object that is the address of its implementation.
std::optional<std::size_t> offset_of(PyObject* tensor, std::uintptr_t implementation) {
  const nb::object size = nb::getattr(nb::handle(tensor).type(), "__basicsize__");
  std::optional<std::size_t> found;
  for (std::size_t at = sizeof(PyObject);
       at + sizeof(std::uintptr_t) <= nb::cast<std::size_t>(size); at += sizeof(std::uintptr_t)) {
    if (word_at(memory_of(tensor) + at) != implementation) continue;
    if (found) return std::nullopt;
    found = at;
  }
  return found;
}

}  // namespace

std::optional<TorchFunctions> TorchFunctions::find() {
  void* const library = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  TorchFunctions functions;
  functions.version = reinterpret_cast<decltype(functions.version)>(
      ::dlsym(library, "_ZNK2at10TensorBase8_versionEv"));
  functions.data_ptr =
      reinterpret_cast<decltype(functions.data_ptr)>(::dlsym(library, "aoti_torch_get_data_ptr"));
  ::dlclose(library);  // torch keeps it
  if (functions.version == nullptr || functions.data_ptr == nullptr) return std::nullopt;
  return functions;
}

TensorVersions::Samples TensorVersions::Samples::of(PyObject* tensor) {
  DirectArrays arrays;
  const DirectArrays::LibraryRef library = arrays.library_of(tensor);
  if (library == nullptr || library->exchange == nullptr) return {};
  const auto array = DirectArrays::read(*library, tensor);
  if (!array || array->device.device_type != nb::device::cpu::value) return {};
  Samples samples{.width = static_cast<std::size_t>(byte_width(array->dtype))};
  std::int64_t elements = 1;
  for (const std::int64_t size : array->shape) elements *= size;
  samples.count = static_cast<std::size_t>(std::min<std::int64_t>(elements, kMost));
  constexpr double kGoldenRatio = 0.6180339887498949;  // spreads over every axis
  for (std::size_t i = 0; i < samples.count; ++i) {
    const double share = static_cast<double>(i) * kGoldenRatio;
    std::int64_t element =
        elements <= static_cast<std::int64_t>(kMost)
            ? static_cast<std::int64_t>(i)
            : static_cast<std::int64_t>(
                  (share - static_cast<double>(static_cast<std::int64_t>(share))) *
                  static_cast<double>(elements));
    for (std::size_t axis = array->shape.size(); axis-- > 0;) {
      samples.offsets[i] += element % array->shape[axis] * array->strides[axis] *
                            static_cast<std::int64_t>(samples.width);
      element /= array->shape[axis];
    }
  }
  return samples;
}

std::uint64_t TensorVersions::Samples::read(std::uintptr_t address) const {
  std::uint64_t combined = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t element = 0;
    std::memcpy(&element,
                reinterpret_cast<const std::byte*>(address) +
                    offsets[i],  // NOLINT(performance-no-int-to-ptr): torch's address
                width);
    combined = (combined << 7 | combined >> 57) ^ element * 0x9e3779b97f4a7c15;
  }
  return combined;
}

TensorVersions::TensorVersions(const nb::list& arguments,
                               const std::vector<std::int64_t>& positions)
    : implementation_name_(interned("_cdata")),
      version_name_(interned("_version")),
      data_ptr_name_(interned("data_ptr")) {
  for (const std::int64_t position : positions) {
    Tensor tensor{.position = static_cast<Py_ssize_t>(position)};
    tensor.object = nb::borrow(argument(arguments.ptr(), tensor.position));
    tensor.state = state_by_attributes(tensor.object.ptr());
    tensor.samples = Samples::of(tensor.object.ptr());
    tensor.sampled = tensor.samples.read(tensor.state.address);
    tensors_.push_back(std::move(tensor));
  }
  functions_ = TorchFunctions::find();
  if (const auto offset = functions_ ? implementation_offset() : std::nullopt)
    offset_ = *offset;
  else
    functions_.reset();
}

std::optional<std::size_t> TensorVersions::implementation_offset() const {
  std::optional<std::size_t> common;
  for (const Tensor& tensor : tensors_) {
    const auto offset = offset_of(tensor.object.ptr(), tensor.state.implementation);
    if (!offset || (common && common != offset)) return std::nullopt;
    common = offset;
    void* address = nullptr;
    const std::uintptr_t& implementation = tensor.state.implementation;
    if (functions_->data_ptr(&implementation, &address) != 0 ||
        reinterpret_cast<std::uintptr_t>(address) != tensor.state.address ||
        functions_->version(&implementation) != tensor.state.version)
      return std::nullopt;
  }
  return common;
}

TensorVersions::State TensorVersions::state_by_attributes(PyObject* tensor) const {
  return {
      .implementation = number(PyObject_GetAttr(tensor, implementation_name_.ptr())),
      .address = number(PyObject_CallMethodObjArgs(tensor, data_ptr_name_.ptr(), nullptr)),
      .version = static_cast<std::int64_t>(number(PyObject_GetAttr(tensor, version_name_.ptr())))};
}

TensorVersions::State TensorVersions::state_by_functions(PyObject* tensor) const {
  State state{.implementation = word_at(memory_of(tensor) + offset_)};
  void* address = nullptr;
  if (functions_->data_ptr(&state.implementation, &address) != 0) return {};
  state.address = reinterpret_cast<std::uintptr_t>(address);
  state.version = functions_->version(&state.implementation);
  return state;
}

bool TensorVersions::is_unchanged(const Tensor& tensor, PyObject* arguments) const {
  PyObject* const object = argument(arguments, tensor.position);
  if (object != tensor.object.ptr()) return false;
  const State state = functions_ ? state_by_functions(object) : state_by_attributes(object);
  return state == tensor.state && tensor.samples.read(state.address) == tensor.sampled;
}

bool TensorVersions::match(PyObject* arguments) const {
  return std::ranges::all_of(tensors_,
                             [&](const Tensor& tensor) { return is_unchanged(tensor, arguments); });
}

std::vector<std::int64_t> TensorVersions::changes(PyObject* arguments) const {
  std::vector<std::int64_t> changed;
  for (const Tensor& tensor : tensors_)
    if (!is_unchanged(tensor, arguments)) changed.push_back(tensor.position);
  return changed;
}

void bind_versions(nb::module_& module) {
  nb::class_<TensorVersions>(module, "TensorVersions")
      .def(nb::init<const nb::list&, const std::vector<std::int64_t>&>(), "arguments"_a,
           "positions"_a)
      .def(
          "match",
          [](const TensorVersions& self, const nb::list& arguments) {
            return self.match(arguments.ptr());
          },
          "arguments"_a)
      .def(
          "changes",
          [](const TensorVersions& self, const nb::list& arguments) {
            return self.changes(arguments.ptr());
          },
          "arguments"_a);
}

}  // namespace tessera::python
