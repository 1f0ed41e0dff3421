#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "python/bindings/dlpack_exchange.h"
#include "python/bindings/numpy_api.h"
#include "tessera/driver/native_model.h"
#include "tessera/support/small_vector.h"

namespace tessera::python {

/// An array where it is, valid while the array is.
struct DirectArray {
  DType dtype = DType::F32;
  std::byte* data = nullptr;
  std::span<const std::int64_t> shape = {};
  std::span<const std::int64_t> strides = {};  // of DLPack alone
  nanobind::dlpack::device device = {};
  bool is_dense = false;
};

/// Memory layout of an array, relative to a value of a program, which is row-major.
struct ArrayLayout {
  /// Axes of the array in the order of those of the value; empty: the same.
  std::vector<std::int64_t> order = {};
  /// Strides of an output whose order does not tell them (of axes of size 1); empty: it does.
  std::vector<std::int64_t> strides = {};

  bool is_plain() const { return order.empty() && strides.empty(); }
};

/// Layouts of inputs and of outputs; none: all are plain.
struct ArrayLayouts {
  std::vector<ArrayLayout> inputs = {}, outputs = {};
};

/// Reads and makes arrays by C functions alone: numpy's table, or DLPack's. It knows the array
/// types that it has met; the GIL guards it.
class DirectArrays {
 public:
  /// A type of arrays, and how to access them.
  struct Library {
    nanobind::object type;  // held, so that its address stays its own
    std::optional<NumpyApi> numpy = {};
    const DlpackExchange* exchange = nullptr;
    nanobind::object is_neg = {};  // name of that method, where the type has it
  };
  using LibraryRef = std::shared_ptr<const Library>;
  /// Library of an object, by its type; null where the type has no C functions. Throws
  /// python_error.
  LibraryRef library_of(PyObject* object);
  /// Null without a Python error where the array cannot be described.
  static std::optional<DirectArray> read(const Library& library, PyObject* object);

 private:
  std::vector<LibraryRef> known_;
};

/// Calls of a program on arrays that it takes as they are: dense, in host memory or all on the GPU
/// of the program, of the dtypes and shapes of a program that is compiled. They need no Python
/// calls and no allocation but for the results. Host memory that is not aligned is copied to
/// staging memory. Whatever else is declined before anything has run, and so is a run that fails:
/// the general way reports why.
class DirectCall {
 public:
  explicit DirectCall(std::shared_ptr<NativeModel> model) : model_(std::move(model)) {}
  DirectCall(DirectCall&&) = default;
  DirectCall& operator=(DirectCall&&) = default;
  DirectCall(const DirectCall&) = delete;
  DirectCall& operator=(const DirectCall&) = delete;
  ~DirectCall() = default;

  NativeModel& model() const { return *model_; }
  const std::shared_ptr<NativeModel>& shared_model() const { return model_; }
  DirectArrays& arrays() { return arrays_; }
  using Results = SmallVector<nanobind::object, 4>;
  /// Results, or nothing where the call is declined; then no Python error is set. `failure` is why
  /// a run failed.
  std::optional<Results> run(std::span<PyObject* const> inputs,
                             std::optional<Diagnostic>* failure = nullptr,
                             const ArrayLayouts& layouts = {});

 private:
  std::shared_ptr<NativeModel> model_;
  DirectArrays arrays_;
};

/// Call of the Python method `call_any` of an object whose direct call was declined; clears the
/// error that it may have left. A new reference, or null with a Python error.
PyObject* general_call(PyObject* self, PyObject* positional, PyObject* named);

}  // namespace tessera::python
