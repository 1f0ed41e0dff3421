#pragma once

#include <array>
#include <concepts>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/support/half.h"
#include "tessera/tile/argument.h"

namespace tessera::tile {

/// The dtype of a C++ type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  if constexpr (std::is_same_v<T, Half>) return DType::F16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::BF16;
  if constexpr (std::is_same_v<T, float>) return DType::F32;
  if constexpr (std::is_same_v<T, double>) return DType::F64;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr DType kSigned[] = {DType::I8, DType::I16, DType::I32, DType::I64};
    constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
    constexpr int kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kLog] : kUnsigned[kLog];
  }
}

/// Contiguous memory of a known size: a vector, an array, a span.
template <class T>
concept Memory = std::ranges::contiguous_range<T> && std::ranges::sized_range<T>;

/// Kernel argument from a C++ number, from memory (as a pointer and its size), or as given.
inline Argument argument(const Argument& given) {
  return given;
}
template <class T>
requires std::is_arithmetic_v<T> Argument argument(T number) {
  if constexpr (std::is_floating_point_v<T>) return Argument::number(dtype_of<T>(), number);
  return Argument::integer(dtype_of<T>(), static_cast<std::int64_t>(number));
}
template <Memory T>
Argument argument(T&& memory) {
  using Element = std::remove_cv_t<std::ranges::range_value_t<T>>;
  const auto* data = std::ranges::data(memory);
  // Kernels may read what the host holds constant; that they do not write it is their business.
  return Argument::pointer(dtype_of<Element>(), const_cast<Element*>(data),
                           static_cast<std::int64_t>(std::ranges::size(memory) * sizeof(Element)));
}
/// Memory as a view, row by row or with strides in elements. Launching checks that it is enough.
template <Memory T>
Argument view_of(T&& memory, Extents shape) {
  const Argument pointer = argument(memory);
  Argument view = Argument::view(pointer.type.dtype, pointer.data, std::move(shape));
  view.bytes = pointer.bytes;
  return view;
}
template <Memory T>
Argument view_of(T&& memory, Extents shape, Extents strides) {
  const Argument pointer = argument(memory);
  Argument view =
      Argument::view(pointer.type.dtype, pointer.data, std::move(shape), std::move(strides));
  view.bytes = pointer.bytes;
  return view;
}

/// List of kernel arguments for a launch: `arguments(x, view_of(y, {4, 8}), n)`.
template <class... T>
std::vector<Argument> arguments(T&&... values) {
  return {argument(std::forward<T>(values))...};
}

/// Arguments with numbers converted to the parameter types of the kernel where those can hold them:
/// an int for an i64, a double for an f32.
std::vector<Argument> fitted(const Kernel& kernel, std::vector<Argument> arguments);
template <class... T>
std::vector<Argument> arguments_of(const Kernel& kernel, T&&... values) {
  return fitted(kernel, arguments(std::forward<T>(values)...));
}

}  // namespace tessera::tile
