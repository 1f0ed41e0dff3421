#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/array.h"
#include "python/bindings/bind.h"
#include "python/bindings/error.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/catalog.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tessera::python {
namespace {

/// A value of a graph under construction, with the builder that it belongs to.
struct ValueHandle {
  std::shared_ptr<GraphBuilder> builder;
  Val value;
};

[[noreturn]] void fail(std::string message, std::string note = {}) {
  throw DiagnosticError(
      {.id = "python-graph", .message = std::move(message), .note = std::move(note)});
}

/// Raises the first mistake at the call that made it.
void check(const GraphBuilder& builder) {
  if (builder.failed()) throw DiagnosticError(*builder.error());
}

Attr attr_of(const std::string& name, nb::handle object) {
  if (nb::isinstance<nb::bool_>(object)) return std::int64_t{nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) return nb::cast<std::int64_t>(object);
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Ints integers;
    Floats floats;
    Strings strings;
    for (const nb::handle element : object) {
      if (nb::isinstance<nb::str>(element)) {
        strings.push_back(nb::cast<std::string>(element));
        continue;
      }
      if (nb::isinstance<nb::int_>(element)) integers.push_back(nb::cast<std::int64_t>(element));
      if (nb::isinstance<nb::int_>(element) || nb::isinstance<nb::float_>(element))
        floats.push_back(nb::cast<double>(nb::float_(element)));
    }
    const std::size_t count = nb::len(object);
    if (strings.size() == count && count > 0) return strings;
    if (integers.size() == count) return integers;
    if (floats.size() == count) return floats;
    fail(fmt::format("the elements of attribute '{}' are of different kinds", name));
  }
  ArrayLibrary library;
  const Datum datum = datum_of(object, library);
  if (!datum.is_tensor())
    fail(fmt::format("attribute '{}' is of no kind that operators have", name));
  return datum.tensor();
}

ValueHandle input(const std::shared_ptr<GraphBuilder>& builder, const std::string& name,
                  const std::string& dtype,
                  const std::vector<std::variant<std::int64_t, std::string>>& shape) {
  const auto type = parse_dtype(dtype);
  if (!type) fail(fmt::format("'{}' is not a dtype", dtype), "for example f32, f16, i64, bool");
  Shape sizes;
  for (const auto& size : shape) {
    if (const auto* number = std::get_if<std::int64_t>(&size)) {
      if (*number < 0) fail(fmt::format("{} is not a size", *number));
      sizes.emplace_back(*number);
    } else {
      sizes.push_back(Dim::symbol(std::get<std::string>(size)));
    }
  }
  const ValueHandle value{builder, builder->input(name, *type, std::move(sizes))};
  check(*builder);
  return value;
}

ValueHandle constant(const std::shared_ptr<GraphBuilder>& builder, nb::handle object,
                     const std::string& name) {
  ArrayLibrary library;
  const Datum datum = datum_of(object, library);
  if (!datum.is_tensor()) fail("a constant is an array");
  const Tensor& tensor = datum.tensor();
  // A copy: the array may change while the graph lives.
  return {builder, builder->constant({tensor.dtype, tensor.shape, Bytes::copy(tensor.bytes.view()),
                                      tensor.strings},
                                     name)};
}

std::vector<ValueHandle> call(const std::shared_ptr<GraphBuilder>& builder, const std::string& op,
                              const std::vector<std::optional<ValueHandle>>& inputs,
                              const nb::dict& attributes, int outputs) {
  const OpDef* const found = find_op(op);
  if (found == nullptr || found->kind() == OpDef::Kind::Control)
    fail(fmt::format("'{}' is not an operator", op), "see `tessera operators`");
  Attrs attrs;
  for (const auto& [key, object] : attributes) {
    const std::string name = nb::cast<std::string>(key);
    attrs.set(name, attr_of(name, object));
  }
  Vals values;
  for (const auto& value : inputs) {
    if (value && value->builder != builder) fail("a value belongs to another graph");
    values.push_back(value ? value->value : Val());
  }
  const Vals results = builder->call(*found, values, attrs, outputs);
  check(*builder);
  std::vector<ValueHandle> handles;
  for (const Val& result : results) handles.push_back({builder, result});
  return handles;
}

ModelHandle finish(const std::shared_ptr<GraphBuilder>& builder,
                   const std::vector<std::pair<std::string, ValueHandle>>& outputs) {
  std::vector<std::pair<std::string, Val>> values;
  Model model;
  for (const auto& [name, value] : outputs) {
    if (value.builder != builder) fail("an output belongs to another graph");
    values.emplace_back(name, value.value);
    model.output_names.push_back(name);
  }
  model.graph = value_or_throw(builder->finish(values));
  return {std::make_shared<const Model>(std::move(model))};
}

std::string type_of(const ValueHandle& handle) {
  return to_string(handle.builder->known(handle.value).type);
}

}  // namespace

void bind_graphs(nb::module_& module) {
  nb::class_<ValueHandle>(module, "Value").def_prop_ro("type", type_of);
  nb::class_<GraphBuilder>(module, "GraphBuilder");
  module.def("graph_builder", [] { return std::make_shared<GraphBuilder>(); });
  module.def("graph_input", input, "graph"_a, "name"_a, "dtype"_a, "shape"_a);
  module.def("graph_constant", constant, "graph"_a, "array"_a, "name"_a);
  module.def("graph_call", call, "graph"_a, "op"_a, "inputs"_a, "attributes"_a, "outputs"_a);
  module.def("graph_finish",
             [](const std::shared_ptr<GraphBuilder>& builder, const nb::list& outputs) {
               std::vector<std::pair<std::string, ValueHandle>> pairs;
               for (const nb::handle pair : outputs)
                 pairs.emplace_back(nb::cast<std::string>(pair[0]), nb::cast<ValueHandle>(pair[1]));
               return finish(builder, pairs);
             });
}

}  // namespace tessera::python
