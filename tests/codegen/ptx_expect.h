#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "examples/matmul.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/tile/interp.h"
#include "tests/codegen/both_ways.h"
#include "tests/codegen/first_difference.h"
#include "tests/codegen/ptx_emulator.h"

namespace tessera::codegen {

inline std::string ptx_text(const Expected<tile::Kernel>& kernel, const PtxOptions& options = {}) {
  EXPECT_TRUE(kernel) << to_string(kernel.error());
  const auto compiled = ptx_of(*kernel, options);
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  return compiled ? compiled->text : std::string();
}

/// Integers and what lies behind an argument are equal, floats within the tolerance
/// (first_difference.h).
inline void expect_equal(const tile::Argument& argument, const std::vector<std::byte>& expected,
                         const std::vector<std::byte>& found, double tolerance) {
  const auto bytes = static_cast<std::size_t>(argument.bytes);
  ASSERT_TRUE(
      std::equal(expected.begin() + argument.bytes, expected.end(), found.begin() + argument.bytes))
      << "wrote behind the argument";
  const std::string difference = first_difference({.dtype = argument.type.dtype,
                                                   .expected = {expected.data(), bytes},
                                                   .found = {found.data(), bytes}},
                                                  tolerance);
  ASSERT_TRUE(difference.empty()) << difference << " by threads";
}

/// Emulated threads leave the memory behind that the interpreter does, whichever warp is first.
inline void expect_emulated(const Expected<tile::Kernel>& kernel, const TestArguments& arguments,
                            const tile::Grid& grid, double tolerance = 1e-5,
                            const PtxOptions& options = {}) {
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  std::vector<std::vector<std::byte>> expected_memory, found_memory;
  const auto expected = arguments.copy(expected_memory);
  const auto interpreted = tile::interpret(*kernel, expected, grid);
  ASSERT_TRUE(interpreted) << to_string(interpreted.error());
  for (const bool backwards : {false, true}) {
    const auto found = arguments.copy(found_memory);
    const auto emulated = emulate(*kernel, found, grid, {.ptx = options, .backwards = backwards});
    ASSERT_TRUE(emulated) << to_string(emulated.error());
    std::size_t next = 0;
    for (const tile::Argument& argument : expected) {
      if (argument.type.is_number()) continue;
      expect_equal(argument, expected_memory[next], found_memory[next], tolerance);
      ++next;
    }
  }
}

/// A product of matrices by the example's kernel.
struct MatmulCase {
  DType dtype, result;
  std::int64_t m, n, k;
  tile::examples::MatmulTiles tiles;

  Expected<tile::Kernel> kernel() const { return tile::examples::matmul(dtype, result, tiles); }
  double tolerance() const {
    return result == DType::BF16 ? 2e-2 : result == DType::F16 ? 4e-3 : 5e-5;
  }
};

inline void expect_multiplied(const MatmulCase& c, const PtxOptions& options, double tolerance) {
  SCOPED_TRACE(::testing::Message()
               << to_string(c.dtype) << ' ' << c.m << ' ' << c.n << ' ' << c.k);
  expect_emulated(c.kernel(),
                  TestArguments(1)
                      .view(c.dtype, {c.m, c.k})
                      .view(c.dtype, {c.k, c.n})
                      .view(c.result, {c.m, c.n}),
                  {tile::examples::matmul_programs(c.m, c.n, c.tiles), 1, 1}, tolerance, options);
}
inline void expect_multiplied(const MatmulCase& c, const PtxOptions& options = {}) {
  expect_multiplied(c, options, c.tolerance());
}

}  // namespace tessera::codegen
