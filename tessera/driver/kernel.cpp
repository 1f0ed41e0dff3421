#include "tessera/driver/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tessera/driver/element_differences.h"
#include "tessera/expr/text.h"
#include "tessera/support/file.h"
#include "tessera/support/lexer.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/text.h"
#include "tessera/triton/lower.h"

namespace tessera {
namespace {

Diagnostic bad_argument(const std::string& name, std::string message, std::string note = {}) {
  return {.id = "kernel-argument",
          .where = {.item = name},
          .message = std::move(message),
          .note = std::move(note),
          .help = "an argument is given as --arg x=f32[128,64] or --arg n=1000"};
}

/// Parsed description of an argument.
struct Spec {
  std::optional<DType> dtype = {};
  tile::Extents shape = {};
  std::optional<tile::Extents> strides = {};
  std::optional<std::int64_t> below = {};  // integers from 0 to less than it
  double number = 0;
  std::optional<std::int64_t> integer = {};  // where the number is one
};

/// `[128, 64]`: extents or strides.
Expected<tile::Extents> parse_extents(Lexer& lexer, const std::string& name) {
  tile::Extents extents;
  if (auto begun = lexer.expect("["); !begun) return located(begun.error(), {.item = name});
  while (!lexer.accept("]")) {
    auto extent = lexer.integer("an extent");
    if (!extent) return located(extent.error(), {.item = name});
    if (*extent < 0) return bad_argument(name, fmt::format("an extent of {}", *extent));
    extents.push_back(*extent);
    if (!lexer.at("]")) {
      if (auto comma = lexer.expect(","); !comma) return located(comma.error(), {.item = name});
    }
  }
  return extents;
}

/// `f32[128, 64] by [1, 128]`, `i32[100] below 7`.
Expected<Spec> parse_memory(const std::string& name, const std::string& value) {
  Spec spec;
  Lexer lexer(value);
  spec.dtype = parse_dtype(lexer.take().text);
  if (!spec.dtype || *spec.dtype == DType::String)
    return bad_argument(name, fmt::format("'{}' does not begin with a dtype", value));
  TESSERA_TRY(spec.shape, parse_extents(lexer, name));
  if (lexer.accept("by")) {
    TESSERA_TRY(spec.strides, parse_extents(lexer, name));
    if (spec.strides->size() != spec.shape.size())
      return bad_argument(
          name, fmt::format("{} strides for {} axes", spec.strides->size(), spec.shape.size()));
  }
  if (lexer.accept("below")) {
    auto below = lexer.integer("what numbers are less than");
    if (!below) return located(below.error(), {.item = name});
    if (*below < 1) return bad_argument(name, fmt::format("no number is below {}", *below));
    spec.below = *below;
  }
  if (auto end = lexer.end(); !end) return located(end.error(), {.item = name});
  return spec;
}

Expected<std::pair<std::string, Spec>> parse_spec(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return bad_argument(text, fmt::format("'{}' says nothing about an argument", text));
  }
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (Lexer(value).peek().kind == Token::Kind::Name) {
    TESSERA_TRY(Spec spec, parse_memory(name, value));
    return std::pair{name, std::move(spec)};
  }
  Spec spec;
  if (Lexer lexer(value); auto integer = lexer.integer("a number"))
    if (lexer.end()) spec.integer = *integer;
  Lexer lexer(value);
  const auto number = lexer.number("a number");
  if (!number || !lexer.end())
    return bad_argument(name, fmt::format("'{}' is not a number", value));
  spec.number = *number;
  return std::pair{name, spec};
}

/// Random content, which repeats in long arrays: drawing every element would dominate the run time.
std::vector<std::byte> filled(DType dtype, std::int64_t count, const Spec& spec, Rng& rng) {
  constexpr std::int64_t kDrawn = (1 << 22) + 7;
  std::vector<std::byte> memory(static_cast<std::size_t>(count * byte_width(dtype)));
  const std::size_t drawn = static_cast<std::size_t>(std::min(count, kDrawn) * byte_width(dtype));
  const std::uint64_t most = dtype == DType::Bool ? 2 : 100;
  const std::uint64_t below = spec.below ? static_cast<std::uint64_t>(*spec.below) : most;
  for (std::int64_t i = 0; i < std::min(count, kDrawn); ++i) {
    if (is_float(dtype)) {
      store_number(dtype, memory.data(), i, static_cast<double>(rng.below(4001)) / 1000.0 - 2.0);
    } else {
      store_integer(dtype, memory.data(), i, static_cast<std::int64_t>(rng.below(below)));
    }
  }
  for (std::size_t at = drawn; at < memory.size(); at += drawn)
    std::memcpy(memory.data() + at, memory.data(), std::min(drawn, memory.size() - at));
  return memory;
}

/// A number for a parameter that is one.
Expected<tile::Argument> number_of(const std::string& name, DType dtype, const Spec& spec) {
  if (spec.dtype) return bad_argument(name, fmt::format("{} is a number, not memory", name));
  if (is_float(dtype)) return tile::Argument::number(dtype, spec.number);
  if (!spec.integer)
    return bad_argument(name, fmt::format("{} is not a valid {}", spec.number, to_string(dtype)),
                        "the parameter is an integer");
  return tile::Argument::integer(dtype, *spec.integer);
}

/// Integers that the grid of a launch may depend on: constants, arguments, and extents of memory
/// (`x.0`).
std::map<std::string, std::uint64_t> launch_names(const tile::Kernel& kernel,
                                                  const KernelData& data) {
  std::map<std::string, std::uint64_t> names;
  for (const tile::Constant& one : kernel.constants)
    names[one.name] = static_cast<std::uint64_t>(one.value);
  for (std::size_t i = 0; i < data.arguments.size(); ++i) {
    const tile::Argument& argument = data.arguments[i];
    const std::string& name = kernel.values[kernel.params()[i]].name;
    if (argument.type.is_number()) {
      if (!is_float(argument.type.dtype) && argument.literal.integer >= 0)
        names[name] = static_cast<std::uint64_t>(argument.literal.integer);
      continue;
    }
    const tile::Extents& shape = argument.type.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      names[fmt::format("{}.{}", name, axis)] = static_cast<std::uint64_t>(shape[axis]);
  }
  return names;
}

}  // namespace

Expected<tile::Kernel> read_kernel(const std::filesystem::path& path,
                                   const std::vector<tile::Constant>& constants) {
  TESSERA_TRY(const std::string text, read_text(path));
  if (path.extension() == ".ttir") return triton::kernel_of(text, path.string());
  return tile::parse_kernel(text, path.string(), constants);
}

Expected<std::vector<tile::Constant>> constants_of(const std::vector<std::string>& arguments) {
  std::vector<tile::Constant> constants;
  for (const std::string& argument : arguments) {
    TESSERA_TRY(const auto spec, parse_spec(argument));
    if (spec.second.integer) constants.push_back({spec.first, *spec.second.integer});
  }
  return constants;
}

Expected<KernelData> make_kernel_data(const tile::Kernel& kernel,
                                      const KernelDataOptions& options) {
  std::map<std::string, Spec> specs;
  for (const std::string& text : options.arguments) {
    TESSERA_TRY(auto spec, parse_spec(text));
    specs[spec.first] = spec.second;
  }
  Rng rng(options.seed);
  KernelData data;
  std::int64_t bytes = 0;
  for (const tile::ValueId param : kernel.params()) {
    const std::string& name = kernel.values[param].name;
    const tile::Type& type = kernel.type(param);
    const auto found = specs.find(name);
    data.memory.emplace_back();
    if (type.is_number()) {
      if (found == specs.end()) {
        return bad_argument(name, fmt::format("the number {} is not given", name));
      }
      TESSERA_TRY(tile::Argument number, number_of(name, type.dtype, found->second));
      data.arguments.push_back(std::move(number));
      specs.erase(found);
      continue;
    }
    Spec spec{.shape = type.shape};
    if (found != specs.end()) {
      if (found->second.dtype != type.dtype) {
        return bad_argument(name,
                            fmt::format("{} is not memory of {}", name, to_string(type.dtype)),
                            fmt::format("the parameter is {}", to_string(type)));
      }
      spec = found->second;
      specs.erase(found);
    } else if (type.is_pointer() ||
               std::count(spec.shape.begin(), spec.shape.end(), tile::kDynamic) > 0) {
      return bad_argument(name, fmt::format("the extents of {} are not given", name),
                          fmt::format("the parameter is {}", to_string(type)));
    }
    const auto count = element_count(spec.shape);
    const std::int64_t width = byte_width(type.dtype), room = options.memory_limit - bytes;
    if (!count || *count > room / width)
      return bad_argument(name, fmt::format("{} takes more memory than the limit", name));
    tile::Argument argument =
        type.is_pointer() ? tile::Argument::pointer(type.dtype, nullptr, *count * width)
        : spec.strides    ? tile::Argument::view(type.dtype, nullptr, spec.shape, *spec.strides)
                          : tile::Argument::view(type.dtype, nullptr, spec.shape);
    if (argument.bytes > room)  // strides reach further than the elements are many
      return bad_argument(name, fmt::format("{} takes more memory than the limit", name));
    bytes += argument.bytes;
    data.memory.back() = filled(type.dtype, argument.bytes / width, spec, rng);
    argument.data = data.memory.back().data();
    data.arguments.push_back(std::move(argument));
  }
  for (const tile::Constant& one : kernel.constants) specs.erase(one.name);
  if (!specs.empty()) {
    const std::string& name = specs.begin()->first;
    return bad_argument(name, fmt::format("{} has no parameter {}", kernel.name, name));
  }
  return data;
}

KernelData copy_of(const KernelData& data) {
  KernelData copy = data;
  for (std::size_t i = 0; i < copy.arguments.size(); ++i) {
    if (!copy.arguments[i].type.is_number()) copy.arguments[i].data = copy.memory[i].data();
  }
  return copy;
}

Expected<tile::Grid> parse_grid(std::string_view text, const tile::Kernel& kernel,
                                const KernelData& data) {
  const auto bad = [&](const std::string& reason) {
    return Diagnostic{.id = "kernel-grid",
                      .message = fmt::format("'{}' is not a grid: {}", text, reason),
                      .note = "a grid is one to three counts, such as 64 or 8,12",
                      .help = "counts may use arguments: ceil_div(out.0, BLOCK)"};
  };
  Lexer lexer(text);
  for (const auto& [name, value] : launch_names(kernel, data)) lexer.define(name, value);
  tile::Grid grid = {1, 1, 1};
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const auto count = parse_dim(lexer);
    if (!count) return bad(count.error().message);
    if (!count->constant() || *count->constant() < 0)
      return bad(fmt::format("{} is not a count", count->to_string()));
    grid[axis] = *count->constant();
    if (lexer.end()) return grid;
    if (!lexer.accept(",")) return bad(lexer.expected("the end of the text").message);
  }
  return bad("it has more than three axes");
}

KernelComparison compare(const tile::Kernel& kernel, const KernelData& expected,
                         const KernelData& found, double tolerance) {
  KernelComparison comparison;
  for (std::size_t i = 0; i < expected.arguments.size(); ++i) {
    const tile::Type& type = expected.arguments[i].type;
    if (type.is_number()) continue;
    KernelComparison::Row row{.name = kernel.values[kernel.params()[i]].name,
                              .type = to_string(type)};
    const auto count =
        static_cast<std::int64_t>(expected.memory[i].size()) / byte_width(type.dtype);
    const Tensor a{type.dtype, {count}, Bytes::copy(expected.memory[i])};
    const Tensor b{type.dtype, {count}, Bytes::copy(found.memory[i])};
    const ElementDifferences differences =
        element_differences(b, a, tolerance, [](double x) { return std::max(1.0, std::fabs(x)); });
    row.different = differences.count;
    row.worst = differences.worst;
    comparison.agrees = comparison.agrees && row.different == 0;
    comparison.rows.push_back(std::move(row));
  }
  return comparison;
}

double default_tolerance(const tile::Kernel& kernel) {
  double tolerance = 1e-10;
  for (const tile::Value& value : kernel.values) {
    if (value.type.dtype == DType::F32) tolerance = std::max(tolerance, 1e-4);
    if (value.type.dtype == DType::F16) tolerance = std::max(tolerance, 4e-3);
    if (value.type.dtype == DType::BF16) tolerance = std::max(tolerance, 3e-2);
  }
  return tolerance;
}

}  // namespace tessera
