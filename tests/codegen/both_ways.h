#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"
#include "tests/codegen/arguments.h"

namespace tessera::codegen {

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
