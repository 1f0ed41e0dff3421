#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

/// The C table of DLPack 1.3 by which a library reads and makes its arrays without Python calls:
/// `__dlpack_c_exchange_api__` of the array type, a capsule. torch has it from 2.10 on.
namespace tessera::python {

struct DlpackVersion {
  std::uint32_t major = 1, minor = 3;
};

/// An array that is handed over, with the function that frees it.
struct DlpackManagedTensor {
  DlpackVersion version = {};
  void* context = nullptr;
  void (*deleter)(DlpackManagedTensor* self) = nullptr;
  std::uint64_t flags = 0;
  nanobind::dlpack::dltensor tensor = {};
};

struct DlpackExchange {
  DlpackVersion version;
  const DlpackExchange* previous;
  int (*allocate)(nanobind::dlpack::dltensor* prototype, DlpackManagedTensor** result,
                  void* error_context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*from_object)(PyObject* object, DlpackManagedTensor** result);
  int (*to_object)(DlpackManagedTensor* tensor, PyObject** result);
  int (*view_of_object)(PyObject* object, nanobind::dlpack::dltensor* result);  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

/// The table of an array's type, or null.
inline const DlpackExchange* exchange_of(nanobind::handle object) {
  PyObject* const capsule =
      PyObject_GetAttrString(object.type().ptr(), "__dlpack_c_exchange_api__");
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nanobind::object held = nanobind::steal(capsule);
  if (PyCapsule_IsValid(capsule, "dlpack_exchange_api") == 0) return nullptr;
  const auto* const table =
      static_cast<const DlpackExchange*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  return table->version.major == 1 ? table : nullptr;
}

/// Whether an array is a view whose elements are the negatives of its memory (torch.Tensor.is_neg),
/// which the table does not say.
inline bool is_negated(nanobind::handle object) {
  PyObject* const answer = PyObject_CallMethod(object.ptr(), "is_neg", nullptr);
  if (answer == nullptr) PyErr_Clear();  // of a library that has no such views
  const bool negated = answer == Py_True;
  Py_XDECREF(answer);
  return negated;
}

}  // namespace tessera::python
