#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "python/bindings/bind.h"
#include "python/bindings/dlpack_exchange.h"
#include "python/bindings/error.h"
#include "tessera/codegen/compile.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/support/small_vector.h"
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
  TritonKernel result{
      .compiled = value_or_throw(codegen::compile(kernel, {.precision = codegen::Precision::Fast,
                                                           .checked = checked,
                                                           .assertions = true,
                                                           .cache = cache})),
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
nb::dict triton_ptx(const std::string& ttir, int capability, int stages, int threads) {
  codegen::PtxKernel made;
  {
    const nb::gil_scoped_release nogil;
    const triton::Module source = value_or_throw(triton::parse_module(ttir));
    const tile::Kernel kernel = value_or_throw(triton::lower(source));
    made = value_or_throw(codegen::ptx_of(
        kernel, {.target = capability >= 90 ? codegen::PtxTarget::Sm90a : codegen::PtxTarget::Sm80,
                 .precision = codegen::Precision::Fast,
                 .tf32 = triton::allows_tf32(source),
                 .triton_abi = true,
                 .divisors = triton::parameter_divisors(source),
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

/// Size where there is only an address: all of the memory of a process lies within it.
constexpr std::int64_t kUnknownBytes = std::int64_t{1} << 47;

/// Bytes from `data` to the end of the storage of a tensor that is a view: a kernel may reach
/// beyond the view, into what another argument is of. None where the tensor is no view.
std::optional<std::int64_t> storage_bytes(nb::handle tensor, const void* data) {
  static PyObject* const is_view = PyUnicode_InternFromString("_is_view");
  PyObject* const answer = PyObject_CallMethodObjArgs(tensor.ptr(), is_view, nullptr);
  if (answer == nullptr) PyErr_Clear();
  const bool is_own = answer == nullptr || PyObject_IsTrue(answer) == 0;
  Py_XDECREF(answer);
  if (is_own) return std::nullopt;
  const nb::object storage = tensor.attr("untyped_storage")();
  const auto first = nb::cast<std::uintptr_t>(storage.attr("data_ptr")());
  const auto size = nb::cast<std::uintptr_t>(storage.attr("nbytes")());
  return static_cast<std::int64_t>(first + size - reinterpret_cast<std::uintptr_t>(data));
}

/// In debug mode, the memory of a view is that of its elements alone.
Extent extent_of(const TritonKernel& self, std::size_t index, nb::handle object) {
  const tile::Kernel& kernel = self.compiled->kernel();
  if (object.is_none()) return {};
  if (PyLong_Check(object.ptr())) {
    const auto address = PyLong_AsUnsignedLongLong(object.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      wrong_argument(kernel, index, object, "an address is an integer of 64 bits");
    }
    return {reinterpret_cast<void*>(address), kUnknownBytes};
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
      std::byte* const data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
      const std::int64_t own = last * tensor.dtype.bits / 8;
      if (self.checked) return {data, own};
      return {data, std::max(own, storage_bytes(object, data).value_or(own))};
    }
    PyErr_Clear();
  }
  const nb::object pointer = nb::getattr(object, "data_ptr", nb::none());
  if (pointer.is_none())
    wrong_argument(kernel, index, object, "a pointer is a tensor, an address or None");
  const auto address = nb::cast<std::uint64_t>(pointer());
  std::int64_t bytes = kUnknownBytes;
  if (nb::hasattr(object, "nbytes")) {
    bytes = nb::cast<std::int64_t>(object.attr("nbytes"));
  } else if (const nb::object base = nb::getattr(object, "base", nb::none());
             !base.is_none() && nb::hasattr(base, "data_ptr")) {
    bytes = extent_of(self, index, base).bytes;  // triton.reinterpret: a tensor of another type
  }
  return {reinterpret_cast<void*>(address), bytes};
}

tile::Argument argument_of(const TritonKernel& self, std::size_t index, nb::handle object) {
  const tile::Kernel& kernel = self.compiled->kernel();
  const tile::Type& type = kernel.type(kernel.params()[index]);
  if (type.is_pointer()) {
    const Extent extent = extent_of(self, index, object);
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

Expected<Done> launch(const TritonKernel& self, std::span<const tile::Argument> arguments,
                      const tile::Grid& grid, int threads) {
  if (!self.prints) return self.compiled->launch(arguments, grid, threads);
  const tile::InterpOptions options{.print = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
  }};
  auto result = tile::interpret(self.compiled->kernel(), arguments, grid, options);
  std::fflush(stdout);
  return result;
}

void launch_objects(const TritonKernel& self, std::int64_t x, std::int64_t y, std::int64_t z,
                    int threads, const nb::args& objects) {
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
    arguments.push_back(argument_of(self, i, objects[i]));
  }
  const nb::gil_scoped_release nogil;
  value_or_throw(launch(self, arguments, {x, y, z}, threads));
}

/// Launcher of a kernel, which Triton calls with (x, y, z, stream, kernel, packed metadata, launch
/// metadata, enter hook, exit hook, arguments…). Without hooks, a call needs no Python code.
struct TritonLauncher {
  std::vector<int>
      kept;            // positions of the arguments that the kernel has; the others are constants
  nb::object threads;  // gives the number of threads
  std::optional<Diagnostic> failure = {};  // of the last call
};
constexpr Py_ssize_t kFixed = 9;  // arguments before those of the kernel

int thread_count(const TritonLauncher& self) {
  return nb::cast<int>(self.threads());
}

/// The general way of a call, with hooks.
void launch_any(const TritonLauncher& self, const nb::args& all) {
  if (all.size() < static_cast<std::size_t>(kFixed)) throw nb::type_error("too few arguments");
  const nb::object enter = all[7], leave = all[8];
  if (!enter.is_none()) enter(all[6]);
  nb::list objects;
  for (const int i : self.kept) objects.append(all[static_cast<std::size_t>(kFixed + i)]);
  launch_objects(nb::cast<const TritonKernel&>(all[4]), nb::cast<std::int64_t>(all[0]),
                 nb::cast<std::int64_t>(all[1]), nb::cast<std::int64_t>(all[2]), thread_count(self),
                 nb::borrow<nb::args>(nb::tuple(objects)));
  if (!leave.is_none()) leave(all[6]);
}

/// __call__ as a slot of the type: what it cannot do, `launch_any` does; diagnostics become
/// exceptions in `fail`.
PyObject* launcher_slot(PyObject* self, PyObject* all, PyObject* named) noexcept {
  const char* rest = "launch_any";
  try {
    auto& launcher = *nb::inst_ptr<TritonLauncher>(self);
    const auto item = [&](Py_ssize_t i) { return nb::handle(PyTuple_GetItem(all, i)); };
    const bool is_plain = PyTuple_Size(all) >= kFixed &&
                          (named == nullptr || PyDict_Size(named) == 0) && item(7).is_none() &&
                          item(8).is_none() && nb::isinstance<TritonKernel>(item(4));
    if (is_plain) {
      const auto& kernel = *nb::inst_ptr<TritonKernel>(item(4));
      SmallVector<tile::Argument, 16> arguments;
      const std::size_t count = kernel.compiled->kernel().params().size();
      if (count == launcher.kept.size()) {
        for (std::size_t i = 0; i < count; ++i)
          arguments.push_back(argument_of(kernel, i, item(kFixed + launcher.kept[i])));
        tile::Grid grid = {};
        for (std::size_t i = 0; i < grid.size(); ++i)
          grid[i] = PyLong_AsLongLong(item(static_cast<Py_ssize_t>(i)).ptr());
        const int threads = thread_count(launcher);
        if (PyErr_Occurred() == nullptr) {
          rest = "fail";
          Expected<Done> done = Done{};
          {
            const nb::gil_scoped_release nogil;
            done = launch(kernel, {arguments.begin(), arguments.size()}, grid, threads);
          }
          if (done) Py_RETURN_NONE;
          launcher.failure = std::move(done).error();
        }
      }
    }
  } catch (const std::exception&) {  // met again, and reported, by the rest
  }
  PyErr_Clear();
  PyObject* const general = PyObject_GetAttrString(self, rest);
  if (general == nullptr) return nullptr;
  PyObject* const result = std::string_view(rest) == "fail" ? PyObject_CallNoArgs(general)
                                                            : PyObject_Call(general, all, named);
  Py_DECREF(general);
  return result;
}

}  // namespace

void bind_triton(nb::module_& module) {
  nb::class_<TritonKernel>(module, "TritonKernel")
      .def("launch", launch_objects, "x"_a, "y"_a, "z"_a, "threads"_a, "arguments"_a)
      .def_prop_ro("name", [](const TritonKernel& self) { return self.compiled->kernel().name; });
  const std::array slots = {PyType_Slot{Py_tp_call, reinterpret_cast<void*>(launcher_slot)},
                            PyType_Slot{0, nullptr}};
  nb::class_<TritonLauncher>(module, "TritonLauncher", nb::type_slots(slots.data()))
      .def(
          "__init__",
          [](TritonLauncher* self, std::vector<int> kept, nb::object threads) {
            new (self) TritonLauncher{std::move(kept), std::move(threads)};
          },
          "kept"_a, "threads"_a)
      .def("launch_any", launch_any, "arguments"_a)
      .def("fail", [](TritonLauncher& self) {
        if (self.failure) throw DiagnosticError(*std::exchange(self.failure, std::nullopt));
        throw DiagnosticError({.id = "launch-argument", .message = "the launch failed"});
      });
  module.def("triton_kernel", load, "text"_a, "checked"_a, "cache"_a);
  module.def("triton_ptx", triton_ptx, "ttir"_a, "capability"_a, "stages"_a, "threads"_a,
             "PTX of the kernel of a TTIR module, with the parameters of Triton's launcher.");
  module.def("triton_tile_text", tile_text, "ttir"_a, "name"_a = "ttir",
             "Tile IR of the kernel of a TTIR module.");
}

}  // namespace tessera::python
