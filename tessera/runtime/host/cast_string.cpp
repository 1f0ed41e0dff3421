#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/elements.h"
#include "tessera/runtime/host/functions.h"
#include "tessera/runtime/host/utf8.h"

namespace tessera::host {
namespace {

/// Shortest d.ddde±xx that reads back to the same number.
template <class T>
std::string shortest(T value) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific).ptr;
  return {text.begin(), end};
}

/// 16-bit floats: `reads_back` says whether a double rounds to the number.
template <class ReadsBack>
std::string shortest_of(double value, ReadsBack reads_back) {
  for (int digits = 0;; ++digits) {
    std::string text = fmt::format("{:.{}e}", value, digits);
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    if (read == value || reads_back(read)) return text;
  }
}

/// Decimal form where that is readable, 1e-4 up to 1e16, as in Python; else scientific.
std::string plainly(const std::string& scientific) {
  const std::size_t e = scientific.find('e');
  std::string digits = scientific.substr(0, e);
  int exponent = 0;
  const char* from = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(from, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) return scientific;

  const std::string sign = digits[0] == '-' ? "-" : "";
  digits.erase(0, sign.size());
  std::erase(digits, '.');
  if (exponent < 0)
    return fmt::format("{}0.{:0>{}}", sign, digits, std::ssize(digits) - exponent - 1);
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
  return sign + digits.insert(whole, ".");
}

std::string printed(const Tensor& x, std::int64_t position) {
  if (x.dtype == DType::Bool) return integer_at(x, position) != 0 ? "True" : "False";
  if (x.dtype == DType::U64) return fmt::to_string(Numbers<std::uint64_t>(x)[position]);
  if (!is_float(x.dtype)) return fmt::to_string(integer_at(x, position));
  const double value = number_at(x, position);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  switch (is_small(x.dtype) ? DType::F32 : x.dtype) {
    case DType::F16:
      return plainly(
          shortest_of(value, [&](double read) { return to_float(to_half(read)) == value; }));
    case DType::BF16:
      return plainly(
          shortest_of(value, [&](double read) { return to_float(to_bfloat16(read)) == value; }));
    case DType::F32: return plainly(shortest(static_cast<float>(value)));
    default: return plainly(shortest(value));
  }
}

/// Value of a literal beyond the range of T: infinity or zero, by its decimal exponent.
template <class T>
T beyond_range(std::string_view literal) {
  const bool negative = literal.starts_with('-');
  const std::size_t e = std::min(literal.find_first_of("eE"), literal.size());
  const std::string_view mantissa = literal.substr(0, e);
  const auto point = static_cast<std::int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  const auto lead = static_cast<std::int64_t>(mantissa.find_first_of("123456789"));
  std::int64_t exponent = 0;
  if (e < literal.size()) {
    std::string_view digits = literal.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    constexpr std::int64_t kFar = std::int64_t{1} << 61;  // farther than any mantissa is long
    if (read.ec != std::errc{} || exponent > kFar || exponent < -kFar)
      exponent = digits.starts_with('-') ? -kFar : kFar;
  }
  const T magnitude = exponent + point - lead > 0 ? std::numeric_limits<T>::infinity() : T{0};
  return negative ? -magnitude : magnitude;
}

template <class T>
std::optional<T> parsed(std::string_view literal) {
  T value{};
  const char* end = literal.data() + literal.size();
  const auto read = std::from_chars(literal.data(), end, value);
  if (read.ptr != end || literal.empty()) return std::nullopt;
  if (read.ec == std::errc{}) return value;
  if constexpr (std::is_floating_point_v<T>)
    if (read.ec == std::errc::result_out_of_range) return beyond_range<T>(literal);
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kBlanks) + 1));
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

/// Parses a number; false if the text is none. An integer literal is exact, a fraction is
/// truncated.
bool store_literal(Draft& out, std::int64_t position, std::string_view literal) {
  if (out.dtype() == DType::F32) {
    const auto value = parsed<float>(literal);
    if (value) out.set_number(position, *value);
    return value.has_value();
  }
  if (!is_float(out.dtype())) {
    if (const auto value = parsed<std::int64_t>(literal)) {
      out.set_integer(position, *value);
      return true;
    }
    if (const auto value = parsed<std::uint64_t>(literal)) {
      out.set_integer(position, static_cast<std::int64_t>(*value));
      return true;
    }
  }
  if (out.dtype() == DType::Bool) {
    const std::string word = changed_case(literal, lower_case);
    if (word == "true" || word == "false") {
      out.set_integer(position, word == "true" ? 1 : 0);
      return true;
    }
  }
  const auto value = parsed<double>(literal);
  if (value) out.set_number(position, *value);
  return value.has_value();
}

}  // namespace

Results cast_string(const Call& call) {
  const Arguments in(call, "cast_string");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  TESSERA_TRY(const DType to, in.dtype("to", DType::String));
  if (to == x.dtype) return in.results({x});
  if (to != DType::String && x.dtype != DType::String)
    return in.fault(fmt::format("a cast from {} to {}", to_string(x.dtype), to_string(to)),
                    "one of the two must be string");
  TESSERA_TRY(Draft out, in.allocate(to, x.shape));
  for (std::int64_t i = 0; i < out.count(); ++i) {
    if (to == DType::String) {
      out.text(i) = printed(x, i);
    } else if (const std::string& text = (*x.strings)[static_cast<std::size_t>(i)];
               !store_literal(out, i, trimmed(text))) {
      constexpr std::size_t kShown = 40;
      return in.fault(fmt::format("\"{}\" is no number", text.substr(0, kShown)));
    }
  }
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
