#include "tessera/expr/shape.h"

#include <algorithm>

namespace tessera {
namespace {

Diagnostic mismatch(const std::string& operand, std::size_t axis, const Dim& found,
                    const Dim& expected) {
  return {.id = "shape-mismatch",
          .message = fmt::format("axis {} of {} has size {}", axis, operand, found.to_string()),
          .note = expected.is_undefined()
                      ? "the other operands require a size beyond 64 bits"
                      : fmt::format("the other operands require {}", expected.to_string())};
}

bool is_unknown(std::string_view symbol) {
  return symbol.starts_with('#');
}

/// The one unknown axis size of a pattern; nothing if there is none or more than one.
std::optional<std::string_view> only_unknown(const Dim& pattern) {
  std::optional<std::string_view> unknown;
  const bool several = pattern.any_symbol([&](std::string_view symbol) {
    if (!is_unknown(symbol) || unknown == symbol) return false;
    if (unknown) return true;
    unknown = symbol;
    return false;
  });
  return several ? std::nullopt : unknown;
}

bool has_unknown(const Dim& pattern) {
  return pattern.any_symbol(is_unknown);
}

struct Equation {
  const std::string* operand;
  std::size_t axis;
  Dim pattern, found;
};

}  // namespace

Dim resolved(const Dim& dim, const Sizes& sizes) {
  if (dim.constant()) return dim;
  if (const auto symbol = dim.as_symbol()) {  // as most are
    const auto it = sizes.find(*symbol);
    return it == sizes.end() ? dim : it->second;
  }
  return dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
    const auto it = sizes.find(symbol);
    if (it == sizes.end()) return std::nullopt;
    return it->second;
  });
}

Expected<Sizes> solve_sizes(const Definition& definition, const std::vector<Shape>& inputs) {
  TESSERA_CHECK(inputs.size() == definition.inputs.size(), "{} inputs for {} operands",
                inputs.size(), definition.inputs.size());
  std::vector<Equation> open;
  std::size_t count = 0;
  for (const Shape& shape : inputs) count += shape.size();
  open.reserve(count);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Operand& operand = definition.inputs[i];
    if (operand.shape.size() != inputs[i].size())
      return Diagnostic{.id = "shape-rank",
                        .message = fmt::format("{} has {} axes", operand.name, inputs[i].size()),
                        .note = fmt::format("{} are expected", operand.shape.size())};
    for (std::size_t axis = 0; axis < inputs[i].size(); ++axis)
      open.push_back({&operand.name, axis, operand.shape[axis], inputs[i][axis]});
  }
  // Solves equations with numbers first, so that a number wins over a symbol; then those whose
  // unknown is an axis itself and needs no division.
  std::ranges::stable_sort(open, {}, [](const Equation& equation) {
    return equation.found.constant() ? 0 : equation.pattern.as_symbol() ? 1 : 2;
  });
  Sizes sizes;
  for (bool progress = true; progress && !open.empty();) {
    progress = false;
    std::vector<Equation> later;
    for (Equation& equation : open) {
      const Dim pattern = resolved(equation.pattern, sizes);
      if (!has_unknown(pattern)) {
        progress = true;
        const std::optional<std::int64_t> difference = (pattern - equation.found).constant();
        if (pattern.is_undefined() || (difference && *difference != 0))
          return mismatch(*equation.operand, equation.axis, equation.found, pattern);
        continue;
      }
      const std::optional<std::string_view> unknown = only_unknown(pattern);
      const auto linear = unknown ? pattern.linear_in(*unknown) : std::nullopt;
      if (!linear) {
        later.push_back(std::move(equation));
        continue;
      }
      const Dim numerator = equation.found - linear->rest;
      const Dim size = floor_div(numerator, linear->factor);
      if (size.is_undefined() || (size * linear->factor - numerator).constant().value_or(0) != 0)
        return mismatch(*equation.operand, equation.axis, equation.found, pattern);
      sizes.insert_or_assign(std::string(*unknown), size);
      progress = true;
    }
    open = std::move(later);
  }
  TESSERA_CHECK(open.empty(), "axis {} of {} leaves sizes undetermined", open.front().axis,
                *open.front().operand);
  return sizes;
}

Expected<std::vector<TensorType>> output_types(const Definition& definition, const Sizes& sizes) {
  std::vector<TensorType> types;
  for (const Output& output : definition.outputs) {
    TensorType type{.dtype = output.dtype};
    for (const Dim& dim : output.shape()) {
      const Dim size = resolved(dim, sizes);
      TESSERA_CHECK(!has_unknown(size), "an axis of {} has no size", output.name);
      if (size.is_undefined() || size.constant().value_or(0) < 0)
        return Diagnostic{
            .id = "shape-negative",
            .message = fmt::format("{} would have size {}", output.name,
                                   size.is_undefined() ? "beyond 64 bits" : size.to_string())};
      type.shape.push_back(size);
    }
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace tessera
