#include "tessera/driver/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/support/file.h"
#include "tessera/support/lexer.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/text.h"

namespace tessera {
namespace {

using tile::Argument;
using tile::Type;

Diagnostic bad_argument(const std::string& name, std::string message, std::string note = {}) {
  return {.id = "kernel-argument",
          .where = {.item = name},
          .message = std::move(message),
          .note = std::move(note),
          .help = "an argument is given as --arg x=f32[128,64] or --arg n=1000"};
}

/// What a text says of an argument.
struct Spec {
  std::optional<DType> dtype = {};
  tile::Extents shape = {};
  double number = 0;
};

Expected<std::pair<std::string, Spec>> parse_spec(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return bad_argument(text, fmt::format("'{}' says nothing about an argument", text));
  }
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  Spec spec;
  Lexer lexer(value);
  if (lexer.peek().kind != Token::Kind::Name) {
    if (auto number = lexer.number("a number")) {
      spec.number = *number;
      if (lexer.end()) return std::pair{name, spec};
    }
    return bad_argument(name, fmt::format("'{}' is no number", value));
  }
  spec.dtype = parse_dtype(lexer.take().text);
  if (!spec.dtype || *spec.dtype == DType::String) {
    return bad_argument(name, fmt::format("'{}' does not begin with a dtype", value));
  }
  if (auto begun = lexer.expect("["); !begun) return located(begun.error(), {.item = name});
  while (!lexer.accept("]")) {
    auto extent = lexer.integer("an extent");
    if (!extent) return located(extent.error(), {.item = name});
    if (*extent < 0) return bad_argument(name, fmt::format("an extent of {}", *extent));
    spec.shape.push_back(*extent);
    if (!lexer.at("]")) {
      if (auto comma = lexer.expect(","); !comma) return located(comma.error(), {.item = name});
    }
  }
  if (auto end = lexer.end(); !end) return located(end.error(), {.item = name});
  return std::pair{name, spec};
}

std::vector<std::byte> filled(DType dtype, std::int64_t count, Rng& rng) {
  std::vector<std::byte> memory(static_cast<std::size_t>(count * byte_width(dtype)));
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_float(dtype)) {
      store_number(dtype, memory.data(), i, static_cast<double>(rng.below(4001)) / 1000.0 - 2.0);
    } else {
      const std::uint64_t most = dtype == DType::Bool ? 2 : 100;
      store_integer(dtype, memory.data(), i, static_cast<std::int64_t>(rng.below(most)));
    }
  }
  return memory;
}

}  // namespace

Expected<tile::Kernel> read_kernel(const std::filesystem::path& path) {
  TESSERA_TRY(const std::string text, read_text(path));
  return tile::parse_kernel(text, path.string());
}

Expected<tile::Grid> parse_grid(std::string_view text) {
  tile::Grid grid = {1, 1, 1};
  Lexer lexer(text);
  for (std::size_t axis = 0;; ++axis) {
    auto count = lexer.integer("a number of programs");
    if (!count || axis >= grid.size() || *count < 0) {
      return Diagnostic{.id = "kernel-grid",
                        .message = fmt::format("'{}' is no grid", text),
                        .note = "a grid is one to three counts, such as 64 or 8,12"};
    }
    grid[axis] = *count;
    if (lexer.end()) return grid;
    if (!lexer.accept(",")) {
      return Diagnostic{.id = "kernel-grid",
                        .message = fmt::format("'{}' is no grid", text),
                        .note = "a grid is one to three counts, such as 64 or 8,12"};
    }
  }
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
    const Type& type = kernel.type(param);
    const auto found = specs.find(name);
    data.memory.emplace_back();
    if (type.is_number()) {
      if (found == specs.end()) {
        return bad_argument(name, fmt::format("the number {} is not given", name));
      }
      if (found->second.dtype)
        return bad_argument(name, fmt::format("{} is a number, not memory", name));
      const double number = found->second.number;
      data.arguments.push_back(
          is_float(type.dtype) ? Argument::number(type.dtype, number)
                               : Argument::integer(type.dtype, static_cast<std::int64_t>(number)));
      specs.erase(found);
      continue;
    }
    tile::Extents shape = type.shape;
    if (found != specs.end()) {
      if (found->second.dtype != type.dtype) {
        return bad_argument(name,
                            fmt::format("{} is not memory of {}", name, to_string(type.dtype)),
                            fmt::format("the parameter is {}", to_string(type)));
      }
      shape = found->second.shape;
      specs.erase(found);
    } else if (type.is_pointer() || std::count(shape.begin(), shape.end(), tile::kDynamic) > 0) {
      return bad_argument(name, fmt::format("the extents of {} are not given", name),
                          fmt::format("the parameter is {}", to_string(type)));
    }
    const auto count = element_count(shape);
    if (!count || *count > (options.memory_limit - bytes) / byte_width(type.dtype)) {
      return bad_argument(name, fmt::format("{} takes more memory than the limit", name));
    }
    bytes += *count * byte_width(type.dtype);
    data.memory.back() = filled(type.dtype, *count, rng);
    std::byte* memory = data.memory.back().data();
    data.arguments.push_back(
        type.is_pointer() ? Argument::pointer(type.dtype, memory, *count * byte_width(type.dtype))
                          : Argument::view(type.dtype, memory, std::move(shape)));
  }
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

KernelComparison compare(const tile::Kernel& kernel, const KernelData& expected,
                         const KernelData& found, double tolerance) {
  KernelComparison comparison;
  for (std::size_t i = 0; i < expected.arguments.size(); ++i) {
    const Type& type = expected.arguments[i].type;
    if (type.is_number()) continue;
    KernelComparison::Row row{.name = kernel.values[kernel.params()[i]].name,
                              .type = to_string(type)};
    const auto count =
        static_cast<std::int64_t>(expected.memory[i].size()) / byte_width(type.dtype);
    const Tensor a{type.dtype, {count}, Bytes::copy(expected.memory[i])};
    const Tensor b{type.dtype, {count}, Bytes::copy(found.memory[i])};
    for (std::int64_t at = 0; at < count; ++at) {
      if (!is_float(type.dtype)) {
        if (integer_at(a, at) != integer_at(b, at)) ++row.different;
        continue;
      }
      const double x = number_at(a, at), y = number_at(b, at);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double apart = std::fabs(x - y) / std::max(1.0, std::fabs(x));
      if (!(apart <= tolerance)) ++row.different;
      row.worst = std::isnan(apart) ? apart : std::max(row.worst, apart);
    }
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
