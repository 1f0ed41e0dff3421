#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tile/interp.h"
#include "tessera/tile/lang.h"
#include "tessera/tile/text.h"

namespace tessera::tile {

using Floats = std::vector<float>;

inline std::string why(const Expected<Kernel>& kernel) {
  return kernel ? "no diagnostic" : to_string(kernel.error());
}

/// Runs a kernel; what it was given is what it leaves.
template <class... T>
void run(const Expected<Kernel>& kernel, const Grid& grid, T&&... values) {
  ASSERT_TRUE(kernel) << why(kernel);
  const auto list = arguments_of(*kernel, values...);
  const auto done = interpret(*kernel, list, grid);
  ASSERT_TRUE(done) << to_string(done.error()) << to_text(*kernel);
}

/// Traces a body without parameters for what it finds out while tracing.
template <class Body>
void tracing(const Body& body) {
  const auto traced = kernel("traced", {}, [&] { body(); });
  EXPECT_TRUE(traced) << why(traced);
}

/// What a body makes of nothing, stored.
template <class T = float, class Body>
std::vector<T> made(std::size_t count, const Body& body) {
  std::vector<T> out(count);
  run(kernel("made", {"out"},
             [&](const Ptr<T>& to) {
               const Val result = body();
               EXPECT_EQ(result.type().count(), static_cast<std::int64_t>(count));
               store(to + arange(0, result.type().count()),
                     reshape(result, {result.type().count()}));
             }),
      {1, 1, 1}, out);
  return out;
}

inline Val filled(const Floats& numbers) {
  Operands parts;
  for (const float number : numbers) parts.push_back(full({1}, number));
  return concat(parts, 0);
}

inline Val matrix(const Floats& numbers, std::int64_t columns) {
  return reshape(filled(numbers), {static_cast<std::int64_t>(numbers.size()) / columns, columns});
}

}  // namespace tessera::tile
