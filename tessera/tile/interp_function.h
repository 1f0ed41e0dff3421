#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/tile/kernel.h"

/// Scalar functions of the interpreter, as lambdas over the type that each is computed in: float
/// (f16 and bf16 too), double, the integers, bool. `visit` is called with the lambda, so that the
/// loop around it is specialized; it is not called where the function is not defined.
namespace tessera::tile::interp {

// NOLINTBEGIN(google-runtime-int): the widest products have no other name
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
// NOLINTEND(google-runtime-int)

template <class C>
concept Number = std::floating_point<C> ||(std::integral<C> && !std::same_as<C, bool>);

template <std::integral C>
constexpr C wrapped(std::uint64_t x) {
  return static_cast<C>(x);
}
template <std::integral C>
constexpr std::uint64_t extended(C x) {
  return static_cast<std::uint64_t>(x);  // copies the sign
}

/// Minimum of two numbers that are not NaN; -0 is less than +0.
template <class C>
C lesser(C a, C b) {
  if constexpr (std::floating_point<C>)
    if (a == b) return std::signbit(a) ? a : b;
  return b < a ? b : a;
}
template <class C>
C greater(C a, C b) {
  if constexpr (std::floating_point<C>)
    if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

template <class C>
bool is_nan(C x) {
  return x != x;
}

/// Functions that Reduce, Scan and Atomic share with Map.
template <class C, class Visit>
bool with_monoid(Function function, const Visit& visit) {
  if constexpr (Number<C>) {
    switch (function) {
      case Function::Add:
        visit([](C a, C b) -> C {
          if constexpr (std::integral<C>)
            return wrapped<C>(extended(a) + extended(b));
          else
            return a + b;
        });
        return true;
      case Function::Mul:
        visit([](C a, C b) -> C {
          if constexpr (std::integral<C>)
            return wrapped<C>(extended(a) * extended(b));
          else
            return a * b;
        });
        return true;
      default: break;
    }
  }
  switch (function) {
    case Function::Min:
      visit([](C a, C b) -> C { return is_nan(a) ? b : is_nan(b) ? a : lesser(a, b); });
      return true;
    case Function::Max:
      visit([](C a, C b) -> C { return is_nan(a) ? b : is_nan(b) ? a : greater(a, b); });
      return true;
    case Function::Minimum:
      visit([](C a, C b) -> C { return is_nan(a) ? a : is_nan(b) ? b : lesser(a, b); });
      return true;
    case Function::Maximum:
      visit([](C a, C b) -> C { return is_nan(a) ? a : is_nan(b) ? b : greater(a, b); });
      return true;
    default: break;
  }
  if constexpr (std::integral<C>) {
    switch (function) {
      case Function::And: visit([](C a, C b) -> C { return a & b; }); return true;
      case Function::Or: visit([](C a, C b) -> C { return a | b; }); return true;
      case Function::Xor: visit([](C a, C b) -> C { return a ^ b; }); return true;
      default: break;
    }
  }
  return false;
}

template <class C, class Visit>
bool with_compare(Function function, const Visit& visit) {
  switch (function) {
    case Function::Equal: visit([](C a, C b) -> bool { return a == b; }); return true;
    case Function::NotEqual: visit([](C a, C b) -> bool { return a != b; }); return true;
    case Function::Less: visit([](C a, C b) -> bool { return a < b; }); return true;
    case Function::LessEqual: visit([](C a, C b) -> bool { return a <= b; }); return true;
    case Function::Greater: visit([](C a, C b) -> bool { return a > b; }); return true;
    case Function::GreaterEqual: visit([](C a, C b) -> bool { return a >= b; }); return true;
    default: return false;
  }
}

/// Functions of floats only. Those that are not correctly rounded are computed in double, then
/// rounded.
template <std::floating_point C, class Visit>
bool with_real(Function function, const Visit& visit) {
  const auto by_double = [&](auto f) {
    visit([f](C x) -> C { return static_cast<C>(f(static_cast<double>(x))); });
    return true;
  };
  switch (function) {
    case Function::Exp: return by_double([](double x) { return std::exp(x); });
    case Function::Exp2: return by_double([](double x) { return std::exp2(x); });
    case Function::Log: return by_double([](double x) { return std::log(x); });
    case Function::Log2: return by_double([](double x) { return std::log2(x); });
    case Function::Sin: return by_double([](double x) { return std::sin(x); });
    case Function::Cos: return by_double([](double x) { return std::cos(x); });
    case Function::Tanh: return by_double([](double x) { return std::tanh(x); });
    case Function::Erf: return by_double([](double x) { return std::erf(x); });
    case Function::Rsqrt: return by_double([](double x) { return 1 / std::sqrt(x); });
    case Function::Sigmoid: return by_double([](double x) { return 1 / (1 + std::exp(-x)); });
    case Function::Sqrt: visit([](C x) -> C { return std::sqrt(x); }); return true;
    case Function::Floor: visit([](C x) -> C { return std::floor(x); }); return true;
    case Function::Ceil: visit([](C x) -> C { return std::ceil(x); }); return true;
    case Function::Round: visit([](C x) -> C { return std::nearbyint(x); }); return true;
    case Function::Neg: visit([](C x) -> C { return -x; }); return true;
    case Function::Abs: visit([](C x) -> C { return std::fabs(x); }); return true;
    case Function::Sub: visit([](C a, C b) -> C { return a - b; }); return true;
    case Function::Div: visit([](C a, C b) -> C { return a / b; }); return true;
    case Function::Rem: visit([](C a, C b) -> C { return std::fmod(a, b); }); return true;
    case Function::Pow:
      visit([](C a, C b) -> C {
        return static_cast<C>(std::pow(static_cast<double>(a), static_cast<double>(b)));
      });
      return true;
    case Function::Fma: visit([](C a, C b, C c) -> C { return std::fma(a, b, c); }); return true;
    default: return false;
  }
}

/// Functions of integers only; arithmetic wraps.
template <std::integral C, class Visit>
bool with_integer(Function function, const Visit& visit) {
  using Unsigned = std::make_unsigned_t<C>;
  constexpr int kWidth = std::numeric_limits<Unsigned>::digits;
  switch (function) {
    case Function::Neg: visit([](C x) -> C { return wrapped<C>(0 - extended(x)); }); return true;
    case Function::Abs:
      visit([](C x) -> C { return wrapped<C>(x < C{0} ? 0 - extended(x) : extended(x)); });
      return true;
    case Function::Not: visit([](C x) -> C { return wrapped<C>(~extended(x)); }); return true;
    case Function::Sub:
      visit([](C a, C b) -> C { return wrapped<C>(extended(a) - extended(b)); });
      return true;
    // In 128 bits, because the least number has no opposite in its own width.
    case Function::Div:
      visit([](C a, C b) -> C { return b == 0 ? C{0} : static_cast<C>(Wide{a} / Wide{b}); });
      return true;
    case Function::Rem:
      visit([](C a, C b) -> C { return b == 0 ? C{0} : static_cast<C>(Wide{a} % Wide{b}); });
      return true;
    case Function::Shl:
      visit([](C a, C b) -> C {
        return static_cast<Unsigned>(b) >= kWidth ? C{0} : wrapped<C>(extended(a) << b);
      });
      return true;
    case Function::Shr:
      visit([](C a, C b) -> C {
        const int by = static_cast<Unsigned>(b) >= kWidth ? kWidth : static_cast<int>(b);
        return static_cast<C>(Wide{a} >> by);
      });
      return true;
    case Function::MulHi:
      visit([](C a, C b) -> C {
        using Product = std::conditional_t<std::is_signed_v<C>, Wide, UnsignedWide>;
        return static_cast<C>((Product{a} * Product{b}) >> kWidth);
      });
      return true;
    default: return false;
  }
}

/// All functions of Map but Select, which does not depend on the dtype.
template <class C, class Visit>
bool with_function(Function function, const Visit& visit) {
  if (with_monoid<C>(function, visit) || with_compare<C>(function, visit)) return true;
  if constexpr (std::floating_point<C>) {
    return with_real<C>(function, visit);
  } else if constexpr (std::same_as<C, bool>) {
    if (function != Function::Not) return false;
    visit([](bool x) -> bool { return !x; });
    return true;
  } else {
    return with_integer<C>(function, visit);
  }
}

}  // namespace tessera::tile::interp
