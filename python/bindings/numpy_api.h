#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>

/// The part of numpy's C API that reads and makes arrays without Python calls. Declared here by its
/// ABI, which numpy 1 and 2 share, so that no headers of numpy are needed.
namespace tessera::python {

/// A dtype (PyArray_Descr); only the beginning.
struct NumpyDtype {
  PyObject head;
  PyTypeObject* scalar;
  char kind, letter, byte_order, flags;
  int number;
};

/// An array (PyArrayObject); only the beginning.
struct NumpyArray {
  PyObject head;
  std::byte* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // in bytes
  PyObject* base;
  NumpyDtype* dtype;
  int flags;

  static constexpr int kDense = 0x1, kAligned = 0x100, kWritable = 0x400;
};

/// Functions of numpy's table, by their fixed positions in it.
struct NumpyApi {
  PyTypeObject* array_type = nullptr;
  PyObject* (*make)(PyTypeObject* type, int ndim, const Py_ssize_t* shape, int number,
                    const Py_ssize_t* strides, void* data, int width, int flags,
                    PyObject* object) = nullptr;
  int (*set_base)(PyObject* array, PyObject* base) = nullptr;  // takes over the reference

  /// The table, if a type is numpy.ndarray and numpy is of a version whose ABI is known.
  static std::optional<NumpyApi> of(PyTypeObject* type) {
    namespace nb = nanobind;
    const auto modules = nb::cast<nb::dict>(nb::module_::import_("sys").attr("modules"));
    for (const char* const name :
         {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
      if (!modules.contains(name)) continue;
      const nb::object capsule = modules[name].attr("_ARRAY_API");
      auto* const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
      if (table == nullptr) throw nb::python_error();
      const unsigned version = reinterpret_cast<unsigned (*)()>(table[0])() >> 24U;
      if ((version != 1 && version != 2) || table[2] != type) return std::nullopt;
      return NumpyApi{.array_type = type,
                      .make = reinterpret_cast<decltype(make)>(table[93]),
                      .set_base = reinterpret_cast<decltype(set_base)>(table[282])};
    }
    return std::nullopt;
  }
};

}  // namespace tessera::python
