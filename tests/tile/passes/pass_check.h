#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "tessera/tile/interp.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"
#include "tests/tile/random_kernel.h"

namespace tessera::testing {

using TilePass = std::function<tile::Kernel(const tile::Kernel&)>;

inline tile::Kernel parsed_kernel(std::string_view text) {
  auto kernel = tile::parse_kernel(text);
  EXPECT_TRUE(kernel) << (kernel ? "" : to_string(kernel.error()));
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
  ASSERT_TRUE(ran) << to_string(ran.error());
  const auto reran = tile::interpret(after, on_found, random.grid);
  ASSERT_TRUE(reran) << to_string(reran.error()) << "\n" << tile::to_text(after);
  EXPECT_EQ(difference(random, expected, found), "") << tile::to_text(after);
}

}  // namespace tessera::testing
