#include "tessera/tile/type.h"

#include <fmt/format.h>

#include <cstddef>

namespace tessera::tile {
namespace {

std::string list_text(const Extents& extents) {
  std::string text = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i > 0) text += ", ";
    text += extents[i] == kDynamic ? "?" : fmt::format("{}", extents[i]);
  }
  return text + "]";
}

}  // namespace

Extents without(Extents extents, std::int64_t axis) {
  if (axis >= 0 && axis < std::ssize(extents)) extents.erase(extents.begin() + axis);
  return extents;
}

Type Type::view(DType dtype, Extents shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    const bool known = strides[i] != kDynamic && shape[i] != kDynamic;
    strides[i - 1] = known ? strides[i] * shape[i] : kDynamic;
  }
  return {Kind::View, dtype, std::move(shape), std::move(strides)};
}

std::int64_t Type::count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Type& type) {
  const std::string_view element = to_string(type.dtype);
  switch (type.kind) {
    case Type::Kind::Number:
    case Type::Kind::Pointer:
      return fmt::format("{}{}{}", type.is_pointer() ? "*" : "", element,
                         type.shape.empty() ? "" : list_text(type.shape));
    case Type::Kind::View: {
      std::string text = fmt::format("view {}{}", element, list_text(type.shape));
      if (type.strides != Type::view(type.dtype, type.shape).strides) {
        text += " by " + list_text(type.strides);
      }
      return text;
    }
  }
  return {};
}

}  // namespace tessera::tile
