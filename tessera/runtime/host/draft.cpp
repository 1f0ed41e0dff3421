#include "tessera/runtime/host/draft.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/support/check.h"

namespace tessera::host {
namespace {

std::int64_t checked_count(const std::vector<std::int64_t>& shape) {
  const auto count = element_count(shape);
  TESSERA_CHECK(count.has_value(), "a draft of a shape without an element count");
  return *count;
}

}  // namespace

Draft::Draft(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      count_(checked_count(shape_)),
      buffer_(static_cast<std::size_t>(count_ * byte_width(dtype))),
      strings_(dtype == DType::String ? static_cast<std::size_t>(count_) : 0) {}

void Draft::copy(std::int64_t to, const Tensor& source, std::int64_t from, std::int64_t count) {
  if (count == 0) return;
  TESSERA_CHECK(dtype_ == source.dtype, "a copy from {} to {}", to_string(source.dtype),
                to_string(dtype_));
  if (dtype_ == DType::String) {
    std::copy_n(source.strings->begin() + from, count, strings_.begin() + to);
  } else {
    const std::int64_t width = byte_width(dtype_);
    std::memcpy(buffer_.data() + to * width, source.bytes.data() + from * width,
                static_cast<std::size_t>(count * width));
  }
}

Tensor Draft::finish() && {
  if (dtype_ == DType::String) return Tensor::of_strings(std::move(shape_), std::move(strings_));
  return {dtype_, std::move(shape_), std::move(buffer_).freeze()};
}

}  // namespace tessera::host
