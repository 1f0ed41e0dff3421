#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Prime field of integers modulo 2^61 - C, for randomized equality testing. Definitions evaluate
/// in it exactly, so two programs that agree on random elements compute the same up to a chance
/// below 2^-50 per element.
///
/// Functions other than field arithmetic are keyed hash functions: nonlinear functions hash their
/// argument, and maximum, minimum and comparisons follow a keyed total order of the elements.
/// Infinities, the initial values of maxima and minima, are two elements outside of the field.
template <std::uint64_t C>
class PrimeField {
 public:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - C;

  PrimeField() = default;
  /// Field element of any 64-bit word, reduced.
  static PrimeField of_word(std::uint64_t word) { return PrimeField(word % kPrime); }
  static PrimeField of_integer(std::int64_t integer) {
    const std::int64_t rest = integer % static_cast<std::int64_t>(kPrime);
    return PrimeField(
        static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<std::int64_t>(kPrime) : rest));
  }
  /// Exact field element of a double, mantissa * 2^exponent.
  static PrimeField of_double(double number) {
    if (std::isinf(number)) return number < 0 ? lowest() : highest();
    if (std::isnan(number)) return keyed(0x7ff8, {});
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(number, &exponent), 53);
    const PrimeField whole = of_integer(static_cast<std::int64_t>(mantissa));
    exponent -= 53;
    const PrimeField base = exponent < 0 ? inverse(PrimeField(2)) : PrimeField(2);
    return whole * power(base, static_cast<std::uint64_t>(std::abs(exponent)));
  }
  static PrimeField lowest() { return PrimeField(kPrime); }
  static PrimeField highest() { return PrimeField(kPrime + 1); }

  std::uint64_t word() const { return word_; }

  friend PrimeField operator+(PrimeField a, PrimeField b) {
    const std::uint64_t sum = a.word_ + b.word_;
    return PrimeField(sum >= kPrime ? sum - kPrime : sum).reduced();
  }
  friend PrimeField operator-(PrimeField a, PrimeField b) {
    return PrimeField(a.word_ >= b.word_ ? a.word_ - b.word_ : a.word_ + kPrime - b.word_)
        .reduced();
  }
  friend PrimeField operator*(PrimeField a, PrimeField b) {
    // 2^61 = C in the field, so the high part of the product folds onto the low one.
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a.word_) * b.word_;
    constexpr std::uint64_t kMask = (std::uint64_t{1} << 61) - 1;
    const Wide once = static_cast<Wide>(static_cast<std::uint64_t>(product) & kMask) +
                      static_cast<Wide>(static_cast<std::uint64_t>(product >> 61)) * C;
    std::uint64_t word =
        (static_cast<std::uint64_t>(once) & kMask) + static_cast<std::uint64_t>(once >> 61) * C;
    if (word >= kPrime) word -= kPrime;
    return PrimeField(word);
  }
  /// Quotient; division by zero gives a keyed element, and the caller draws other inputs.
  friend PrimeField operator/(PrimeField a, PrimeField b) {
    return b.word_ == 0 ? keyed(0xd170, a) : a * inverse(b);
  }
  friend bool operator==(PrimeField, PrimeField) = default;
  /// Keyed total order of the elements.
  friend bool operator<(PrimeField a, PrimeField b) { return a.rank() < b.rank(); }

  /// Uninterpreted function: a hash of a key and its arguments.
  static PrimeField keyed(std::uint64_t key, PrimeField x) {
    return of_word(mixed(x.word_ + (key + 1) * 0x9e3779b97f4a7c15ull));
  }
  static PrimeField keyed(std::uint64_t key, PrimeField x, PrimeField y) {
    return keyed(key + x.word_, y);
  }
  static PrimeField larger(PrimeField a, PrimeField b) { return a < b ? b : a; }
  static PrimeField smaller(PrimeField a, PrimeField b) { return b < a ? b : a; }

  /// Accumulator of a sum of products with delayed modular reduction.
  class Sum {
   public:
    void add_product(PrimeField a, PrimeField b) {
      total_ += static_cast<Wide>(a.word_) * b.word_;
      if (++terms_ == kMostTerms) fold();
    }
    PrimeField total() {
      fold();
      return of_word(static_cast<std::uint64_t>(total_));
    }

   private:
    __extension__ using Wide = unsigned __int128;
    // A product is below 2^122 and what is left over below 2^64.
    static constexpr int kMostTerms = 60;

    void fold() {
      for (int i = 0; i < 2; ++i) total_ = (total_ & ((Wide{1} << 61) - 1)) + (total_ >> 61) * C;
      terms_ = 0;
    }
    Wide total_ = 0;
    int terms_ = 0;
  };

 private:
  explicit PrimeField(std::uint64_t word) : word_(word) {}
  PrimeField reduced() const { return PrimeField(word_ >= kPrime ? word_ % kPrime : word_); }

  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t rank() const {
    if (word_ == kPrime) return 0;
    if (word_ == kPrime + 1) return ~std::uint64_t{0};
    return mixed(word_ + kOrder) / 2 + 1;
  }
  // Each field has its own order, the second with few numbers above zero; small whole numbers are
  // on their side of it.
  static constexpr std::uint64_t kOrder = C == 1 ? 0x5c213b5f6e129364ull : 0x9f7cbdb09c7a5cb7ull;
  static PrimeField power(PrimeField base, std::uint64_t exponent) {
    PrimeField result(1);
    for (; exponent != 0; exponent >>= 1, base = base * base)
      if ((exponent & 1) != 0) result = result * base;
    return result;
  }
  static PrimeField inverse(PrimeField x) { return power(x, kPrime - 2); }

  std::uint64_t word_ = 0;
};

using FieldA = PrimeField<1>;
using FieldB = PrimeField<31>;

}  // namespace tessera
