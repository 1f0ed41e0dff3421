#include "tessera/tile/type_check.h"

#include <fmt/format.h>

#include <utility>

#include "tessera/tile/function.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

unsigned dtype_mask(DType dtype) {
  if (dtype == DType::Bool) return kBools;
  return is_float(dtype) ? kFloats : kIntegers;
}

}  // namespace

bool takes(Function function, DType dtype) {
  return (info_of(function).domain & dtype_mask(dtype)) != 0;
}

std::string domain_text(Function function) {
  std::string text;
  for (const auto& [kind, name] : {std::pair{kFloats, "floats"}, std::pair{kIntegers, "integers"},
                                   std::pair{kBools, "bools"}}) {
    if ((info_of(function).domain & kind) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " or ", name);
  }
  return text;
}

bool folds(Function function) {
  return (info_of(function).traits & kFold) != 0;
}

bool is_atomic(Function function) {
  return (info_of(function).traits & kAtomic) != 0;
}

bool fits(DType dtype, std::int64_t integer) {
  if (dtype == DType::Bool) return integer == 0 || integer == 1;
  const int bits = 8 * byte_width(dtype);
  if (bits == 64) return true;
  const std::int64_t high = (std::int64_t{1} << (is_signed(dtype) ? bits - 1 : bits)) - 1;
  return integer >= (is_signed(dtype) ? -high - 1 : 0) && integer <= high;
}

std::optional<std::string> type_mistake(const Type& type) {
  if (type.dtype == DType::String) return "a dtype other than string";
  if (is_small(type.dtype)) return "a dtype to compute with: small types are stored in i8 or u8";
  if (type.rank() > kMostAxes) return fmt::format("{} axes at most", kMostAxes);
  const bool view = type.is_view();
  if (view && type.rank() == 0) return "a view has axes";
  if (type.strides.size() != (view ? type.shape.size() : 0))
    return "a stride for each axis of a view";
  const std::int64_t most = view ? kMostViewElements : kMostElements;
  std::int64_t count = 1;
  for (const std::int64_t extent : type.shape) {
    if (view && (extent == kDynamic || extent == 0)) continue;
    if (extent < 1) return view ? "extents of at least 0" : "extents of at least 1";
    if (extent > most / count) return fmt::format("{} elements at most", most);
    count *= extent;
  }
  for (const std::int64_t stride : type.strides) {
    if (stride != kDynamic && (stride < 0 || stride > kMostViewElements)) {
      return fmt::format("strides of 0 to {}", kMostViewElements);
    }
  }
  return {};
}

Diagnostic::Where place_of(const Source& source) {
  return {.file = source.file,
          .item = source.line > 0 ? fmt::format("line {}", source.line) : std::string{}};
}

}  // namespace tessera::tile
