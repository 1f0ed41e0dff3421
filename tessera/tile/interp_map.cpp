#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/tile/interp_function.h"
#include "tessera/tile/interp_tile.h"

namespace tessera::tile::interp {
namespace {

/// Float that rounds like the integer: of a wide one, the bits that do not fit into a double are
/// collected in its last (sticky bit), so that the second rounding breaks ties correctly.
template <std::integral C>
double sticky(C x) {
  const bool negative = x < C{0};
  std::uint64_t magnitude = negative ? 0 - extended(x) : extended(x);
  if (const int excess = 64 - std::countl_zero(magnitude) - 53; excess > 0) {
    const std::uint64_t lost = magnitude & ((std::uint64_t{1} << excess) - 1);
    magnitude -= lost;
    if (lost != 0) magnitude |= std::uint64_t{1} << excess;
  }
  const auto number = static_cast<double>(magnitude);
  return negative ? -number : number;
}

template <std::integral C, std::floating_point F>
C saturated(F x) {
  constexpr auto kLow = std::numeric_limits<C>::min(), kHigh = std::numeric_limits<C>::max();
  if (std::isnan(x)) return 0;
  const auto number = static_cast<double>(x);
  if (number <= static_cast<double>(kLow)) return kLow;
  if (number >= static_cast<double>(kHigh)) return kHigh;  // of 64 bits: 2^63 or 2^64, too large
  return static_cast<C>(number);
}

template <class To, class From>
To converted(From from) {
  const Computed<From> x = loaded(from);
  using C = Computed<From>;
  if constexpr (std::is_same_v<To, Truth> || std::same_as<C, bool>)
    return stored<To>(std::same_as<Computed<To>, bool> ? static_cast<C>(x != C{}) : x);
  else if constexpr (is_real<From> && !is_real<To>)
    return saturated<To>(x);
  else if constexpr (!is_real<From> && is_real<To> && !std::is_arithmetic_v<To>)
    return stored<To>(sticky(x));
  else
    return stored<To>(x);
}

}  // namespace

void map(Function function, DType dtype, std::span<const std::byte* const> in, std::int64_t count,
         std::byte* out) {
  with_type(dtype, [&]<class T>(T) {
    using C = Computed<T>;
    const auto x = [&](std::size_t i) { return reinterpret_cast<const T*>(in[i]); };
    const bool known = with_function<C>(function, [&](const auto& f) {
      constexpr bool kThree = std::is_invocable_v<decltype(f), C, C, C>;
      constexpr bool kTwo = std::is_invocable_v<decltype(f), C, C>;
      const auto each = [&]<class Result>(Result* to, const auto& at) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = stored<Result>(at(i));
      };
      const auto run = [&](const auto& at) {
        if constexpr (std::same_as<decltype(at(0)), bool>)
          each(reinterpret_cast<Truth*>(out), at);
        else
          each(reinterpret_cast<T*>(out), at);
      };
      if constexpr (kThree)
        run([&f, a = x(0), b = x(1), c = x(2)](std::int64_t i) {
          return f(loaded(a[i]), loaded(b[i]), loaded(c[i]));
        });
      else if constexpr (kTwo)
        run([&f, a = x(0), b = x(1)](std::int64_t i) { return f(loaded(a[i]), loaded(b[i])); });
      else
        run([&f, a = x(0)](std::int64_t i) { return f(loaded(a[i])); });
    });
    TESSERA_CHECK(known, "{} of {}", to_string(function), to_string(dtype));
  });
}

void select(std::int64_t width, const Truth* condition, const std::byte* yes, const std::byte* no,
            std::int64_t count, std::byte* out) {
  with_width(width, [&]<class T>(T) {
    const auto* a = reinterpret_cast<const T*>(yes);
    const auto* b = reinterpret_cast<const T*>(no);
    auto* to = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < count; ++i) to[i] = condition[i].bits != 0 ? a[i] : b[i];
  });
}

void cast(DType from, DType to, const std::byte* x, std::int64_t count, std::byte* out) {
  with_type(from, [&]<class From>(From) {
    with_type(to, [&]<class To>(To) {
      const auto* source = reinterpret_cast<const From*>(x);
      auto* target = reinterpret_cast<To*>(out);
      for (std::int64_t i = 0; i < count; ++i) target[i] = converted<To>(source[i]);
    });
  });
}

void fill(DType dtype, const Literal& literal, std::int64_t count, std::byte* out) {
  with_type(dtype, [&]<class T>(T) {
    T element;
    if constexpr (is_real<T>)
      element = stored<T>(literal.number);
    else
      element = stored<T>(literal.integer);
    std::fill_n(reinterpret_cast<T*>(out), count, element);
  });
}

void iota(DType dtype, std::int64_t count, std::byte* out) {
  with_type(dtype, [&]<class T>(T) {
    auto* to = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < count; ++i) to[i] = stored<T>(i);
  });
}

}  // namespace tessera::tile::interp
