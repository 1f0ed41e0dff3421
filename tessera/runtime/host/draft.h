#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/support/bytes.h"
#include "tessera/support/tensor.h"

namespace tessera::host {

/// A tensor under construction: zeros or empty strings at first.
class Draft {
 public:
  /// Allocates; the caller has checked the size, see Arguments::allocate.
  Draft(DType dtype, std::vector<std::int64_t> shape);

  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }

  void set_number(std::int64_t position, double value) {
    store_number(dtype_, buffer_.data(), position, value);
  }
  void set_integer(std::int64_t position, std::int64_t value) {
    store_integer(dtype_, buffer_.data(), position, value);
  }
  std::string& text(std::int64_t position) { return strings_[static_cast<std::size_t>(position)]; }

  /// Copies `count` consecutive elements; the dtypes are equal.
  void copy(std::int64_t to, const Tensor& source, std::int64_t from, std::int64_t count);

  Tensor finish() &&;

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::int64_t count_;
  Buffer buffer_;
  std::vector<std::string> strings_;
};

}  // namespace tessera::host
