#include "python/bindings/direct_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "python/bindings/element_type.h"
#include "tessera/runtime/arguments.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

bool is_dense(const nb::dlpack::dltensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  bool dense = true;
  for (std::int32_t axis = tensor.ndim; axis-- > 0;) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) dense = false;
    expected *= tensor.shape[axis];
  }
  return dense;
}

std::optional<DirectArray> read_numpy(PyObject* object) {
  const auto* const array = reinterpret_cast<const NumpyArray*>(object);
  const NumpyDtype& dtype = *array->dtype;
  constexpr int kLongLong = 9, kUnsignedLongLong = 10;  // of the widths of long
  const int number = dtype.number == kLongLong || dtype.number == kUnsignedLongLong
                         ? dtype.number - 2
                         : dtype.number;
  const auto* const type = std::ranges::find(kElementTypes, number, &ElementType::numpy_number);
  if (type == kElementTypes.end() || number < 0 || dtype.byte_order == '>') return std::nullopt;
  constexpr int kUsable = NumpyArray::kDense | NumpyArray::kAligned;
  return DirectArray{.dtype = type->dtype,
                     .data = array->data,
                     .shape = {array->shape, static_cast<std::size_t>(array->ndim)},
                     .device = {nb::device::cpu::value, 0},
                     .is_dense = (array->flags & kUsable) == kUsable};
}

std::optional<DirectArray> read_exchange(const DirectArrays::Library& library, PyObject* object) {
  nb::dlpack::dltensor tensor;
  if (library.exchange->view_of_object(object, &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const ElementType* const type = element_type(tensor.dtype);
  if (type == nullptr || type->bits < 8) return std::nullopt;
  const std::span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
  if (tensor.data == nullptr && std::ranges::count(shape, 0) == 0)
    return std::nullopt;  // a fake tensor
  if (library.is_neg.is_valid()) {
    PyObject* const negated = PyObject_CallMethodObjArgs(object, library.is_neg.ptr(), nullptr);
    if (negated == nullptr) PyErr_Clear();
    Py_XDECREF(negated);
    if (negated != Py_False) return std::nullopt;
  }
  return DirectArray{.dtype = type->dtype,
                     .data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
                     .shape = shape,
                     .strides = {tensor.strides, tensor.strides == nullptr ? 0 : shape.size()},
                     .device = tensor.device,
                     .is_dense = is_dense(tensor)};
}

const ArrayLayout kPlainLayout = {};

const ArrayLayout& layout_at(const std::vector<ArrayLayout>& layouts, std::size_t i) {
  return layouts.empty() ? kPlainLayout : layouts[i];
}

/// Whether an array is dense, with the shape of a value, if its axes are put into the order of a
/// layout.
bool fits(const DirectArray& array, const runtime::Value& value, const ArrayLayout& layout) {
  if (layout.order.empty()) return array.is_dense && std::ranges::equal(value.shape, array.shape);
  if (layout.order.size() != array.shape.size() || array.strides.size() != array.shape.size() ||
      value.shape.size() != array.shape.size())
    return false;
  std::int64_t expected = 1;
  for (std::size_t i = layout.order.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(layout.order[i]);
    if (array.shape[axis] != value.shape[i]) return false;
    if (array.shape[axis] != 1 && array.strides[axis] != expected) return false;
    expected *= array.shape[axis];
  }
  return true;
}

constexpr std::size_t kAlignment = runtime::kAlignment;

void* aligned_memory(std::size_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
}

/// A DLPack tensor in host memory, in one block: this header, shape and strides, then the elements.
/// Handing it over costs half of what an allocation by torch and its export cost.
DlpackManagedTensor* make_host_tensor(const runtime::Value& value, const ElementType& type,
                                      const ArrayLayout& layout) {
  const std::size_t rank = value.shape.size();
  const std::size_t header = sizeof(DlpackManagedTensor) + 2 * rank * sizeof(std::int64_t);
  const std::size_t offset = (header + kAlignment - 1) / kAlignment * kAlignment;
  void* const block = aligned_memory(offset + static_cast<std::size_t>(value.bytes));
  if (block == nullptr) return nullptr;
  auto* const made = new (block) DlpackManagedTensor;
  auto* const shape = reinterpret_cast<std::int64_t*>(made + 1);
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t axis = layout.order.empty() ? i : static_cast<std::size_t>(layout.order[i]);
    shape[axis] = value.shape[i];
    shape[rank + axis] = stride;
    stride *= std::max<std::int64_t>(shape[axis], 1);
  }
  std::ranges::copy(layout.strides, shape + rank);
  made->deleter = [](DlpackManagedTensor* self) { std::free(self); };
  made->tensor = {.data = static_cast<std::byte*>(block) + offset,
                  .device = {nb::device::cpu::value, 0},
                  .ndim = static_cast<std::int32_t>(rank),
                  .dtype = {type.code, type.bits, 1},
                  .shape = shape,
                  .strides = shape + rank,
                  .byte_offset = 0};
  return made;
}

/// The same in memory of a session, for programs whose results are copied to it.
DlpackManagedTensor* make_host_tensor(const runtime::Value& value, const ElementType& type,
                                      std::shared_ptr<std::byte> memory) {
  struct Made {
    DlpackManagedTensor managed;
    std::shared_ptr<std::byte> memory;
    std::vector<std::int64_t> shape, strides;
  };
  auto made = std::make_unique<Made>();
  made->memory = std::move(memory);
  made->shape = value.shape;
  made->strides.resize(value.shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = value.shape.size(); axis-- > 0;) {
    made->strides[axis] = stride;
    stride *= std::max<std::int64_t>(value.shape[axis], 1);
  }
  made->managed.context = made.get();
  made->managed.deleter = [](DlpackManagedTensor* self) {
    delete static_cast<Made*>(self->context);
  };
  made->managed.tensor = {.data = made->memory.get(),
                          .device = {nb::device::cpu::value, 0},
                          .ndim = static_cast<std::int32_t>(value.shape.size()),
                          .dtype = {type.code, type.bits, 1},
                          .shape = made->shape.data(),
                          .strides = made->strides.data(),
                          .byte_offset = 0};
  return &made.release()->managed;
}

/// Memory of a result, which becomes an array when the run is over.
class PendingResult {
 public:
  PendingResult(const DirectArrays::Library& library, const runtime::Value& value,
                const ArrayLayout& layout)
      : library_(&library), value_(&value), layout_(&layout) {}
  PendingResult(const PendingResult&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;
  PendingResult(PendingResult&& other) noexcept
      : library_(other.library_),
        value_(other.value_),
        layout_(other.layout_),
        memory_(std::exchange(other.memory_, nullptr)),
        pinned_(std::move(other.pinned_)),
        managed_(std::exchange(other.managed_, nullptr)) {}
  PendingResult& operator=(PendingResult&&) = delete;
  ~PendingResult() {
    std::free(memory_);
    if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
  }

  /// Allocates host memory of a session, for a program on a GPU; false as below.
  bool allocate_pinned(RunnableProgram& runnable) {
    const ElementType* const type = element_type(value_->dtype);
    if (!layout_->is_plain() || (library_->numpy ? type->numpy_number < 0 : type->bits < 8))
      return false;
    auto memory = runnable.host_memory(static_cast<std::size_t>(value_->bytes));
    if (!memory) return false;
    if (library_->numpy)
      pinned_ = *std::move(memory);
    else
      managed_ = make_host_tensor(*value_, *type, *std::move(memory));
    return true;
  }

  /// Allocates by the library; false where it has no such arrays, or no memory.
  bool allocate(nb::dlpack::device device) {
    const ElementType* const type = element_type(value_->dtype);
    if (library_->numpy) {
      if (type->numpy_number < 0 || !layout_->is_plain()) return false;
      memory_ = aligned_memory(static_cast<std::size_t>(value_->bytes));
      return memory_ != nullptr;
    }
    if (type->bits < 8) return false;
    if (device.device_type == nb::device::cpu::value) {
      managed_ = make_host_tensor(*value_, *type, *layout_);
      return managed_ != nullptr;
    }
    if (library_->exchange->allocate == nullptr || !layout_->is_plain()) return false;
    nb::dlpack::dltensor prototype{.data = nullptr,
                                   .device = device,
                                   .ndim = static_cast<std::int32_t>(value_->shape.size()),
                                   .dtype = {type->code, type->bits, 1},
                                   .shape = const_cast<std::int64_t*>(value_->shape.data()),
                                   .strides = nullptr,
                                   .byte_offset = 0};
    if (library_->exchange->allocate(&prototype, &managed_, nullptr,
                                     [](void*, const char*, const char*) {}) != 0) {
      managed_ = nullptr;
      PyErr_Clear();
      return false;
    }
    return value_->bytes == 0 || runtime::is_aligned(data());
  }

  std::byte* data() const {
    if (pinned_) return pinned_.get();
    if (managed_ == nullptr) return static_cast<std::byte*>(memory_);
    return static_cast<std::byte*>(managed_->tensor.data) + managed_->tensor.byte_offset;
  }

  /// The array, which owns the memory from now on; null with a Python error.
  nb::object to_array() {
    PyObject* array = nullptr;
    if (!library_->numpy) {
      if (library_->exchange->to_object(managed_, &array) != 0) return {};
      managed_ = nullptr;
      return nb::steal(array);
    }
    void* const data = this->data();
    const nb::object owner = pinned_ ? owner_of_pinned() : owner_of_heap();
    if (!owner.is_valid()) return {};
    constexpr int kFlags = NumpyArray::kDense | NumpyArray::kAligned | NumpyArray::kWritable;
    nb::object result = nb::steal(library_->numpy->make(
        library_->numpy->array_type, static_cast<int>(value_->shape.size()), value_->shape.data(),
        element_type(value_->dtype)->numpy_number, nullptr, data, 0, kFlags, nullptr));
    if (!result.is_valid() ||
        library_->numpy->set_base(result.ptr(), nb::object(owner).release().ptr()) != 0)
      return {};
    return result;
  }

 private:
  /// Objects that own the memory from now on; invalid with a Python error.
  nb::object owner_of_heap() {
    nb::object owner = nb::steal(PyCapsule_New(memory_, nullptr, [](PyObject* capsule) {
      std::free(PyCapsule_GetPointer(capsule, nullptr));
    }));
    if (owner.is_valid()) memory_ = nullptr;
    return owner;
  }
  nb::object owner_of_pinned() {
    using Memory = std::shared_ptr<std::byte>;
    auto held = std::make_unique<Memory>(std::move(pinned_));
    nb::object owner = nb::steal(PyCapsule_New(held.get(), nullptr, [](PyObject* capsule) {
      delete static_cast<Memory*>(PyCapsule_GetPointer(capsule, nullptr));
    }));
    if (owner.is_valid()) (void)held.release();
    return owner;
  }

  const DirectArrays::Library* library_;
  const runtime::Value* value_;
  const ArrayLayout* layout_;
  void* memory_ = nullptr;
  std::shared_ptr<std::byte> pinned_ = {};
  DlpackManagedTensor* managed_ = nullptr;
};

/// Whether a program takes these arrays as they are, or copied to aligned memory.
bool accepts(const NativeModel::Entry& entry, std::span<const DirectArray> arrays,
             const ArrayLayouts& layouts) {
  const runtime::Program& program = entry.program();
  if (!entry.runnable->has_static_arguments() || program.inputs.size() != arrays.size() ||
      (!layouts.outputs.empty() && layouts.outputs.size() != program.outputs.size()))
    return false;
  const bool is_for_gpu = program.is_for_gpu();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const runtime::Value& value = program.values[program.inputs[i]];
    const DirectArray& array = arrays[i];
    const bool is_on_gpu = array.device.device_type == nb::device::cuda::value;
    if (value.dtype != array.dtype || !fits(array, value, layout_at(layouts.inputs, i)) ||
        (is_on_gpu && !(is_for_gpu && runtime::is_aligned(array.data))))
      return false;
  }
  return true;
}

Expected<Done> run_on_host(RunnableProgram& runnable, std::span<const DirectArray> arrays,
                           std::span<PendingResult> results) {
  const runtime::Program& program = runnable.program();
  const nb::gil_scoped_release nogil;
  TESSERA_TRY(RunnableProgram::Lease session, runnable.lease());
  SmallVector<const std::byte*, 8> from;
  SmallVector<std::byte*, 4> to;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(program.values[program.inputs[i]].bytes);
    if (bytes == 0 ||
        reinterpret_cast<std::uintptr_t>(arrays[i].data) % session->host_alignment() == 0) {
      from.push_back(arrays[i].data);
    } else {
      std::byte* const aligned = session.staging(i);
      std::memcpy(aligned, arrays[i].data, bytes);
      from.push_back(aligned);
    }
  }
  for (const PendingResult& result : results) to.push_back(result.data());
  return session->run({from.begin(), from.size()}, {to.begin(), to.size()});
}

Expected<Done> run_on_gpu(RunnableProgram& runnable, const DlpackExchange& exchange,
                          std::span<const DirectArray> arrays, std::span<PendingResult> results) {
  const nb::dlpack::device device = arrays[0].device;
  void* stream = nullptr;
  if (exchange.current_stream == nullptr ||
      exchange.current_stream(device.device_type, device.device_id, &stream) != 0) {
    PyErr_Clear();
    return Diagnostic{.id = "program-argument",
                      .message = "the library of the arrays names no current stream"};
  }
  const nb::gil_scoped_release nogil;
  TESSERA_TRY(RunnableProgram::Lease session, runnable.lease());
  SmallVector<std::uint64_t, 8> from, to;
  for (const DirectArray& array : arrays)
    from.push_back(reinterpret_cast<std::uintptr_t>(array.data));
  for (const PendingResult& result : results)
    to.push_back(reinterpret_cast<std::uintptr_t>(result.data()));
  return session->run_on_device({.inputs = {from.begin(), from.size()},
                                 .outputs = {to.begin(), to.size()},
                                 .stream = stream,
                                 .device = device.device_id});
}

}  // namespace

DirectArrays::LibraryRef DirectArrays::library_of(PyObject* object) {
  constexpr std::size_t kMostTypes = 8;
  PyTypeObject* const type = Py_TYPE(object);
  for (const auto& library : known_)
    if (library->type.ptr() == reinterpret_cast<PyObject*>(type)) return library;
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  Library library{.type = nb::borrow(handle)};
  if (const DlpackExchange* const exchange = exchange_of(nb::handle(object));
      exchange != nullptr && exchange->view_of_object != nullptr && exchange->to_object != nullptr)
    library.exchange = exchange;
  else if (!(library.numpy = NumpyApi::of(type)))
    return nullptr;
  if (nb::hasattr(handle, "is_neg"))
    library.is_neg = nb::steal(PyUnicode_InternFromString("is_neg"));
  if (known_.size() == kMostTypes) known_.clear();
  return known_.emplace_back(std::make_shared<const Library>(std::move(library)));
}

std::optional<DirectArray> DirectArrays::read(const Library& library, PyObject* object) {
  return library.numpy ? read_numpy(object) : read_exchange(library, object);
}

std::optional<DirectCall::Results> DirectCall::run(std::span<PyObject* const> inputs,
                                                   std::optional<Diagnostic>* failure,
                                                   const ArrayLayouts& layouts) {
  if (!layouts.inputs.empty() && layouts.inputs.size() != inputs.size()) return std::nullopt;
  // Held: while the GIL is released, other threads may make the cache forget it.
  DirectArrays::LibraryRef library;
  SmallVector<DirectArray, 8> arrays;
  for (PyObject* const input : inputs) {
    DirectArrays::LibraryRef its = arrays_.library_of(input);
    if (its == nullptr) return std::nullopt;
    const auto array = DirectArrays::read(*its, input);
    if (!array) return std::nullopt;
    // A tensor and a parameter of torch have different types and the same table.
    if (library != nullptr && (its->exchange != library->exchange ||
                               array->device.device_type != arrays[0].device.device_type ||
                               array->device.device_id != arrays[0].device.device_id))
      return std::nullopt;
    library = std::move(its);
    arrays.push_back(*array);
  }
  if (library == nullptr) return std::nullopt;
  const std::span<const DirectArray> given(arrays.begin(), arrays.size());
  const auto entry = model_->find_cached(
      [&](const NativeModel::Entry& candidate) { return accepts(candidate, given, layouts); });
  if (!entry) return std::nullopt;

  const runtime::Program& program = entry->program();
  const bool is_on_gpu = arrays[0].device.device_type == nb::device::cuda::value;
  SmallVector<PendingResult, 4> pending;
  pending.reserve(program.outputs.size());
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    pending.push_back(
        {*library, program.values[program.outputs[i]], layout_at(layouts.outputs, i)});
    if (!(program.is_for_gpu() && !is_on_gpu ? pending.back().allocate_pinned(*entry->runnable)
                                             : pending.back().allocate(arrays[0].device)))
      return std::nullopt;
  }
  const std::span<PendingResult> into(pending.begin(), pending.size());
  const Expected<Done> done = is_on_gpu
                                  ? run_on_gpu(*entry->runnable, *library->exchange, given, into)
                                  : run_on_host(*entry->runnable, given, into);
  if (!done) {
    if (failure != nullptr) *failure = done.error();
    return std::nullopt;
  }
  Results results;
  results.reserve(pending.size());
  for (PendingResult& result : into) {
    results.push_back(result.to_array());
    if (results.back().is_valid()) continue;
    PyErr_Clear();
    return std::nullopt;
  }
  return results;
}

PyObject* general_call(PyObject* self, PyObject* positional, PyObject* named) {
  PyErr_Clear();
  PyObject* const general = PyObject_GetAttrString(self, "call_any");
  if (general == nullptr) return nullptr;
  PyObject* const result = PyObject_Call(general, positional, named);
  Py_DECREF(general);
  return result;
}

}  // namespace tessera::python
