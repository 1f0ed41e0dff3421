#include "tessera/prove/draw.h"

#include <algorithm>
#include <array>
#include <map>

namespace tessera::prove {
namespace {

constexpr std::int64_t kMostElements = 1 << 24;

/// A number with the chance that its weight says.
struct Weighted {
  std::int64_t value;
  std::uint64_t weight;
};

std::int64_t drawn(std::span<const Weighted> from, Rng& rng) {
  std::uint64_t total = 0;
  for (const Weighted& choice : from) total += choice.weight;
  std::uint64_t at = rng.below(total);
  for (const Weighted& choice : from) {
    if (at < choice.weight) return choice.value;
    at -= choice.weight;
  }
  return from.back().value;
}

constexpr std::array<Weighted, 5> kAxes = {{{1, 2}, {2, 4}, {3, 4}, {4, 2}, {5, 1}}};
constexpr std::array<Weighted, 5> kLargerAxes = {{{4, 1}, {5, 2}, {6, 2}, {7, 2}, {8, 1}}};
constexpr std::array<Weighted, 3> kGroups = {{{1, 3}, {2, 3}, {3, 1}}};
constexpr std::array<Weighted, 3> kEntries = {{{1, 5}, {2, 2}, {0, 1}}};  // strides, pads
constexpr std::array<Weighted, 3> kHalves = {{{0, 3}, {1, 4}, {2, 2}}};   // r of a window 2*r + 1

class Draw {
 public:
  Draw(const SizeRelations& relations, std::optional<Spread> apart, Rng& rng,
       std::span<const Weighted> axes = kAxes)
      : relations_(relations), apart_(apart), rng_(rng), axes_(axes) {
    const GraphSymbols& symbols = relations.symbols;
    const auto add = [&](const std::string& name, std::span<const Weighted> from) {
      if (!relations.solved.contains(name)) free_.emplace(name, from);
    };
    for (const std::string& name : symbols.attributes) add(name, kGroups);
    for (const std::string& name : symbols.entries) add(name, kEntries);
    for (const auto& [name, part] : relations.parts) add(name, axes);
    for (const std::string& name : symbols.sizes)
      add(name, symbols.axes.contains(name) ? axes : std::span<const Weighted>(kHalves));
  }

  std::optional<SizeValues> values() {
    for (int round = 0; round < 100; ++round) {
      apart_ ? spread(round) : fill();
      if (!repaired()) continue;
      for (const auto& [name, value] : relations_.solved) {
        const std::optional<std::int64_t> number = number_of(value);
        if (!number) return std::nullopt;
        values_[name] = *number;
      }
      for (const auto& [name, part] : relations_.parts) values_.erase(name);
      return values_;
    }
    return std::nullopt;
  }

 private:
  void fill() {
    values_.clear();
    // Sizes that happen to be equal hide what is exchanged, so most draws keep axes apart.
    const bool apart = rng_.below(4) != 0;
    std::set<std::int64_t> taken;
    for (const auto& [name, from] : free_) {
      std::int64_t value = drawn(from, rng_);
      for (int again = 0; apart && from.data() == axes_.data() && again < 8; ++again) {
        if (!taken.contains(value)) break;
        value = drawn(from, rng_);
      }
      taken.insert(value);
      values_[name] = value;
    }
  }

  /// Sizes of which no sum or product of a few is another: primes far from 1. Later rounds, when
  /// the conditions were too much for the first, shift and mix them.
  void spread(int round) {
    static constexpr std::array<std::int64_t, 16> kPrimes = {7,  11, 17, 23,  31,  41,  53,  61,
                                                             71, 83, 97, 109, 127, 139, 151, 167};
    values_.clear();
    std::vector<std::string> axes;
    std::int64_t group = 1;
    for (const auto& [name, from] : free_) {
      if (from.data() == axes_.data())
        axes.push_back(name);
      else if (from.data() == kGroups.data() && round < 10)
        values_[name] = ++group;
      else
        values_[name] = drawn(from, rng_);
    }
    if (*apart_ == Spread::Down) std::ranges::reverse(axes);
    if (*apart_ == Spread::Any || round > 0)
      for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[rng_.below(i)]);
    const std::size_t start = rng_.below(4);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t at = start + i;
      values_[axes[i]] =
          kPrimes[at % kPrimes.size()] + static_cast<std::int64_t>(at / kPrimes.size()) * 170;
    }
  }

  /// Makes the open conditions true, an equation by changing one of its symbols.
  bool repaired() {
    for (int round = 0; round < 8; ++round) {
      const auto broken = std::ranges::find_if(relations_.open, [&](const Condition& condition) {
        const auto yes = holds(condition, values_);
        return !yes || !*yes;
      });
      if (broken == relations_.open.end()) return true;
      if (broken->kind == Condition::Kind::AtMost || !repair(broken->right - broken->left))
        return false;
    }
    return false;
  }

  bool repair(const Dim& zero) {
    std::set<std::string> names;
    zero.collect_symbols(names);
    std::vector<std::string> order(names.begin(), names.end());
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
    for (const std::string& name : order) {
      const auto held = values_.extract(name);
      const auto linear = number_or_rest(zero).linear_in(name);
      if (linear && linear->factor.constant() && linear->rest.constant()) {
        const std::int64_t factor = *linear->factor.constant(), rest = -*linear->rest.constant();
        const std::int64_t least = free_.at(name).data() == kHalves.data() ? 0 : 1;
        if (rest % factor == 0 && rest / factor >= least &&
            rest / factor <= (apart_ ? kLargestApart : kLargest)) {
          values_[name] = rest / factor;
          return true;
        }
      }
      if (!held.empty()) values_[held.key()] = held.mapped();
    }
    return false;
  }

  Dim number_or_rest(const Dim& dim) const {
    return dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
      const auto it = values_.find(symbol);
      return it == values_.end() ? std::nullopt : std::optional<Dim>(it->second);
    });
  }
  std::optional<std::int64_t> number_of(const Dim& dim) const {
    return number_or_rest(dim).constant();
  }

  static constexpr std::int64_t kLargest = 16, kLargestApart = 100'000;

  const SizeRelations& relations_;
  std::optional<Spread> apart_;
  Rng& rng_;
  std::span<const Weighted> axes_;  // sizes of axes
  std::map<std::string, std::span<const Weighted>, std::less<>> free_;
  SizeValues values_;
};

double number_in(Numbers numbers, Rng& rng) {
  switch (numbers) {
    case Numbers::Small: return static_cast<double>(rng.below(7)) - 3;
    case Numbers::Fractions: return (static_cast<double>(rng.below(31)) - 15) / 8;
    case Numbers::Positive: return static_cast<double>(rng.below(16) + 1) / 8;
  }
  return 0;
}

std::int64_t integer_in(Numbers numbers, DType dtype, Rng& rng) {
  if (dtype == DType::Bool || numbers == Numbers::Small)
    return static_cast<std::int64_t>(rng.below(2));
  if (numbers == Numbers::Positive) return static_cast<std::int64_t>(rng.below(10));
  return static_cast<std::int64_t>(rng.below(41)) - 20;
}

}  // namespace

std::optional<SizeValues> draw_sizes(const SizeRelations& relations, Rng& rng) {
  return Draw(relations, {}, rng).values();
}

std::optional<SizeValues> draw_larger_sizes(const SizeRelations& relations, Rng& rng) {
  return Draw(relations, {}, rng, kLargerAxes).values();
}

std::optional<SizeValues> draw_apart(const SizeRelations& relations, Spread spread, Rng& rng) {
  return Draw(relations, spread, rng).values();
}

Tensor draw_text(std::vector<std::int64_t> shape, Rng& rng) {
  static constexpr std::array<std::string_view, 7> kWords = {"a", "b",  "ab a", "Ba",
                                                             "",  "bb", "A 1"};
  static constexpr std::array<std::string_view, 7> kNumbers = {"0",   "1",  "-2",   "7",
                                                               "1.5", "12", "-0.25"};
  const auto& of = rng.below(2) == 0 ? kWords : kNumbers;
  std::vector<std::string> texts(static_cast<std::size_t>(element_count(shape).value_or(0)));
  for (std::string& text : texts) text = of[rng.below(of.size())];
  return Tensor::of_strings(std::move(shape), std::move(texts));
}

std::optional<std::vector<Tensor>> draw_inputs(const Graph& graph, Numbers numbers, Rng& rng) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    if (!type.is_ranked_tensor()) return std::nullopt;
    Tensor tensor{.dtype = type.dtype};
    for (const Dim& dim : *type.shape) {
      if (!dim.constant()) return std::nullopt;
      tensor.shape.push_back(*dim.constant());
    }
    const std::optional<std::int64_t> count = element_count(tensor.shape);
    if (!count || *count > kMostElements) return std::nullopt;
    if (type.dtype == DType::String) {
      inputs.push_back(draw_text(std::move(tensor.shape), rng));
      continue;
    }
    Buffer buffer(static_cast<std::size_t>(*count) *
                  static_cast<std::size_t>(byte_width(type.dtype)));
    for (std::int64_t i = 0; i < *count; ++i)
      if (is_float(type.dtype))
        store_number(type.dtype, buffer.data(), i, number_in(numbers, rng));
      else
        store_integer(type.dtype, buffer.data(), i, integer_in(numbers, type.dtype, rng));
    tensor.bytes = std::move(buffer).freeze();
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace tessera::prove
