#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"

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

/// Runs a kernel by the interpreter and as machine code on the same data and compares all memory:
/// integers and the margins exactly, floats within `tolerance` of their size.
inline void expect_both_ways(const tile::Kernel& kernel, const TestArguments& arguments,
                             const tile::Grid& grid, double tolerance = 1e-5,
                             const Options& options = {}) {
  std::vector<std::vector<std::byte>> expected_memory, actual_memory;
  const auto expected = arguments.copy(expected_memory);
  const auto actual = arguments.copy(actual_memory);
  const auto interpreted = tile::interpret(kernel, expected, grid);
  ASSERT_TRUE(interpreted) << to_string(interpreted.error());
  const auto compiled = compile(kernel, options);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const auto launched = (*compiled)->launch(actual, grid, 2);
  ASSERT_TRUE(launched) << to_string(launched.error());
  std::size_t next = 0;
  for (std::size_t a = 0; a < expected.size(); ++a) {
    const tile::Type& type = expected[a].type;
    if (type.is_number()) continue;
    const std::vector<std::byte>&e = expected_memory[next], &c = actual_memory[next];
    ++next;
    if (!is_float(type.dtype)) {
      ASSERT_EQ(e, c) << kernel.name << ": argument " << a;
      continue;
    }
    const std::int64_t count = expected[a].bytes / byte_width(type.dtype);
    ASSERT_EQ(std::memcmp(e.data() + expected[a].bytes, c.data() + expected[a].bytes,
                          e.size() - static_cast<std::size_t>(expected[a].bytes)),
              0)
        << kernel.name << ": wrote behind argument " << a;
    const Tensor want{
        type.dtype, {count}, Bytes::copy({e.data(), static_cast<std::size_t>(expected[a].bytes)})};
    const Tensor got{
        type.dtype, {count}, Bytes::copy({c.data(), static_cast<std::size_t>(expected[a].bytes)})};
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = number_at(want, i), y = number_at(got, i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(x)))
          << kernel.name << ": argument " << a << " at " << i << ": " << x
          << " by the interpreter, " << y << " as code";
    }
  }
}

inline tile::Kernel parsed(const std::string& text) {
  auto kernel = tile::parse_kernel(text);
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  return kernel ? *std::move(kernel) : tile::Kernel{};
}

}  // namespace tessera::codegen
