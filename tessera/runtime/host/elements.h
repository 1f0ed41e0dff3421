#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "tessera/support/check.h"
#include "tessera/support/half.h"
#include "tessera/support/tensor.h"

namespace tessera::host {

/// Storage type of a bool.
enum class StoredBool : std::uint8_t {};

template <class Stored>
auto widened(Stored value) {
  if constexpr (std::is_same_v<Stored, Half> || std::is_same_v<Stored, BFloat16>)
    return to_float(value);
  else if constexpr (std::is_same_v<Stored, StoredBool>)
    return static_cast<std::uint8_t>(value != StoredBool{0});
  else
    return value;
}

/// Read access to the elements of a numeric tensor; 16-bit floats are read as float, bools as 0 and
/// 1.
template <class Stored>
class Numbers {
 public:
  using Key = decltype(widened(Stored{}));

  explicit Numbers(const Tensor& tensor) : memory_(tensor.bytes.data()) {}

  Key operator[](std::int64_t position) const {
    Stored value;  // memory from files need not be aligned
    std::memcpy(&value, memory_ + position * static_cast<std::int64_t>(sizeof(Stored)),
                sizeof(Stored));
    return widened(value);
  }

 private:
  const std::byte* memory_;
};

/// Read access to the elements of a tensor of 8-bit or 4-bit floats, as float.
class SmallFloats {
 public:
  using Key = float;

  explicit SmallFloats(const Tensor& tensor) : tensor_(tensor) {}
  Key operator[](std::int64_t position) const {
    return static_cast<float>(number_at(tensor_, position));
  }

 private:
  const Tensor& tensor_;
};

/// Read access to the elements of a tensor of strings.
class Texts {
 public:
  using Key = std::string;

  explicit Texts(const Tensor& tensor) : strings_(*tensor.strings) {}
  const std::string& operator[](std::int64_t position) const {
    return strings_[static_cast<std::size_t>(position)];
  }

 private:
  std::span<const std::string> strings_;
};

/// Calls `visitor` with an accessor of the tensor's elements, which is indexed by position, for any
/// dtype.
template <class Visitor>
auto visit_elements(const Tensor& tensor, Visitor&& visitor) {
  if (is_small(tensor.dtype) && is_float(tensor.dtype)) return visitor(SmallFloats(tensor));
  switch (storage_of(tensor.dtype)) {
    case DType::F16: return visitor(Numbers<Half>(tensor));
    case DType::BF16: return visitor(Numbers<BFloat16>(tensor));
    case DType::F32: return visitor(Numbers<float>(tensor));
    case DType::F64: return visitor(Numbers<double>(tensor));
    case DType::I8: return visitor(Numbers<std::int8_t>(tensor));
    case DType::I16: return visitor(Numbers<std::int16_t>(tensor));
    case DType::I32: return visitor(Numbers<std::int32_t>(tensor));
    case DType::I64: return visitor(Numbers<std::int64_t>(tensor));
    case DType::U8: return visitor(Numbers<std::uint8_t>(tensor));
    case DType::U16: return visitor(Numbers<std::uint16_t>(tensor));
    case DType::U32: return visitor(Numbers<std::uint32_t>(tensor));
    case DType::U64: return visitor(Numbers<std::uint64_t>(tensor));
    case DType::Bool: return visitor(Numbers<StoredBool>(tensor));
    default: break;
  }
  TESSERA_CHECK(tensor.dtype == DType::String, "an unknown dtype");
  return visitor(Texts(tensor));
}

/// Strict weak order of elements: NaN is the largest number.
struct Before {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return false;
      if (std::isnan(b)) return true;
    }
    return a < b;
  }
};

}  // namespace tessera::host
