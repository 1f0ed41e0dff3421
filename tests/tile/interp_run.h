#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/support/half.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"

namespace tessera::tile {

/// A truth value in memory.
enum class Flag : std::uint8_t { False, True };

template <class T>
constexpr DType stored_dtype() {
  if constexpr (std::is_same_v<T, Half>) return DType::F16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::BF16;
  if constexpr (std::is_same_v<T, float>) return DType::F32;
  if constexpr (std::is_same_v<T, double>) return DType::F64;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::I8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::I16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::I32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::I64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::U8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DType::U16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::U32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DType::U64;
  if constexpr (std::is_same_v<T, Flag>) return DType::Bool;
}

template <class T>
Argument pointer(std::vector<T>& memory) {
  return Argument::pointer(stored_dtype<T>(), memory.data(),
                           static_cast<std::int64_t>(memory.size() * sizeof(T)));
}
template <class T>
Argument view(std::vector<T>& memory, Extents shape) {
  return Argument::view(stored_dtype<T>(), memory.data(), std::move(shape));
}

/// Runs a kernel given as text. The answer is "" or the id of the diagnostic.
inline std::string run(std::string_view text, const std::vector<Argument>& arguments,
                       const Grid& grid = {1, 1, 1}, const InterpOptions& options = {}) {
  const Expected<Kernel> kernel = parse_kernel(text, "test.tile");
  EXPECT_TRUE(kernel.has_value()) << to_string(kernel.error());
  if (!kernel) return kernel.error().id;
  const Expected<Done> done = interpret(*kernel, arguments, grid, options);
  return done ? "" : done.error().id;
}

/// The diagnostic of a kernel that is wrong.
inline Diagnostic mistake(std::string_view text, const std::vector<Argument>& arguments,
                          const Grid& grid = {1, 1, 1}, const InterpOptions& options = {}) {
  const Expected<Kernel> kernel = parse_kernel(text, "test.tile");
  EXPECT_TRUE(kernel.has_value()) << to_string(kernel.error());
  if (!kernel) return kernel.error();
  const Expected<Done> done = interpret(*kernel, arguments, grid, options);
  EXPECT_FALSE(done.has_value());
  return done ? Diagnostic{} : done.error();
}

/// What the body of a kernel leaves in `out`, given the numbers of `x`.
template <class Result = std::int32_t, class T = std::int32_t>
std::vector<Result> answer(std::vector<T> x, std::size_t results, const std::string& body) {
  std::vector<Result> out(results);
  const std::string text = fmt::format("kernel k(x: view {}[{}], out: view {}[{}]) {{\n{}\n}}",
                                       to_string(stored_dtype<T>()), x.size(),
                                       to_string(stored_dtype<Result>()), results, body);
  EXPECT_EQ(run(text, {view(x, {static_cast<std::int64_t>(x.size())}),
                       view(out, {static_cast<std::int64_t>(results)})}),
            "");
  return out;
}

/// What a kernel makes of whole tiles: loads each operand, calls `body`, stores what it returns.
template <class Result, class T, class Body>
std::vector<Result> computed(std::vector<std::vector<T>> operands, const Body& body) {
  Builder b("test");
  const auto count = static_cast<std::int64_t>(operands.front().size());
  std::vector<ValueId> params, tiles;
  std::vector<Argument> arguments;
  for (std::vector<T>& operand : operands) {
    params.push_back(b.param(Type::view(stored_dtype<T>(), {count}), "x"));
    arguments.push_back(view(operand, {count}));
  }
  std::vector<Result> result(operands.front().size());
  const ValueId out = b.param(Type::view(stored_dtype<Result>(), {count}), "out");
  arguments.push_back(view(result, {count}));
  for (const ValueId param : params) tiles.push_back(b.vload(param, {b.index(0)}, {count}));
  b.vstore(out, {b.index(0)}, body(b, tiles));
  const Expected<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.has_value()) << to_string(kernel.error());
  if (!kernel) return {};
  const Expected<Done> done = interpret(*kernel, arguments, {1, 1, 1});
  EXPECT_TRUE(done.has_value()) << to_string(done.error());
  return result;
}

template <class Result, class T>
std::vector<Result> mapped_to(Function function, std::vector<std::vector<T>> operands) {
  return computed<Result>(std::move(operands), [&](Builder& b, const std::vector<ValueId>& x) {
    return b.map(function, x);
  });
}
template <class T>
std::vector<T> mapped(Function function, std::vector<std::vector<T>> operands) {
  return mapped_to<T>(function, std::move(operands));
}
template <class Result, class T>
std::vector<Result> cast_to(std::vector<T> x) {
  return computed<Result>(std::vector<std::vector<T>>{std::move(x)},
                          [](Builder& b, const std::vector<ValueId>& t) {
                            return b.cast(t[0], stored_dtype<Result>());
                          });
}

}  // namespace tessera::tile
