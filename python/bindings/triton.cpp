#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdio>
#include <memory>

#include "python/bindings/bind.h"
#include "python/bindings/dlpack_exchange.h"
#include "python/bindings/error.h"
#include "tessera/codegen/compile.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"
#include "tessera/triton/lower.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A kernel that came from Triton, compiled for this computer.
struct TritonKernel {
  std::shared_ptr<const codegen::CompiledKernel> compiled;
  bool prints = false;   // by the interpreter: machine code has nowhere to print to
  bool checked = false;  // debug mode
};

/// Compiles tile text, which is what Triton's cache keeps; machine code comes from the object
/// cache.
TritonKernel load(const std::string& text, bool checked, const std::filesystem::path& cache) {
  const nb::gil_scoped_release nogil;
  const tile::Kernel kernel = value_or_throw(tile::parse_kernel(text, "triton"));
  TritonKernel result{.compiled = value_or_throw(codegen::compile(
                          kernel, {.checked = checked, .assertions = true, .cache = cache})),
                      .checked = checked};
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    result.prints |= kernel.ops[id].code == tile::Code::Print;
  });
  return result;
}

std::string tile_text(const std::string& ttir, const std::string& name) {
  const nb::gil_scoped_release nogil;
  return to_text(value_or_throw(triton::kernel_of(ttir, name)));
}

/// PTX with the parameters of Triton's launcher, and what the launch has to know.
nb::dict triton_ptx(const std::string& ttir, int capability, bool tf32, int stages, int threads) {
  codegen::PtxKernel made;
  {
    const nb::gil_scoped_release nogil;
    const tile::Kernel kernel = value_or_throw(triton::kernel_of(ttir, "ttir"));
    made = value_or_throw(codegen::ptx_of(
        kernel, {.target = capability >= 90 ? codegen::PtxTarget::Sm90a : codegen::PtxTarget::Sm80,
                 .precision = codegen::Precision::Fast,
                 .tf32 = tf32,
                 .triton_abi = true,
                 .threads = threads,
                 .stages = stages}));
  }
  nb::dict result;
  result["ptx"] = made.text;
  result["name"] = made.entry;
  result["threads"] = made.threads;
  result["shared"] = made.shared_bytes;
  return result;
}

[[noreturn]] void wrong_argument(const tile::Kernel& kernel, std::size_t index, nb::handle object,
                                 std::string note) {
  throw DiagnosticError(
      {.id = "launch-argument",
       .where = {.file = kernel.name, .item = kernel.values[kernel.params()[index]].name},
       .message = fmt::format("'{}' is given for {}", nb::cast<std::string>(nb::str(object.type())),
                              to_string(kernel.type(kernel.params()[index]))),
       .note = std::move(note)});
}

/// The table of the type of tensor that was seen last: nearly always torch's.
const DlpackExchange* cached_exchange(nb::handle object) {
  static PyObject* type = nullptr;
  static const DlpackExchange* exchange = nullptr;
  PyObject* const own = object.type().ptr();
  if (own != type) {
    exchange = exchange_of(object);
    type = own;
    Py_INCREF(type);
  }
  return exchange;
}

/// Memory from a tensor's first element to its last.
struct Extent {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

Extent extent_of(const tile::Kernel& kernel, std::size_t index, nb::handle object) {
  if (object.is_none()) return {};
  if (PyLong_Check(object.ptr())) {
    return {reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(object.ptr())), 0};
  }
  if (const DlpackExchange* const exchange = cached_exchange(object);
      exchange != nullptr && exchange->view_of_object != nullptr) {
    nb::dlpack::dltensor tensor;
    if (exchange->view_of_object(object.ptr(), &tensor) == 0) {
      if (tensor.device.device_type != nb::device::cpu::value)
        wrong_argument(kernel, index, object, "the tensor is not in the memory of this computer");
      std::int64_t last = 1;
      for (int i = 0; i < tensor.ndim; ++i) {
        if (tensor.shape[i] == 0)
          last = 0;
        else if (last > 0)
          last += (tensor.shape[i] - 1) * tensor.strides[i];
      }
      return {static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
              last * tensor.dtype.bits / 8};
    }
    PyErr_Clear();
  }
  const nb::object pointer = nb::getattr(object, "data_ptr", nb::none());
  if (pointer.is_none())
    wrong_argument(kernel, index, object, "a pointer is a tensor, an address or None");
  const auto address = nb::cast<std::uint64_t>(pointer());
  std::int64_t bytes = 0;
  if (nb::hasattr(object, "nbytes")) bytes = nb::cast<std::int64_t>(object.attr("nbytes"));
  return {reinterpret_cast<void*>(address), bytes};
}

tile::Argument argument_of(const tile::Kernel& kernel, std::size_t index, nb::handle object) {
  const tile::Type& type = kernel.type(kernel.params()[index]);
  if (type.is_pointer()) {
    const Extent extent = extent_of(kernel, index, object);
    // A tensor without elements has no address; a kernel may not touch it.
    static std::byte nowhere[64];
    void* const data = extent.data == nullptr ? static_cast<void*>(nowhere) : extent.data;
    return tile::Argument::pointer(type.dtype, data, extent.bytes);
  }
  if (is_float(type.dtype)) {
    const double number = PyFloat_AsDouble(object.ptr());
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      wrong_argument(kernel, index, object, "the parameter is a number");
    }
    return tile::Argument::number(type.dtype, number);
  }
  const nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
  if (!integer.is_valid()) {
    PyErr_Clear();
    wrong_argument(kernel, index, object, "the parameter is an integer");
  }
  // Integers are signless: an unsigned one arrives by its bits.
  return tile::Argument::integer(
      type.dtype, type.dtype == DType::Bool
                      ? static_cast<std::int64_t>(PyObject_IsTrue(integer.ptr()) != 0)
                      : wrapped_to(type.dtype, static_cast<std::int64_t>(
                                                   PyLong_AsUnsignedLongLongMask(integer.ptr()))));
}

void launch(const TritonKernel& self, std::int64_t x, std::int64_t y, std::int64_t z, int threads,
            const nb::args& objects) {
  const tile::Kernel& kernel = self.compiled->kernel();
  if (objects.size() != kernel.params().size()) {
    throw DiagnosticError(
        {.id = "launch-argument",
         .where = {.file = kernel.name},
         .message = fmt::format("{} arguments are given", objects.size()),
         .note = fmt::format("the kernel has {} parameters", kernel.params().size())});
  }
  std::vector<tile::Argument> arguments;
  arguments.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    arguments.push_back(argument_of(kernel, i, objects[i]));
  }
  const tile::Grid grid = {x, y, z};
  const nb::gil_scoped_release nogil;
  if (!self.prints) {
    value_or_throw(self.compiled->launch(arguments, grid, threads));
    return;
  }
  tile::InterpOptions options{.print = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  }};
  value_or_throw(tile::interpret(kernel, arguments, grid, options));
  std::fflush(stdout);
}

}  // namespace

void bind_triton(nb::module_& module) {
  nb::class_<TritonKernel>(module, "TritonKernel")
      .def("launch", launch, "x"_a, "y"_a, "z"_a, "threads"_a, "arguments"_a)
      .def_prop_ro("name", [](const TritonKernel& self) { return self.compiled->kernel().name; });
  module.def("triton_kernel", load, "text"_a, "checked"_a, "cache"_a);
  module.def("triton_ptx", triton_ptx, "ttir"_a, "capability"_a, "tf32"_a, "stages"_a, "threads"_a,
             "PTX of the kernel of a TTIR module, with the parameters of Triton's launcher.");
  module.def("triton_tile_text", tile_text, "ttir"_a, "name"_a = "ttir",
             "Tile IR of the kernel of a TTIR module.");
}

}  // namespace tessera::python
