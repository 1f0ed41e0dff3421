#include "tessera/expr/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/support/rng.h"
#include "tests/expr/examples.h"

namespace tessera {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

Dim with(const Dim& dim, const std::map<std::string, std::int64_t, std::less<>>& values) {
  return dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
    const auto it = values.find(symbol);
    if (it == values.end()) return std::nullopt;
    return it->second;
  });
}

TEST(Dim, CollectsLikeTerms) {
  EXPECT_EQ(kN * 2 + kN, kN * 3);
  EXPECT_EQ((kN + 1) * (kN - 1), kN * kN - 1);
  EXPECT_EQ(kN - kN, Dim(0));
  EXPECT_EQ(kN * kM, kM * kN);
}

TEST(Dim, DividesOutWhatIsAMultiple) {
  EXPECT_EQ(floor_div(kH * 4, 2), kH * 2);
  EXPECT_EQ(floor_div(kH * 4 + 3, 2), kH * 2 + 1);
  EXPECT_EQ(floor_div(kN * kM, kM), kN);
  EXPECT_EQ(mod(kH * 4 + 3, 2), Dim(1));
}

TEST(Dim, RoundsTowardsMinusInfinity) {
  EXPECT_EQ(floor_div(Dim(-7), Dim(2)), Dim(-4));
  EXPECT_EQ(mod(Dim(-7), Dim(2)), Dim(1));
  EXPECT_EQ(mod(Dim(7), Dim(-2)), Dim(-1));
  EXPECT_EQ(ceil_div(Dim(7), Dim(2)), Dim(4));
}

TEST(Dim, ComparesWhereTheDifferenceIsANumber) {
  EXPECT_EQ(min(kN, kN + 1), kN);
  EXPECT_EQ(max(kN, kN + 1), kN + 1);
  EXPECT_EQ(min(kN, kM), min(kM, kN));
}

TEST(Dim, IsUndefinedBeyond64Bits) {
  EXPECT_TRUE((Dim(kMax) + 1).is_undefined());
  EXPECT_TRUE((Dim(kMin) * -1).is_undefined());
  EXPECT_TRUE((kN * kMax * 2).is_undefined());
  EXPECT_TRUE(floor_div(kN, Dim(0)).is_undefined());
  EXPECT_TRUE(mod(kN, Dim(0)).is_undefined());
  EXPECT_TRUE(floor_div(Dim(kMin), Dim(-1)).is_undefined());
  EXPECT_TRUE((Dim::undefined() + 1).is_undefined());
  EXPECT_TRUE(max(Dim::undefined(), Dim(1)).is_undefined());
}

TEST(Dim, StaysSmallInHostileArithmetic) {
  Dim sum = 0, power = kN + 1, nested = kN;
  for (int i = 0; i < 100; ++i) sum = sum + Dim::symbol("s" + std::to_string(i));
  EXPECT_TRUE((sum * sum).is_undefined());
  for (int i = 0; i < 100; ++i) power = power * power;
  EXPECT_TRUE(power.is_undefined());
  for (int i = 0; i < 100; ++i) nested = min(nested + kM, floor_div(nested, kH) * 3);
  EXPECT_TRUE(nested.is_undefined());
  Dim heavy = kN;
  for (int i = 0; i < 7; ++i) heavy = min(heavy + kM, floor_div(heavy, kH));
  EXPECT_FALSE(heavy.is_undefined());
  EXPECT_TRUE((heavy * heavy).is_undefined());
}

TEST(Dim, HasALeastValue) {
  EXPECT_EQ((kN * 2 + 3).least(), 3);
  EXPECT_EQ((kN * kM - 1).least(), -1);
  EXPECT_EQ((floor_div(kH - 1, 2) + 1).least(), 0);
  EXPECT_EQ(mod(kN, 3).least(), 0);
  EXPECT_EQ(max(kN, kM - 5).least(), 0);
  EXPECT_EQ(min(kN, kM - 5).least(), -5);
  EXPECT_EQ((kN - kM).least(), std::nullopt);
  EXPECT_EQ(Dim::undefined().least(), std::nullopt);
}

TEST(Dim, IsSolvedForASymbolThatIsLinearInIt) {
  const auto linear = (kN * 2 * kM + kM + 1).linear_in("n");
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->factor, kM * 2);
  EXPECT_EQ(linear->rest, kM + 1);
  EXPECT_FALSE((kN * kN).linear_in("n"));
  EXPECT_FALSE(floor_div(kN, 2).linear_in("n"));
  EXPECT_FALSE(kM.linear_in("n"));
}

TEST(Dim, IsPrintedAsOneWouldWriteIt) {
  EXPECT_EQ((kN * 2 - 1 + kH).to_string(), "h + 2*n - 1");
  EXPECT_EQ((-kN).to_string(), "-n");
  EXPECT_EQ((floor_div(kH + 1, 2) + 1).to_string(), "floor_div(h + 1, 2) + 1");
  EXPECT_EQ(Dim::symbol("batch size").to_string(), "'batch size'");
  EXPECT_EQ(Dim::symbol("it's").to_string(), "'it\\'s'");
}

TEST(Dim, ComputesTheSameBeforeAndAfterSubstitution) {
  Rng rng(3);
  for (int trial = 0; trial < 500; ++trial) {
    const std::map<std::string, std::int64_t, std::less<>> values = {
        {"n", rng.below(9) + 1}, {"m", rng.below(9) + 1}, {"h", rng.below(9) + 1}};
    std::vector<Dim> symbolic = {kN, kM, kH, 2, 3}, plain;
    for (const Dim& dim : symbolic) plain.push_back(with(dim, values));
    for (int step = 0; step < 8; ++step) {
      const std::size_t a = rng.below(symbolic.size()), b = rng.below(symbolic.size());
      const auto push = [&](const auto& f) {
        symbolic.push_back(f(symbolic[a], symbolic[b]));
        plain.push_back(f(plain[a], plain[b]));
      };
      switch (rng.below(7)) {
        case 0: push([](const Dim& x, const Dim& y) { return x + y; }); break;
        case 1: push([](const Dim& x, const Dim& y) { return x - y; }); break;
        case 2: push([](const Dim& x, const Dim& y) { return x * y; }); break;
        case 3: push([](const Dim& x, const Dim& y) { return floor_div(x, y * y + 1); }); break;
        case 4: push([](const Dim& x, const Dim& y) { return mod(x, y * y + 1); }); break;
        case 5: push([](const Dim& x, const Dim& y) { return min(x, y); }); break;
        default: push([](const Dim& x, const Dim& y) { return max(x, y); }); break;
      }
      if (symbolic.back().is_undefined() || plain.back().is_undefined()) break;
      const Dim& result = symbolic.back();
      ASSERT_EQ(with(result, values), plain.back())
          << "trial " << trial << ": " << result.to_string();
      ASSERT_LE(result.least().value_or(kMin), *plain.back().constant()) << result.to_string();
    }
  }
}

// --- Random sizes and the same by plain integers
// ----------------------------------------------------

/// A random size over n, m and h, with operations within operations.
Dim random_dim(Rng& rng, int depth) {
  if (depth == 0) {
    const std::vector<Dim> leaves = {kN, kM, kH, Dim(static_cast<std::int64_t>(rng.below(7)) - 3)};
    return leaves[rng.below(leaves.size())];
  }
  const Dim a = random_dim(rng, depth - 1), b = random_dim(rng, depth - 1);
  const Dim by = static_cast<std::int64_t>(1 + rng.below(4));
  switch (rng.below(8)) {
    case 0: return a - b;
    case 1: return a * b;
    case 2: return floor_div(a, by);
    case 3: return mod(a, by);
    case 4: return min(a, b);
    case 5: return max(a, b);
    default: return a + b;
  }
}

SizeValues random_values(Rng& rng) {
  const auto draw = [&] { return static_cast<std::int64_t>(rng.below(8)); };
  return {{"n", draw()}, {"m", draw()}, {"h", draw()}};
}

std::int64_t value_at(const Dim& dim, const SizeValues& values) {
  return with(dim, values).constant().value();
}

template <class F>
void for_random_dims(std::uint64_t seed, const F& f) {
  Rng rng(seed);
  for (int trial = 0; trial < 500; ++trial) {
    const Dim dim = random_dim(rng, 3), other = random_dim(rng, 2);
    if (dim.is_undefined() || other.is_undefined()) continue;
    SCOPED_TRACE(dim.to_string());
    for (int round = 0; round < 4; ++round) f(dim, other, random_values(rng));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Dim, PartsAddUpToIt) {
  for_random_dims(1, [](const Dim& dim, const Dim&, const SizeValues& values) {
    std::int64_t sum = 0;
    for (const auto& [coefficient, product] : dim.parts()) {
      std::int64_t factors = 1;
      for (const Dim& atom : product.factors()) factors *= value_at(atom, values);
      EXPECT_EQ(factors, value_at(product, values));
      sum += coefficient * factors;
    }
    EXPECT_EQ(sum, value_at(dim, values));
  });
  EXPECT_TRUE(Dim(0).parts().empty());
  ASSERT_EQ(Dim(5).parts().size(), 1u);
  EXPECT_EQ(Dim(5).parts()[0].coefficient, 5);
  EXPECT_EQ(Dim(5).parts()[0].product, Dim(1));
  EXPECT_TRUE(Dim(1).factors().empty());
}

TEST(Dim, OperationsAreWhatTheySay) {
  for_random_dims(2, [](const Dim& dim, const Dim&, const SizeValues& values) {
    for (const auto& [op, whole, a, b] : dim.operations()) {
      const Dim x = with(a, values), y = with(b, values);
      const Dim expected = op == Dim::Op::FloorDiv ? floor_div(x, y)
                           : op == Dim::Op::Mod    ? mod(x, y)
                           : op == Dim::Op::Min    ? min(x, y)
                                                   : max(x, y);
      EXPECT_EQ(with(whole, values), expected) << whole.to_string();
      EXPECT_NE(dim.replaced(whole, 0), dim) << whole.to_string();
    }
  });
  const Dim inner = floor_div(kH, 2), outer = min(inner, kN);
  const auto operations = (outer + 1).operations();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].whole, outer);
  EXPECT_EQ(operations[1].whole, inner);
}

TEST(Dim, AnAtomIsReplacedByWhatEqualsIt) {
  for_random_dims(3, [](const Dim& dim, const Dim& other, const SizeValues& values) {
    SizeValues after = values;
    after["n"] = value_at(other, values);
    EXPECT_EQ(value_at(dim.replaced(kN, other), values), value_at(dim, after)) << other.to_string();
    for (const auto& operation : dim.operations())
      EXPECT_EQ(value_at(dim.replaced(operation.whole, value_at(operation.whole, values)), values),
                value_at(dim, values))
          << operation.whole.to_string();
  });
}

TEST(Dim, ContainsTheSymbolsThatItSpeaksOf) {
  for_random_dims(4, [](const Dim& dim, const Dim&, const SizeValues&) {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    for (const std::string name : {"n", "m", "h", "k"})
      EXPECT_EQ(dim.contains(name), symbols.contains(name)) << name;
  });
}

TEST(Dim, EqualSizesHaveEqualFingerprints) {
  const auto mixed = [](std::string_view name) {
    return 0x9e3779b97f4a7c15ull * (static_cast<std::uint64_t>(name[0]) + 1);
  };
  for_random_dims(5, [&](const Dim& dim, const Dim& other, const SizeValues&) {
    const Dim again = dim + other - other;
    if (again == dim) {
      EXPECT_EQ(again.fingerprint(mixed), dim.fingerprint(mixed));
    }
    if (other != dim) {
      EXPECT_NE(other.fingerprint(mixed), dim.fingerprint(mixed)) << other.to_string();
    }
  });
  // Without operations it is the value.
  const auto small = [](std::string_view name) { return name == "n" ? 3u : 5u; };
  EXPECT_EQ((kN * kM * 2 - 1).fingerprint(small), 29u);
}

TEST(Dim, ANumberIsTakenOutOfAQuotient) {
  EXPECT_EQ(floor_div(kH - 3, 2), floor_div(kH + 1, 2) - 2);
  EXPECT_EQ(floor_div(kH + 5, 3), floor_div(kH + 2, 3) + 1);
  EXPECT_NE(floor_div(kH + 1, 2), floor_div(kH, 2));
}

TEST(Dim, MinimaAndMaximaAreSettledWhereOneIsNeverLess) {
  EXPECT_EQ(max(kN, 0), kN);
  EXPECT_EQ(min(kN, 0), Dim(0));
  EXPECT_EQ(max(kN + kM, kN), kN + kM);
  EXPECT_EQ(min(kN + kM + 1, kM), kM);
  EXPECT_EQ(max(kN, 1).operations().size(), 1u);
}

TEST(Dim, LargestAndSmallestOfNumbersAreNumbers) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(max(Dim(kLeast), Dim(0)), Dim(0));
  EXPECT_EQ(min(Dim(kLeast), Dim(1)), Dim(kLeast));
}

/// Sizes with operations, products and cancelled terms, of symbols that other tests do not have.
std::vector<Dim> interned_examples(int count) {
  std::vector<Dim> dims;
  for (int i = 0; i < count; ++i) {
    const Dim a = Dim::symbol("interned_" + std::to_string(i)), b = Dim::symbol("other");
    dims.insert(dims.end(), {a + b - 1, a * b + a, floor_div(a + i, b) * 2, max(a, b) - min(a, b),
                             a - a + b, mod(a, b + 2)});
  }
  return dims;
}

TEST(Dim, EqualSizesAreOneObjectHoweverTheyWereComputed) {
  EXPECT_EQ((kN * 2 + kN).id(), (kN * 3).id());
  EXPECT_EQ(((kN + 1) * (kN - 1)).id(), (kN * kN - 1).id());
  EXPECT_EQ((floor_div(kN, kM) + 1).id(), (Dim(1) + floor_div(kN + kM - kM, kM)).id());
  EXPECT_EQ((kN - kN + 3).id(), nullptr);
  EXPECT_NE((kN + 1).id(), (kN + 2).id());
  EXPECT_NE(floor_div(kN, kM).id(), mod(kN, kM).id());
  EXPECT_EQ((kN * kMax * 2).id(), Dim::undefined().id());
}

TEST(Dim, ThreadsShareTheObjectsOfEqualSizes) {
  constexpr int kExamples = 500;
  std::vector<std::vector<Dim>> by_thread(4);
  std::vector<std::thread> threads;
  for (std::vector<Dim>& dims : by_thread)
    threads.emplace_back([&] { dims = interned_examples(kExamples); });
  for (std::thread& thread : threads) thread.join();
  const std::vector<Dim> expected = interned_examples(kExamples);
  for (const std::vector<Dim>& dims : by_thread) {
    ASSERT_EQ(dims.size(), expected.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      ASSERT_EQ(dims[i].id(), expected[i].id()) << expected[i].to_string();
  }
}

}  // namespace
}  // namespace tessera
