#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <optional>

#include "python/bindings/array.h"
#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "tessera/codegen/compile.h"
#include "tessera/tile/text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A compiled tile kernel.
struct KernelHandle {
  std::shared_ptr<const codegen::CompiledKernel> compiled;
};

/// Values of the constants of a kernel, by name.
using Constants = std::map<std::string, std::int64_t>;

tile::Kernel parsed(const std::string& text, const Constants& constants) {
  std::vector<tile::Constant> values;
  for (const auto& [name, value] : constants) values.push_back({name, value});
  tile::Kernel kernel = value_or_throw(tile::parse_kernel(text, "kernel", values));
  for (const tile::Constant& one : values)
    if (std::ranges::find(kernel.constants, one.name, &tile::Constant::name) ==
        kernel.constants.end())
      throw DiagnosticError(
          {.id = "kernel-argument",
           .where = {.item = one.name},
           .message = fmt::format("{} has no constant {}", kernel.name, one.name)});
  return kernel;
}

KernelHandle compile(const std::string& text, bool checked, const std::string& precision,
                     const std::filesystem::path& cache, const Constants& constants) {
  const nb::gil_scoped_release nogil;
  const tile::Kernel kernel = parsed(text, constants);
  return {value_or_throw(codegen::compile(
      kernel,
      {.precision = precision == "fast" ? codegen::Precision::Fast : codegen::Precision::Exact,
       .checked = checked,
       .cache = cache}))};
}

/// The argument of a parameter: an array for a pointer or a view, a number for a scalar.
tile::Argument argument_of(const tile::Kernel& kernel, tile::ValueId param, nb::handle object,
                           std::vector<ArrayView>& held) {
  const tile::Type& type = kernel.type(param);
  const std::string& name = kernel.values[param].name;
  if (auto view = writable_view(object)) {
    held.push_back(*std::move(view));
    const ArrayView& array = held.back();
    if (type.is_pointer()) return tile::Argument::pointer(array.dtype, array.data, array.bytes);
    return tile::Argument::view(array.dtype, array.data, {array.shape.begin(), array.shape.end()},
                                {array.strides.begin(), array.strides.end()});
  }
  const bool is_integer = nb::isinstance<nb::int_>(object);
  if (!is_integer && !nb::isinstance<nb::float_>(object))
    throw DiagnosticError({.id = "kernel-argument",
                           .where = {.item = name},
                           .message = fmt::format("'{}' is neither an array nor a number",
                                                  nb::cast<std::string>(nb::str(object.type()))),
                           .note = fmt::format("the parameter is {}", to_string(type))});
  if (is_integer && !is_float(type.dtype))
    return tile::Argument::integer(type.dtype, nb::cast<std::int64_t>(object));
  return tile::Argument::number(type.dtype, nb::cast<double>(nb::float_(object)));
}

void launch(const KernelHandle& handle, const tile::Grid& grid, int threads, nb::args objects) {
  const tile::Kernel& kernel = handle.compiled->kernel();
  const auto params = kernel.params();
  if (objects.size() != params.size())
    throw DiagnosticError(
        {.id = "kernel-argument",
         .message = fmt::format("{} arguments are given", objects.size()),
         .note = fmt::format("{} has {} parameters", kernel.name, params.size())});
  std::vector<ArrayView> held;
  held.reserve(params.size());
  std::vector<tile::Argument> arguments;
  for (std::size_t i = 0; i < params.size(); ++i)
    arguments.push_back(argument_of(kernel, params[i], objects[i], held));
  const nb::gil_scoped_release nogil;
  value_or_throw(handle.compiled->launch(arguments, grid, threads));
}

}  // namespace

void bind_kernels(nb::module_& module) {
  nb::class_<KernelHandle>(module, "Kernel")
      .def("launch", launch, "grid"_a, "threads"_a, "arguments"_a)
      .def_prop_ro("name",
                   [](const KernelHandle& handle) { return handle.compiled->kernel().name; })
      .def("text", [](const KernelHandle& handle) { return to_text(handle.compiled->kernel()); });
  module.def("kernel", compile, "text"_a, "checked"_a, "precision"_a, "cache"_a, "constants"_a);
}

}  // namespace tessera::python
