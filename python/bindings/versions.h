#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::python {

/// Functions of torch's C++ library that read a tensor without Python calls. They take the address
/// of an at::Tensor, which is one pointer to the tensor's implementation.
struct TorchFunctions {
  std::int64_t (*version)(const void* tensor) = nullptr;  // at::TensorBase::_version()
  std::int32_t (*data_ptr)(const void* tensor, void** address) = nullptr;  // of torch's C interface

  /// None where torch's library is not loaded or lacks one of them.
  static std::optional<TorchFunctions> find();
};

/// Identity, address and version of torch tensors at some positions of a list of arguments. Each
/// write to a tensor increases its version; an assignment to `.data` changes its address alone, and
/// torch.utils.swap_tensors its implementation. Writes that torch does not count (through `.data`,
/// numpy or DLPack) are noticed by samples of the elements.
class TensorVersions {
 public:
  TensorVersions(const nanobind::list& arguments, const std::vector<std::int64_t>& positions);

  /// Whether all tensors are in the state that they were in.
  bool match(PyObject* arguments) const;
  /// Positions of those that are not.
  std::vector<std::int64_t> changes(PyObject* arguments) const;

 private:
  struct State {
    std::uintptr_t implementation = 0, address = 0;
    std::int64_t version = 0;
    bool operator==(const State&) const = default;
  };
  /// Elements of a tensor in host memory, by their distance from its address in bytes.
  struct Samples {
    static constexpr std::size_t kMost = 8;
    std::array<std::int64_t, kMost> offsets = {};
    std::size_t count = 0;
    std::size_t width = 0;  // bytes of an element

    static Samples of(PyObject* tensor);
    /// A combination of the elements as they are.
    std::uint64_t read(std::uintptr_t address) const;
  };
  struct Tensor {
    Py_ssize_t position = 0;
    nanobind::object object = {};  // held, so that its address stays its own
    State state = {};
    Samples samples = {};
    std::uint64_t sampled = 0;
  };

  /// State by Python's attributes.
  State state_by_attributes(PyObject* tensor) const;
  /// State by torch's functions, of an object that has been compared with its attributes.
  State state_by_functions(PyObject* tensor) const;
  bool is_unchanged(const Tensor& tensor, PyObject* arguments) const;
  /// Offset of the implementation in tensor objects, if torch's functions agree with the attributes
  /// of all of them.
  std::optional<std::size_t> implementation_offset() const;

  nanobind::object implementation_name_, version_name_, data_ptr_name_;
  std::vector<Tensor> tensors_;
  std::optional<TorchFunctions> functions_;
  std::size_t offset_ = 0;  // of the implementation in a tensor object, where there are functions
};

}  // namespace tessera::python
