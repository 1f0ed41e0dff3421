#include "tessera/driver/inputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tessera/driver/index_limits.h"
#include "tessera/support/npy.h"
#include "tessera/support/rng.h"

namespace tessera {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

Expected<std::vector<std::int64_t>> concrete_shape(const std::string& name, const Type& type,
                                                   const InputOptions& options) {
  if (const auto given = options.shapes.find(name); given != options.shapes.end())
    return given->second;
  if (!type.is_ranked_tensor())
    return Diagnostic{.id = "run-input-shape",
                      .where = {.item = name},
                      .message = fmt::format("the input is declared as {}", to_string(type)),
                      .help = "give its shape with --reshape NAME=1x2x3, or a file with --input"};
  std::vector<std::int64_t> shape;
  for (const Dim& dim : *type.shape) {
    const Dim bound = dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
      const auto it = options.dims.find(std::string(symbol));
      return it == options.dims.end() ? std::nullopt : std::optional<Dim>(it->second);
    });
    const auto extent = bound.constant();
    if (!extent || *extent < 0)
      return Diagnostic{.id = "run-unbound-dimension",
                        .where = {.item = name},
                        .message = fmt::format("dimension {} has no size", bound.to_string()),
                        .help = fmt::format("give one with --set {}=N", bound.to_string())};
    shape.push_back(*extent);
  }
  return shape;
}

/// Generated tensor; integers are below `index_limit`.
Expected<Tensor> filled(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                        const InputOptions& options, std::int64_t index_limit) {
  if (dtype == DType::String)
    return Diagnostic{.id = "run-input-type",
                      .where = {.item = name},
                      .message = "a string input cannot be generated"};
  const auto count = element_count(shape);
  if (!count || *count > options.memory_limit / byte_width(dtype))
    return Diagnostic{
        .id = "memory-limit",
        .where = {.item = name},
        .message = fmt::format("an input of shape {} does not fit into memory", shape_text(shape)),
        .note = fmt::format("{} bytes are left", options.memory_limit),
        .help = "allow more with --memory-limit"};
  Buffer buffer(static_cast<std::size_t>(*count * byte_width(dtype)));
  Rng rng(options.seed);
  // An axis of size 0 has no valid index.
  const auto numbers = std::max<std::int64_t>(1, std::min<std::int64_t>(index_limit, 1000));
  for (std::int64_t i = 0; i < *count; ++i) {
    const bool random = options.fill == InputOptions::Fill::Random;
    if (is_float(dtype)) {
      const double number = random ? 2 * rng.uniform() - 1 : std::sin(static_cast<double>(i));
      // f8e8m0 (scales) has neither zero nor sign.
      store_number(dtype, buffer.data(), i, dtype == DType::F8E8M0 ? std::exp2(number) : number);
    } else {
      store_integer(dtype, buffer.data(), i,
                    dtype == DType::Bool ? i % 2
                    : random
                        ? static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(numbers)))
                        : i % numbers);
    }
  }
  return Tensor{dtype, std::move(shape), std::move(buffer).freeze()};
}

/// Converts a file's elements to an input dtype that NumPy does not have; the diagnostic names an
/// element that the dtype cannot represent.
Expected<Tensor> restored(const std::string& name, const Tensor& file, DType dtype) {
  Buffer buffer(static_cast<std::size_t>(file.count() * byte_width(dtype)));
  for (std::int64_t i = 0; i < file.count(); ++i)
    store_number(dtype, buffer.data(), i, number_at(file, i));
  Tensor tensor{dtype, file.shape, std::move(buffer).freeze()};
  for (std::int64_t i = 0; i < file.count(); ++i) {
    const double given = number_at(file, i), kept = number_at(tensor, i);
    if (given == kept || (std::isnan(given) && std::isnan(kept))) continue;
    return Diagnostic{.id = "run-input-type",
                      .where = {.item = name},
                      .message = fmt::format("element {} of the file is {}", i, given),
                      .note = fmt::format("the input is of type {}", to_string(dtype))};
  }
  return tensor;
}

Diagnostic unfit(const std::string& name, const Type& type, std::string message) {
  return {.id = "run-input-shape",
          .where = {.item = name},
          .message = std::move(message),
          .note = fmt::format("the model declares {}", to_string(type))};
}

/// Checks a shape against the declared one of an input; sizes of symbols must agree among inputs.
Expected<Done> check_shape(const std::string& name, const std::vector<std::int64_t>& shape,
                           const Type& type, std::map<std::string, std::int64_t>& dims) {
  if (!type.shape) return Done{};
  if (type.shape->size() != shape.size())
    return unfit(name, type, fmt::format("the shape is {}", shape_text(shape)));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim& dim = (*type.shape)[i];
    if (const auto symbol = dim.as_symbol()) {
      const auto [it, fresh] = dims.emplace(std::string(*symbol), shape[i]);
      if (!fresh && it->second != shape[i])
        return unfit(
            name, type,
            fmt::format("dimension {} is {} here and {} elsewhere", *symbol, shape[i], it->second));
    } else if (dim.constant() && *dim.constant() != shape[i]) {
      return unfit(name, type, fmt::format("the shape is {}", shape_text(shape)));
    }
  }
  return Done{};
}

/// Checks a tensor against the declared type of an input; sizes of symbols must agree among inputs.
Expected<Done> check_fits(const std::string& name, const Tensor& tensor, const Type& type,
                          std::map<std::string, std::int64_t>& dims) {
  if (type.kind == Type::Kind::Unknown) return Done{};
  if (type.kind != Type::Kind::Tensor) return unfit(name, type, "the input is not a tensor");
  if (tensor.dtype != type.dtype)
    return unfit(name, type, fmt::format("the elements are of type {}", to_string(tensor.dtype)));
  return check_shape(name, tensor.shape, type, dims);
}

Expected<Done> check_name(const Graph& graph, const std::string& name) {
  std::string names;
  for (const ValueId input : graph.inputs()) {
    if (graph.name(input) == name) return Done{};
    names += (names.empty() ? "" : ", ") + graph.name(input);
  }
  return Diagnostic{.id = "run-unknown-input",
                    .where = {.item = name},
                    .message = "the model has no such input",
                    .note = "its inputs are " + (names.empty() ? "none" : names)};
}

Expected<Done> check_names(const Graph& graph, const InputOptions& options) {
  for (const auto& [name, path] : options.files) TESSERA_TRY_DONE(check_name(graph, name));
  for (const auto& [name, shape] : options.shapes) TESSERA_TRY_DONE(check_name(graph, name));
  const std::set<std::string> symbols = symbolic_dimensions(graph);
  for (const auto& [name, size] : options.dims)
    if (!symbols.contains(name))
      return Diagnostic{.id = "run-unknown-dimension",
                        .where = {.item = name},
                        .message = "no input of the model has such a dimension",
                        .note = symbols.empty() ? "all sizes of its inputs are numbers"
                                                : fmt::format("its symbolic dimensions are {}",
                                                              fmt::join(symbols, ", "))};
  return Done{};
}

}  // namespace

std::set<std::string> symbolic_dimensions(const Graph& graph) {
  std::set<std::string> symbols;
  for (const ValueId input : graph.inputs())
    if (const Type& type = graph.type(input); type.shape)
      for (const Dim& dim : *type.shape) dim.collect_symbols(symbols);
  return symbols;
}

Expected<std::vector<std::optional<std::vector<std::int64_t>>>> input_shapes(
    const Graph& graph, const InputOptions& options) {
  TESSERA_TRY_DONE(check_names(graph, options));
  std::vector<std::optional<std::vector<std::int64_t>>> shapes;
  for (const ValueId input : graph.inputs()) {
    const Type& type = graph.type(input);
    if (type.kind == Type::Kind::Sequence || type.kind == Type::Kind::Optional) {
      shapes.emplace_back();
      continue;
    }
    TESSERA_TRY(shapes.emplace_back(), concrete_shape(graph.name(input), type, options));
  }
  return shapes;
}

Expected<Done> check_shapes(const Graph& graph,
                            std::span<const std::optional<std::vector<std::int64_t>>> shapes) {
  std::map<std::string, std::int64_t> dims;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const ValueId input = graph.inputs()[i];
    if (shapes[i] && graph.type(input).kind == Type::Kind::Tensor)
      TESSERA_TRY_DONE(check_shape(graph.name(input), *shapes[i], graph.type(input), dims));
  }
  return Done{};
}

Expected<std::vector<Datum>> make_inputs(const Graph& graph, InputOptions options) {
  TESSERA_TRY_DONE(check_names(graph, options));
  std::vector<Datum> inputs;
  std::vector<std::optional<std::vector<std::int64_t>>> shapes;
  std::map<std::string, std::int64_t> dims = options.dims;
  bool fills_integers = false;
  for (const ValueId input : graph.inputs()) {
    const std::string name = graph.name(input);
    const Type& type = graph.type(input);
    if (const auto file = options.files.find(name); file != options.files.end()) {
      const bool is_unnamed = npy_dtype(type.dtype) != type.dtype;
      TESSERA_TRY(Tensor tensor,
                  read_npy(file->second, is_unnamed ? std::optional(type.dtype) : std::nullopt));
      if (tensor.dtype != type.dtype && tensor.dtype == npy_dtype(type.dtype)) {
        TESSERA_TRY(tensor, restored(name, tensor, type.dtype));
      }
      if (!options.shapes.contains(name)) TESSERA_TRY_DONE(check_fits(name, tensor, type, dims));
      shapes.emplace_back(tensor.shape);
      inputs.emplace_back(std::move(tensor));
      continue;
    }
    if (options.fill == InputOptions::Fill::None)
      return Diagnostic{.id = "run-missing-input",
                        .where = {.item = name},
                        .message = fmt::format("the input ({}) is not given", to_string(type)),
                        .help = fmt::format("give --input {}=FILE.npy, or --fill sin", name)};
    TESSERA_TRY(shapes.emplace_back(), concrete_shape(name, type, options));
    inputs.emplace_back();
    fills_integers = fills_integers || is_integer(type.dtype);
  }
  std::vector<std::int64_t> limits = fills_integers
                                         ? index_limits(graph, shapes)
                                         : std::vector<std::int64_t>(inputs.size(), kNoLimit);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = graph.name(graph.inputs()[i]);
    if (options.files.contains(name)) continue;
    if (const auto known = options.index_limits.find(name); known != options.index_limits.end())
      limits[i] = std::min(limits[i], known->second);
    TESSERA_TRY(Tensor tensor,
                filled(name, graph.type(graph.inputs()[i]).dtype, *shapes[i], options, limits[i]));
    options.memory_limit -= static_cast<std::int64_t>(tensor.bytes.size());
    inputs[i] = std::move(tensor);
  }
  return inputs;
}

}  // namespace tessera
