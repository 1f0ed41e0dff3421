#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/rng.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"
#include "tests/tile/random_kernel.h"

namespace tessera::testing {

using TilePass = std::function<tile::Kernel(const tile::Kernel&)>;

inline tile::Kernel parsed_kernel(std::string_view text) {
  auto kernel = tile::parse_kernel(text);
  EXPECT_TRUE(kernel) << (kernel ? "" : to_string(kernel.error())) << "\n" << text;
  return kernel ? *std::move(kernel) : tile::Kernel{};
}

/// As text, with names that say nothing but the order of definitions.
inline std::string anonymous(tile::Kernel kernel) {
  for (tile::Value& value : kernel.values) value.name.clear();
  return tile::to_text(kernel);
}

inline void expect_valid(const tile::Kernel& kernel) {
  const auto valid = tile::verify(kernel);
  EXPECT_TRUE(valid) << (valid ? "" : to_string(valid.error())) << "\n" << tile::to_text(kernel);
}

struct PassCase {
  TilePass pass;
  std::string_view before, after;
};

/// The pass makes `after` of `before`, and nothing more the second time.
inline void expect_pass(const PassCase& check) {
  const tile::Kernel once = check.pass(parsed_kernel(check.before));
  expect_valid(once);
  EXPECT_EQ(anonymous(once), anonymous(parsed_kernel(check.after)));
  EXPECT_EQ(anonymous(check.pass(once)), anonymous(once));
}

inline void expect_unchanged(const TilePass& pass, std::string_view text) {
  expect_pass({pass, text, text});
}

/// The kernel does the same to its memory after the pass, bit for bit.
inline void expect_same_meaning(const TilePass& pass, const RandomKernel& random) {
  const tile::Kernel after = pass(random.kernel);
  expect_valid(after);
  Memory expected = random.memory, found = random.memory;
  const auto on_expected = random.arguments(expected), on_found = random.arguments(found);
  const auto ran = tile::interpret(random.kernel, on_expected, random.grid);
  ASSERT_TRUE(ran) << to_string(ran.error()) << "\n" << tile::to_text(random.kernel);
  const auto reran = tile::interpret(after, on_found, random.grid);
  ASSERT_TRUE(reran) << to_string(reran.error()) << "\n" << tile::to_text(after);
  EXPECT_EQ(difference(random, expected, found), "") << tile::to_text(after);
}

/// A kernel with what it is launched on, for each parameter: a number, how many elements a pointer
/// has, the extents of a view. Memory holds small numbers that follow from the seed.
inline RandomKernel launched(const tile::Kernel& kernel, const tile::Grid& grid,
                             const std::vector<tile::Extents>& arguments, std::uint64_t seed = 1) {
  RandomKernel made{.kernel = kernel, .grid = grid};
  Rng rng(seed);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const tile::Type& type = kernel.type(kernel.params()[i]);
    const DType dtype = type.dtype;
    if (type.is_number()) {
      made.on_nothing.push_back(
          is_float(dtype) ? tile::Argument::number(dtype, static_cast<double>(arguments[i][0]))
                          : tile::Argument::integer(dtype, arguments[i][0]));
      made.buffer.emplace_back();
      continue;
    }
    std::int64_t count = 1;
    for (const std::int64_t extent : arguments[i]) count *= extent;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * byte_width(dtype)));
    for (std::int64_t at = 0; at < count; ++at) {
      const std::int64_t number = static_cast<std::int64_t>(rng.below(200)) - 100;
      const auto real = static_cast<float>(number);
      const auto wide = static_cast<double>(number);
      const void* element = &number;
      if (is_float(dtype)) element = &real;
      if (dtype == DType::F64) element = &wide;
      std::memcpy(bytes.data() + at * byte_width(dtype), element,
                  static_cast<std::size_t>(byte_width(dtype)));
    }
    made.on_nothing.push_back(type.is_view()
                                  ? tile::Argument::view(dtype, nullptr, arguments[i])
                                  : tile::Argument::pointer(dtype, nullptr, std::ssize(bytes)));
    made.buffer.emplace_back(made.memory.size());
    made.memory.push_back(std::move(bytes));
  }
  return made;
}

/// How many operations of a kind there are.
inline int count_of(const tile::Kernel& kernel, tile::Code code) {
  int count = 0;
  tile::for_each_op(kernel, kernel.body,
                    [&](tile::OpId id) { count += kernel.ops[id].code == code ? 1 : 0; });
  return count;
}

}  // namespace tessera::testing
