#pragma once

#include <cstddef>
#include <vector>

#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/argument.h"

namespace tessera::codegen {

/// Arguments with memory of their own: numbers drawn by seed, a margin of marked bytes behind each.
class TestArguments {
 public:
  explicit TestArguments(std::uint64_t seed) : rng_(seed) {}

  TestArguments& view(DType dtype, tile::Extents shape) {
    const std::int64_t count = tile::Type::tile(dtype, shape).count();
    std::byte* data = fill(dtype, count);
    arguments_.push_back(tile::Argument::view(dtype, data, std::move(shape)));
    return *this;
  }
  /// With gaps: `strides` in elements, the first the largest.
  TestArguments& view(DType dtype, tile::Extents shape, tile::Extents strides) {
    std::byte* data = fill(dtype, shape.front() * strides.front());
    arguments_.push_back(tile::Argument::view(dtype, data, std::move(shape), std::move(strides)));
    return *this;
  }
  TestArguments& pointer(DType dtype, std::int64_t count) {
    std::byte* data = fill(dtype, count);
    arguments_.push_back(tile::Argument::pointer(dtype, data, count * byte_width(dtype)));
    return *this;
  }
  TestArguments& integer(DType dtype, std::int64_t value) {
    arguments_.push_back(tile::Argument::integer(dtype, value));
    return *this;
  }
  TestArguments& number(DType dtype, double value) {
    arguments_.push_back(tile::Argument::number(dtype, value));
    return *this;
  }

  const std::vector<tile::Argument>& arguments() const { return arguments_; }
  /// The same arguments on a copy of the memory.
  std::vector<tile::Argument> copy(std::vector<std::vector<std::byte>>& memory) const {
    memory = memory_;
    std::vector<tile::Argument> copied = arguments_;
    std::size_t next = 0;
    for (tile::Argument& argument : copied) {
      if (argument.type.is_number()) continue;
      argument.data = memory[next++].data();
    }
    return copied;
  }
  const std::vector<std::vector<std::byte>>& memory() const { return memory_; }

 private:
  static constexpr std::size_t kMargin = 64;

  std::byte* fill(DType dtype, std::int64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * byte_width(dtype)) + kMargin,
                                 std::byte{0xA5});
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_float(dtype)) {
        store_number(dtype, bytes.data(), i, static_cast<double>(rng_.below(2000)) / 500.0 - 2.0);
      } else if (dtype == DType::Bool) {
        store_integer(dtype, bytes.data(), i, static_cast<std::int64_t>(rng_.below(2)));
      } else {
        store_integer(dtype, bytes.data(), i, static_cast<std::int64_t>(rng_.below(200)) - 100);
      }
    }
    memory_.push_back(std::move(bytes));
    return memory_.back().data();
  }

  Rng rng_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<tile::Argument> arguments_;
};

}  // namespace tessera::codegen
