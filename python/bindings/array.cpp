#include "python/bindings/array.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "python/bindings/dlpack_exchange.h"
#include "python/bindings/element_type.h"
#include "python/bindings/error.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

const ElementType* by_name(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kElementTypes, [&](const ElementType& type) { return name == type.name; });
  return found == kElementTypes.end() ? nullptr : found;
}

[[noreturn]] void fail_array(std::string message, std::string note = {}, std::string help = {}) {
  throw DiagnosticError({.id = "python-array",
                         .message = std::move(message),
                         .note = std::move(note),
                         .help = std::move(help)});
}

/// The element type of a buffer by its format character, whose width the platform decides.
std::optional<DType> dtype_of(const Py_buffer& buffer) {
  const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const std::string_view letter =
      format.starts_with('@') || format.starts_with('=') || format.starts_with('<')
          ? format.substr(1)
          : format;
  if (letter.size() != 1) return std::nullopt;
  const int width = static_cast<int>(buffer.itemsize);
  const auto integer = [&](bool is_signed) -> std::optional<DType> {
    switch (width) {
      case 1: return is_signed ? DType::I8 : DType::U8;
      case 2: return is_signed ? DType::I16 : DType::U16;
      case 4: return is_signed ? DType::I32 : DType::U32;
      case 8: return is_signed ? DType::I64 : DType::U64;
      default: return std::nullopt;
    }
  };
  switch (letter[0]) {
    case '?': return DType::Bool;
    case 'e': return DType::F16;
    case 'f': return DType::F32;
    case 'd': return width == 8 ? std::optional(DType::F64) : std::nullopt;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer(true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer(false);
    default: return std::nullopt;
  }
}

/// A Python buffer, released with the GIL held by whichever thread drops it last.
std::shared_ptr<Py_buffer> buffer_of(nb::handle object, int flags) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), buffer.get(), flags) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  return {buffer.release(), [](Py_buffer* held) {
            const nb::gil_scoped_acquire gil;
            PyBuffer_Release(held);
            delete held;
          }};
}

std::optional<ArrayView> view_of_buffer(nb::handle object, bool writable) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return std::nullopt;
  const auto buffer =
      buffer_of(object, PyBUF_FORMAT | PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0));
  if (!buffer) return std::nullopt;
  const auto dtype = dtype_of(*buffer);
  if (!dtype) return std::nullopt;
  ArrayView view{.dtype = *dtype, .data = static_cast<std::byte*>(buffer->buf), .owner = buffer};
  for (int axis = 0; axis < buffer->ndim; ++axis) {
    view.shape.push_back(buffer->shape[axis]);
    if (buffer->strides[axis] % buffer->itemsize != 0) fail_array("its elements are not aligned");
    view.strides.push_back(buffer->strides[axis] / buffer->itemsize);
  }
  return view;
}

bool is_torch(nb::handle object) {
  const nb::handle module = nb::getattr(object.type(), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) &&
         std::string_view(nb::cast<nb::str>(module).c_str()).starts_with("torch");
}

/// Refuses arrays on a GPU and element types that there are no tensors of.
DType checked_dtype(std::int32_t device, const nb::dlpack::dtype& type) {
  if (device != nb::device::cpu::value)
    fail_array("the array is not in the memory of this computer",
               "programs take and give arrays in host memory", "copy it with .cpu() first");
  const ElementType* const found = element_type(type);
  if (found == nullptr)
    fail_array(fmt::format("arrays of DLPack type {}:{} are not supported", type.code, type.bits));
  return found->dtype;
}

/// The view of an array that DLPack gives, if it gives one.
template <class Array>
std::optional<ArrayView> view_by_dlpack(nb::handle object) {
  Array array;
  try {
    array = nb::cast<Array>(object);
  } catch (const nb::cast_error&) {
    return std::nullopt;
  }
  ArrayView view{
      .dtype = checked_dtype(array.device_type(), array.dtype()),
      .data = static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(array.data())))};
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    view.shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
    view.strides.push_back(array.stride(axis));
  }
  view.owner = {new Array(array), [](const Array* held) {
                  const nb::gil_scoped_acquire gil;
                  delete held;
                }};
  return view;
}

/// Number of elements of an array that is in memory.
std::int64_t count_of(const ArrayView& view) {
  return element_count(view.shape).value_or(0);
}

/// The view of an array by its library's table; the array itself keeps the memory.
ArrayView view_by_exchange(const DlpackExchange& exchange, nb::handle object) {
  if (is_negated(object))
    fail_array("it is a view of negated elements", {}, "give a copy: x.resolve_neg()");
  nb::dlpack::dltensor tensor;
  if (exchange.view_of_object(object.ptr(), &tensor) != 0) {
    nb::python_error error;
    const std::string text = nb::cast<std::string>(nb::str(error.value()));
    fail_array("it is an array without memory of its own that can be read",
               "its library says: " + text.substr(0, text.find('\n')));
  }
  ArrayView view{.dtype = checked_dtype(tensor.device.device_type, tensor.dtype),
                 .data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset};
  view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  view.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  if (tensor.data == nullptr && count_of(view) != 0)
    fail_array("it has no memory", "fake tensors have shapes alone");
  return view;
}

/// An array by DLPack: torch, jax, cupy.
std::optional<ArrayView> view_of_dlpack(nb::handle object, bool writable) {
  if (const DlpackExchange* const exchange = exchange_of(object);
      exchange != nullptr && exchange->view_of_object != nullptr)
    return view_by_exchange(*exchange, object);
  if (!nb::hasattr(object, "__dlpack__")) return std::nullopt;
  nb::object source = nb::borrow(object);
  if (is_torch(object) && nb::cast<bool>(object.attr("requires_grad")))
    source = object.attr("detach")();
  return writable ? view_by_dlpack<nb::ndarray<>>(source)
                  : view_by_dlpack<nb::ndarray<nb::ro>>(source);
}

/// An array of a type that buffers do not have (bfloat16 and the like, by ml_dtypes), seen as
/// integers of its width.
std::optional<ArrayView> view_of_extension(nb::handle object, bool writable) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view")) return std::nullopt;
  const nb::object name = nb::getattr(object.attr("dtype"), "name", nb::none());
  if (!nb::isinstance<nb::str>(name)) return std::nullopt;
  const ElementType* const type = by_name(nb::cast<nb::str>(name).c_str());
  if (type == nullptr || (type->dtype != DType::BF16 && !is_small(type->dtype)))
    return std::nullopt;
  auto view = view_of_buffer(object.attr("view")(byte_width(type->dtype) == 2 ? "uint16" : "uint8"),
                             writable);
  if (view) view->dtype = type->dtype;
  return view;
}

bool is_dense(const ArrayView& view) {
  std::int64_t expected = 1;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return count_of(view) == 0;
    expected *= view.shape[axis];
  }
  return true;
}

/// Elements of a strided array, row by row.
Bytes gathered(const ArrayView& view) {
  const auto width = static_cast<std::size_t>(byte_width(view.dtype));
  const std::int64_t count = count_of(view);
  Buffer buffer(static_cast<std::size_t>(count) * width);
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      offset += index[axis] * view.strides[axis];
    std::memcpy(buffer.data() + static_cast<std::size_t>(i) * width,
                view.data + offset * static_cast<std::int64_t>(width), width);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < view.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return std::move(buffer).freeze();
}

/// Elements of a type narrower than a byte: ml_dtypes leaves the upper bits zero, and tensors hold
/// integers by value.
Bytes extended(const Bytes& bytes, DType dtype) {
  const ElementType& type = *element_type(dtype);
  const int unused = 8 - type.bits;
  Buffer buffer(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto element = static_cast<std::uint8_t>(bytes.data()[i]);
    const auto shifted = static_cast<std::uint8_t>(element << unused);
    const int value = type.code == code(Code::Int) ? static_cast<std::int8_t>(shifted) >> unused
                                                   : shifted >> unused;
    buffer.data()[i] = static_cast<std::byte>(value);
  }
  return std::move(buffer).freeze();
}

Tensor tensor_of(const ArrayView& view) {
  if (element_type(view.dtype)->bits < 8)
    return {view.dtype, view.shape, extended(gathered(view), view.dtype)};
  if (!is_dense(view)) return {view.dtype, view.shape, gathered(view)};
  const auto bytes = static_cast<std::size_t>(count_of(view) * byte_width(view.dtype));
  return {view.dtype, view.shape, Bytes(view.owner, {view.data, bytes})};
}

std::optional<ArrayView> view_of(nb::handle object, bool writable) {
  if (auto view = view_of_buffer(object, writable)) return view;
  if (auto view = view_of_extension(object, writable)) return view;
  return view_of_dlpack(object, writable);
}

/// An array of text, by numpy.
std::optional<Tensor> text_of(nb::handle object) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "ravel")) return std::nullopt;
  const std::string kind = nb::cast<std::string>(nb::str(object.attr("dtype").attr("kind")));
  if (kind != "U" && kind != "O" && kind != "T") return std::nullopt;
  std::vector<std::string> elements;
  for (const nb::handle element : object.attr("ravel")().attr("tolist")()) {
    if (nb::isinstance<nb::bytes>(element)) {
      const auto bytes = nb::cast<nb::bytes>(element);
      elements.emplace_back(bytes.c_str(), bytes.size());
    } else if (nb::isinstance<nb::str>(element)) {
      elements.push_back(nb::cast<std::string>(element));
    } else {
      fail_array("an array of objects has an element that is no text");
    }
  }
  return Tensor::of_strings(nb::cast<std::vector<std::int64_t>>(nb::list(object.attr("shape"))),
                            std::move(elements));
}

nb::object text_array(const Tensor& tensor) {
  nb::list elements;
  for (const std::string& element : *tensor.strings) elements.append(element);
  const nb::object numpy = nb::module_::import_("numpy");
  return numpy.attr("array")(elements, nb::arg("dtype") = "object")
      .attr("reshape")(nb::tuple(nb::cast(tensor.shape)));
}

}  // namespace

std::optional<ArrayView> writable_view(nb::handle object) {
  auto view = view_of(object, true);
  if (!view) {
    if (view_of(object, false)) fail_array("the array is read-only");
    return std::nullopt;
  }
  std::int64_t last = 1;
  for (std::size_t axis = 0; axis < view->shape.size(); ++axis) {
    if (view->strides[axis] < 0) fail_array("an array with negative strides is not supported");
    last += (view->shape[axis] - 1) * view->strides[axis];
  }
  view->bytes = count_of(*view) == 0 ? 0 : last * byte_width(view->dtype);
  return view;
}

Datum datum_of(nb::handle object, ArrayLibrary& library) {
  if (object.is_none()) return Datum::optional();
  if (const auto view = view_of(object, false)) {
    if (!library.is_torch && PyObject_CheckBuffer(object.ptr()) == 0 && is_torch(object))
      library = {.is_torch = true, .exchange = exchange_of(object)};
    return tensor_of(*view);
  }
  if (auto text = text_of(object)) return *std::move(text);
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    std::vector<Datum> elements;
    for (const nb::handle element : object) elements.push_back(datum_of(element, library));
    return Datum::sequence(std::move(elements));
  }
  fail_array(fmt::format("'{}' is not an array", nb::cast<std::string>(nb::str(object.type()))),
             "arrays of numpy and torch, and what has a buffer or __dlpack__");
}

namespace {

/// Element type of an array of results, in DLPack's terms. Types that the library lacks are handed
/// out as the integers that hold them.
struct ResultType {
  nb::dlpack::dtype dtype;
  const char* extension = nullptr;  // name in ml_dtypes, of a type that numpy lacks
};

ResultType result_type(DType dtype, bool torch) {
  const ElementType* const type = element_type(dtype);
  const auto width = static_cast<std::uint8_t>(byte_width(dtype) * 8);
  const bool lacking = torch ? type->bits < 8 : dtype == DType::BF16 || is_small(dtype);
  if (!lacking) return {.dtype = {type->code, width, 1}};
  return {.dtype = {code(Code::UInt), width, 1}, .extension = torch ? nullptr : type->name};
}

/// A torch tensor that shares the memory of a tensor, by torch's table.
nb::object by_exchange(const DlpackExchange& exchange, const Tensor& tensor) {
  struct ExportedTensor {
    DlpackManagedTensor managed;
    Bytes bytes;
    std::vector<std::int64_t> shape, strides;
  };
  auto exported = std::make_unique<ExportedTensor>();
  exported->bytes = tensor.bytes;
  exported->shape = tensor.shape;
  exported->strides.resize(tensor.shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = exported->shape.size(); axis-- > 0;) {
    exported->strides[axis] = stride;
    stride *= std::max<std::int64_t>(exported->shape[axis], 1);
  }
  exported->managed.context = exported.get();
  exported->managed.deleter = [](DlpackManagedTensor* self) {
    delete static_cast<ExportedTensor*>(self->context);
  };
  exported->managed.tensor = {.data = const_cast<std::byte*>(tensor.bytes.data()),
                              .device = {nb::device::cpu::value, 0},
                              .ndim = static_cast<std::int32_t>(exported->shape.size()),
                              .dtype = result_type(tensor.dtype, true).dtype,
                              .shape = exported->shape.data(),
                              .strides = exported->strides.data(),
                              .byte_offset = 0};
  PyObject* result = nullptr;
  if (exchange.to_object(&exported->managed, &result) != 0) throw nb::python_error();
  exported.release();  // the array deletes it
  return nb::steal(result);
}

}  // namespace

nb::object to_python(const Datum& datum, const ArrayLibrary& library) {
  if (datum.kind() == Datum::Kind::Nothing) return nb::none();
  if (!datum.is_tensor()) {
    if (datum.kind() == Datum::Kind::Optional)
      return datum.elements().empty() ? nb::none() : to_python(datum.elements()[0], library);
    nb::list elements;
    for (const Datum& element : datum.elements()) elements.append(to_python(element, library));
    return elements;
  }
  const Tensor& tensor = datum.tensor();
  if (tensor.dtype == DType::String) return text_array(tensor);
  if (library.exchange != nullptr) return by_exchange(*library.exchange, tensor);
  const ResultType type = result_type(tensor.dtype, library.is_torch);
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  auto* const held = new Bytes(tensor.bytes);
  const nb::capsule owner(held, [](void* bytes) noexcept { delete static_cast<Bytes*>(bytes); });
  // The memory belongs to the result alone: sessions hand out what they do not keep.
  void* const data = const_cast<std::byte*>(tensor.bytes.data());
  if (library.is_torch)
    return nb::cast(
        nb::ndarray<nb::pytorch>(data, shape.size(), shape.data(), owner, nullptr, type.dtype));
  const nb::object array = nb::cast(
      nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type.dtype));
  if (type.extension == nullptr) return array;
  try {
    return array.attr("view")(nb::module_::import_("ml_dtypes").attr(type.extension));
  } catch (const nb::python_error&) {
    return array;
  }
}

}  // namespace tessera::python
