#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/expr/algebra.h"
#include "tessera/expr/condition.h"
#include "tessera/support/tensor.h"

namespace tessera::testing {

/// The value of a size where its symbols have the values given.
inline std::int64_t value_of(const Dim& dim, const SizeValues& symbols) {
  const Dim value = dim.substituted([&](std::string_view name) -> std::optional<Dim> {
    const auto here = symbols.find(name);
    return here == symbols.end() ? std::nullopt : std::optional<Dim>(here->second);
  });
  if (!value.constant()) throw std::runtime_error("no number: " + value.to_string());
  return *value.constant();
}

/// Comparisons take numbers for equal that rounding may have kept apart.
inline constexpr double kTie = 1e-9;

inline double value_of(Fn fn, const std::vector<double>& x) {
  for (const double arg : x)
    if (std::isnan(arg)) return arg;
  switch (fn) {
    case Fn::Neg: return -x[0];
    case Fn::Abs: return std::fabs(x[0]);
    case Fn::Exp: return std::exp(x[0]);
    case Fn::Log: return std::log(x[0]);
    case Fn::Sqrt: return std::sqrt(x[0]);
    case Fn::Sin: return std::sin(x[0]);
    case Fn::Cos: return std::cos(x[0]);
    case Fn::Atan: return std::atan(x[0]);
    case Fn::Tanh: return std::tanh(x[0]);
    case Fn::Erf: return std::erf(x[0]);
    case Fn::Floor: return std::floor(x[0] + kTie);
    case Fn::Round: return std::nearbyint(x[0]);
    case Fn::Not: return static_cast<double>(~static_cast<std::int64_t>(x[0]));
    case Fn::Add: return x[0] + x[1];
    case Fn::Sub: return x[0] - x[1];
    case Fn::Mul: return x[0] * x[1];
    case Fn::Div: return std::trunc(x[0] / x[1]);  // of integers: quotients of others are powers
    case Fn::FloorDiv: return std::floor(x[0] / x[1]);
    case Fn::Mod: return x[0] - std::floor(x[0] / x[1]) * x[1];
    case Fn::Pow: return std::pow(x[0], x[1]);
    case Fn::Max: return std::max(x[0], x[1]);
    case Fn::Min: return std::min(x[0], x[1]);
    case Fn::Equal: return std::fabs(x[0] - x[1]) < kTie ? 1 : 0;
    case Fn::Less: return x[0] < x[1] - kTie ? 1 : 0;
    case Fn::LessEqual: return x[0] < x[1] + kTie ? 1 : 0;
    case Fn::And:
      return static_cast<double>(static_cast<std::int64_t>(x[0]) & static_cast<std::int64_t>(x[1]));
    case Fn::Or:
      return static_cast<double>(static_cast<std::int64_t>(x[0]) | static_cast<std::int64_t>(x[1]));
    case Fn::Xor:
      return static_cast<double>(static_cast<std::int64_t>(x[0]) ^ static_cast<std::int64_t>(x[1]));
    case Fn::ShiftLeft: return x[0] * std::exp2(x[1]);
    case Fn::ShiftRight: return std::floor(x[0] / std::exp2(x[1]));
    case Fn::Select: return x[0] != 0 ? x[1] : x[2];
  }
  return 0;
}

/// What a sum of products is, by what its notation says and nothing that the algebra computes with.
class SumValue {
 public:
  using Read = std::function<double(const std::string& name, const std::vector<std::int64_t>& at)>;

  /// Bound variables run below `limit`.
  SumValue(SizeValues symbols, Read read, std::int64_t limit)
      : symbols_(std::move(symbols)), read_(std::move(read)), limit_(limit) {}

  double operator()(const algebra::Sum& sum) {
    double total = 0;
    for (const algebra::Term& term : sum.terms)
      over(term, [&] { total += term.coefficient.to_double() * product(term); });
    return total;
  }

 private:
  /// Calls `f` for each position in the range of a term.
  void over(const algebra::Term& term, const std::function<void()>& f) {
    const SizeValues saved = symbols_;
    for (const std::string& name : term.bound) symbols_.erase(name);
    run(term, 0, f);
    symbols_ = saved;
  }
  void run(const algebra::Term& term, std::size_t depth, const std::function<void()>& f) {
    // Guards cut the range as soon as all that they speak of has a value.
    for (const Dim& guard : term.guards) {
      const bool open =
          std::any_of(term.bound.begin() + static_cast<std::ptrdiff_t>(depth), term.bound.end(),
                      [&](const std::string& name) { return guard.contains(name); });
      if (!open && value_of(guard, symbols_) < 0) return;
    }
    if (depth == term.bound.size()) return f();
    for (std::int64_t at = 0; at < limit_; ++at) {
      symbols_.insert_or_assign(term.bound[depth], at);
      run(term, depth + 1, f);
    }
    symbols_.erase(term.bound[depth]);
  }

  double product(const algebra::Term& term) {
    double result = 1;
    for (const algebra::Factor& factor : term.factors) {
      const double value = power(factor);
      if (value == 0) return 0;  // also of what is infinite: where a condition does not hold
      result *= value;
    }
    return result;
  }

  double power(const algebra::Factor& factor) {
    const double value = base(factor);
    return factor.exponent.is(1) ? value : std::pow(value, factor.exponent.to_double());
  }

  double base(const algebra::Factor& factor) {
    using Kind = algebra::Factor::Kind;
    std::vector<std::int64_t> at;
    for (const Dim& dim : factor.at) at.push_back(value_of(dim, symbols_));
    switch (factor.kind) {
      case Kind::Number: return static_cast<double>(at[0]);
      case Kind::Read: return read(factor.name, at);
      case Kind::Apply: {
        std::vector<double> args;
        for (const algebra::Sum& arg : *factor.args) args.push_back((*this)(arg));
        if (factor.truth) args.push_back(0);  // a difference is compared with it
        return value_of(factor.fn, args);
      }
      case Kind::Cast: {
        Buffer one(8);
        const double value = (*this)((*factor.args)[0]);
        if (is_integer(factor.to) && value == std::floor(value))
          store_integer(factor.to, one.data(), 0, static_cast<std::int64_t>(value));
        else
          store_number(factor.to, one.data(), 0, value);
        return number_at(Tensor{factor.to, {}, std::move(one).freeze()}, 0);
      }
      case Kind::Group:
      case Kind::Power: return (*this)((*factor.args)[0]);
      case Kind::Most: {
        double largest = -std::numeric_limits<double>::infinity();
        for (const algebra::Term& term : (*factor.args)[0].terms)
          over(term, [&] { largest = std::max(largest, base(term.factors[0])); });
        return largest;
      }
      case Kind::Fold: return fold(factor);
      case Kind::Bottom: return -1e9;  // finite: it cancels where a condition does not hold
    }
    return 0;
  }

  double fold(const algebra::Factor& factor) {
    const std::vector<algebra::Sum>& args = *factor.args;
    algebra::Term range = args[0].terms[0];
    const std::size_t components = (args.size() - 1) / 2;
    // Behind the components stands in which order the axes run.
    if (range.factors.size() > components) range.bound.clear();
    for (std::size_t i = components; i < range.factors.size(); ++i) {
      const algebra::Sum& axis = (*range.factors[i].args)[0];
      range.bound.emplace_back(*axis.terms[0].factors[0].at[0].as_symbol());
    }
    range.factors.resize(components);
    std::vector<double> state;
    for (std::size_t c = 0; c < components; ++c) state.push_back((*this)(args[1 + c]));
    over(range, [&] {
      std::vector<double> taken;
      for (const algebra::Factor& group : range.factors) taken.push_back(base(group));
      const std::vector<double> left = left_, right = right_;
      left_ = state;
      right_ = taken;
      for (std::size_t c = 0; c < components; ++c) taken[c] = (*this)(args[1 + components + c]);
      state = taken;
      left_ = left;
      right_ = right;
    });
    return state[static_cast<std::size_t>(factor.component)];
  }

  double read(const std::string& name, const std::vector<std::int64_t>& at) {
    if (name == "%pi") return std::acos(-1.0);
    if (name.starts_with("%L")) return left_[static_cast<std::size_t>(std::stoi(name.substr(2)))];
    if (name.starts_with("%R")) return right_[static_cast<std::size_t>(std::stoi(name.substr(2)))];
    return read_(name, at);
  }

  SizeValues symbols_;
  Read read_;
  std::int64_t limit_;
  std::vector<double> left_, right_;  // of the fold that is running
};

}  // namespace tessera::testing
