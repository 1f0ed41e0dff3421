#include "tessera/tile/lang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tessera/tile/text.h"
#include "tests/tile/lang_run.h"

namespace tessera::tile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Longs = std::vector<std::int64_t>;
constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();

// -------------------------------------------------------------------------- values and operators

TEST(Lang, IsTracedToTheOperationsThatItNames) {
  const auto add = kernel("add", {"x", "n"}, [](const Ptr<float>& x, const Num<std::int64_t>& n) {
    // C++ leaves the order open in which arguments are evaluated: one call to a statement.
    const Val first = program_id(0) * 4;
    const Val at = first + arange(0, 4);
    const Val to = x + at, from = x + at, mask = at < n, doubled = load(from, mask) * 2;
    store(to, doubled, at < n);
  });
  ASSERT_TRUE(add) << why(add);
  EXPECT_EQ(to_text(*add), R"(kernel add(x: *f32, n: i64) {
  v0: i64 = pid() {axis = 0}
  v1: i64 = 4
  v2: i64 = mul(v0, v1)
  v3: i64[4] = iota()
  v4: i64[4] = broadcast(v2)
  v5: i64[4] = add(v4, v3)
  v6: *f32[4] = broadcast(x)
  v7: *f32[4] = offset(v6, v5)
  v8: *f32[4] = broadcast(x)
  v9: *f32[4] = offset(v8, v5)
  v10: i64[4] = broadcast(n)
  v11: bool[4] = lt(v5, v10)
  v12: f32[4] = load(v9, v11)
  v13: f32[4] = 2.0
  v14: f32[4] = mul(v12, v13)
  v15: i64[4] = broadcast(n)
  v16: bool[4] = lt(v5, v15)
  store(v7, v14, v16)
}
)");
}

TEST(Lang, PromotesAsTritonDoes) {
  using D = DType;
  struct Case {
    D a, b, sum, quotient;
  };
  for (const auto& [a, b, sum, quotient] : std::vector<Case>{
           {D::F32, D::F32, D::F32, D::F32},
           {D::F16, D::F32, D::F32, D::F32},
           {D::F64, D::BF16, D::F64, D::F64},
           {D::F16, D::F16, D::F16, D::F32},
           {D::BF16, D::BF16, D::BF16, D::F32},
           {D::F16, D::BF16, D::F16, D::F32},
           {D::BF16, D::I64, D::F32, D::F32},
           {D::F16, D::I64, D::F16, D::F32},
           {D::I32, D::F32, D::F32, D::F32},
           {D::I8, D::I32, D::I32, D::I32},
           {D::I32, D::U32, D::U32, D::U32},
           {D::U8, D::I64, D::I64, D::I64},
           {D::I16, D::U32, D::U32, D::U32},
           {D::Bool, D::I8, D::I8, D::I8},
       }) {
    tracing([&] {
      EXPECT_EQ((zeros({4}, a) + zeros({4}, b)).dtype(), sum) << to_string(a) << to_string(b);
      EXPECT_EQ((zeros({4}, b) + zeros({}, a)).dtype(), sum) << to_string(a) << to_string(b);
      EXPECT_EQ((zeros({4}, a) / zeros({4}, b)).dtype(), quotient) << to_string(a) << to_string(b);
      EXPECT_EQ((zeros({4}, a) < zeros({4}, b)).dtype(), D::Bool);
    });
  }
}

TEST(Lang, ANumberOfCppTakesTheTypeOfWhatItMeets) {
  tracing([] {
    EXPECT_EQ((zeros({2}, DType::F16) * 2.5).dtype(), DType::F16);
    EXPECT_EQ((3 - zeros({2}, DType::I8)).dtype(), DType::I8);
    EXPECT_EQ((zeros({2}, DType::I8) + 0.5).dtype(), DType::F32);
    EXPECT_EQ((zeros({2}, DType::Bool) + 1).dtype(), DType::I32);
    EXPECT_EQ((zeros({2}, DType::BF16) / 2).dtype(), DType::F32);
    EXPECT_EQ(Val(1).dtype(), DType::I64);
    EXPECT_EQ(Val(1.5).dtype(), DType::F32);
    EXPECT_EQ(Val(true).dtype(), DType::Bool);
    EXPECT_EQ(fma(zeros({2}, DType::F16), 2.0, 1.0).dtype(), DType::F16);
    EXPECT_EQ(where(true, zeros({2}, DType::F16), 0.0).dtype(), DType::F16);
  });
  EXPECT_THAT(made<std::uint32_t>(1, [] { return zeros({1}, DType::U32) + -1; }),
              ElementsAre(0xFFFFFFFFu));
}

TEST(Lang, ShapesAreAlignedAtTheEnd) {
  tracing([] {
    EXPECT_EQ((zeros({4, 1}) + zeros({3})).shape(), (Extents{4, 3}));
    EXPECT_EQ((zeros({2, 4, 1}) + zeros({1, 1, 5})).shape(), (Extents{2, 4, 5}));
    EXPECT_EQ((Val(1.0) + zeros({7})).shape(), (Extents{7}));
    EXPECT_EQ((arange(0, 4)[{All, None}].shape()), (Extents{4, 1}));
    EXPECT_EQ((arange(0, 4)[{None, All, None}].shape()), (Extents{1, 4, 1}));
    EXPECT_EQ(expand_dims(arange(0, 4), -1).shape(), (Extents{4, 1}));
  });
}

TEST(Lang, OperatorsOfIntegersAreThoseOfCpp) {
  const Longs values = {-7, -1, 0, 1, 5, 64};
  struct Case {
    std::function<Val(const Val&)> traced;
    std::function<std::int64_t(std::int64_t)> plain;
  };
  const std::vector<Case> cases = {
      {[](const Val& x) { return x + 3; }, [](auto x) { return x + 3; }},
      {[](const Val& x) { return 3 - x; }, [](auto x) { return 3 - x; }},
      {[](const Val& x) { return x * -3; }, [](auto x) { return x * -3; }},
      {[](const Val& x) { return x / 2; }, [](auto x) { return x / 2; }},
      {[](const Val& x) { return x % 4; }, [](auto x) { return x % 4; }},
      {[](const Val& x) { return x & 6; }, [](auto x) { return x & 6; }},
      {[](const Val& x) { return x | 6; }, [](auto x) { return x | 6; }},
      {[](const Val& x) { return x ^ 6; }, [](auto x) { return x ^ 6; }},
      {[](const Val& x) { return x << 2; }, [](auto x) { return x * 4; }},
      {[](const Val& x) { return x >> 1; }, [](auto x) { return x >> 1; }},
      {[](const Val& x) { return ~x; }, [](auto x) { return ~x; }},
      {[](const Val& x) { return -x; }, [](auto x) { return -x; }},
      {[](const Val& x) { return !x; }, [](auto x) { return !x; }},
      {[](const Val& x) { return x && x < 5; }, [](auto x) { return x && x < 5; }},
      {[](const Val& x) { return x == 0 || x > 5; }, [](auto x) { return x == 0 || x > 5; }},
      {[](const Val& x) { return x != 1; }, [](auto x) { return x != 1; }},
      {[](const Val& x) { return x <= 0; }, [](auto x) { return x <= 0; }},
      {[](const Val& x) { return x >= 1; }, [](auto x) { return x >= 1; }},
      {[](const Val& x) { return abs(x); }, [](auto x) { return std::abs(x); }},
      {[](const Val& x) { return maximum(x, 1); },
       [](auto x) { return std::max<std::int64_t>(x, 1); }},
      {[](const Val& x) { return minimum(x, 1); },
       [](auto x) { return std::min<std::int64_t>(x, 1); }},
      {[](const Val& x) { return clamp(x, -1, 2); },
       [](auto x) { return std::clamp<std::int64_t>(x, -1, 2); }},
      {[](const Val& x) { return cdiv(x + 7, 4); }, [](auto x) { return cdiv(x + 7, 4); }},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Longs x = values, expected;
    for (const std::int64_t value : values) expected.push_back(cases[i].plain(value));
    run(kernel("map", {"x"},
               [&](const Ptr<std::int64_t>& to) {
                 const Val at = to + arange(0, 6);
                 store(at, cases[i].traced(load(at)));
               }),
        {1, 1, 1}, x);
    EXPECT_EQ(x, expected) << "case " << i;
  }
}

TEST(Lang, FunctionsOfFloatsAreThoseOfTheStandard) {
  const Floats values = {0.25F, 0.5F, 1.0F, 1.5F, 2.5F, 3.0F};
  struct Case {
    Val (*traced)(const Operand&);
    double (*plain)(double);
  };
  const std::vector<Case> cases = {
      {exp, std::exp},
      {exp2, std::exp2},
      {log, std::log},
      {log2, std::log2},
      {sin, std::sin},
      {cos, std::cos},
      {tanh, std::tanh},
      {erf, std::erf},
      {sqrt, std::sqrt},
      {rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {abs, std::fabs},
      {sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {floor, std::floor},
      {ceil, std::ceil},
      {tile::round, std::nearbyint},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Floats found = made(6, [&] { return cases[i].traced(filled(values)); });
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double expected = cases[i].plain(values[j]);
      EXPECT_NEAR(found[j], expected, 1e-6 * std::fabs(expected)) << "case " << i;
    }
  }
  EXPECT_THAT(made(2, [] { return pow(filled({2, 3}), 3.0); }), ElementsAre(8, 27));
  EXPECT_THAT(made(2, [] { return fma(filled({2, 3}), 4, 1); }), ElementsAre(9, 13));
}

TEST(Lang, MaximumPassesOverNanUnlessItIsAskedToHandItOn) {
  EXPECT_THAT(made(2, [] { return maximum(filled({kQuietNan, 1}), 0.5); }), ElementsAre(0.5, 1));
  EXPECT_THAT(made(2,
                   [] {
                     return minimum(filled({kQuietNan, 1}), 0.5, Nan::Propagate);
                   }),
              ElementsAre(::testing::IsNan(), 0.5));
}

TEST(Lang, ConvertsAndReinterprets) {
  EXPECT_THAT(made<std::int32_t>(2,
                                 [] {
                                   return filled({-1.5, 2.7}).to(DType::I32);
                                 }),
              ElementsAre(-1, 2));
  EXPECT_THAT(made<std::int32_t>(1, [] { return filled({1}).bitcast(DType::I32); }),
              ElementsAre(0x3F800000));
}

// ------------------------------------------------------------------------------ shapes and folds

TEST(Lang, ReshapesPermutesAndCuts) {
  const Floats six = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(made(6, [&] { return trans(matrix(six, 3)); }), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(made(4,
                   [&] {
                     return slice(matrix(six, 3), {0, 1}, {2, 2});
                   }),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(made(4,
                   [&] {
                     return concat({filled({1, 2}), filled({3, 4})}, -1);
                   }),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(made(4,
                   [&] {
                     return broadcast_to(filled({1, 2}), {2, 2});
                   }),
              ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(made(3, [&] { return gather(filled(six), 5 - 2 * arange(0, 3), 0); }),
              ElementsAre(6, 4, 2));
}

TEST(Lang, ReducesAlongOneAxisOrAll) {
  const Floats six = {1, 5, 3, 4, 2, 6};
  EXPECT_THAT(made(2, [&] { return sum(matrix(six, 3), 1); }), ElementsAre(9, 12));
  EXPECT_THAT(made(3, [&] { return sum(matrix(six, 3), 0); }), ElementsAre(5, 7, 9));
  EXPECT_THAT(made(1, [&] { return sum(matrix(six, 3)); }), ElementsAre(21));
  EXPECT_THAT(made(2, [&] { return max(matrix(six, 3), -1, Dims::Keep); }), ElementsAre(5, 6));
  EXPECT_THAT(made(3, [&] { return min(matrix(six, 3), 0); }), ElementsAre(1, 2, 3));
  EXPECT_THAT(made(1, [&] { return prod(filled(six)); }), ElementsAre(720));
  EXPECT_THAT(made(6, [&] { return cumsum(matrix(six, 3), 1); }), ElementsAre(1, 6, 9, 4, 6, 12));
  EXPECT_THAT(made(3, [&] { return cumprod(filled({2, 3, 4})); }), ElementsAre(2, 6, 24));
  tracing([&] {
    EXPECT_EQ(sum(matrix(six, 3), 1, Dims::Keep).shape(), (Extents{2, 1}));
    EXPECT_EQ(sum(matrix(six, 3), kAllAxes, Dims::Keep).shape(), (Extents{1, 1}));
    EXPECT_EQ(sum(zeros({4}, DType::I8)).dtype(), DType::I32);
    EXPECT_EQ(sum(zeros({4}, DType::U16)).dtype(), DType::U32);
  });
}

TEST(Lang, FindsTheFirstOfTheGreatestAndPassesOverNan) {
  const auto index = [](const Floats& numbers, bool greatest) {
    return made<std::int64_t>(
        1, [&] { return greatest ? argmax(filled(numbers), 0) : argmin(filled(numbers), 0); })[0];
  };
  EXPECT_EQ(index({1, 3, 2, 3}, true), 1);
  EXPECT_EQ(index({4, 3, 2, 2}, false), 2);
  EXPECT_EQ(index({kQuietNan, 3, kQuietNan, 5}, true), 3);
  EXPECT_EQ(index({7, kQuietNan}, false), 0);
  EXPECT_EQ(index({kQuietNan, kQuietNan}, true), 0);
  EXPECT_THAT(made(2,
                   [] {
                     return max_with_index(matrix({1, 4, 3, 2}, 2), 1).first;
                   }),
              ElementsAre(4, 3));
}

TEST(Lang, CombinesSeveralTilesAtOnce) {
  // Mean and count of two groups, put together.
  const auto means = made(1, [] {
    const std::vector<Val> both =
        reduce({filled({1, 2, 6}), full({3}, 1)}, 0, [](const auto& left, const auto& right) {
          const Val count = left[1] + right[1];
          return std::vector<Val>{(left[0] * left[1] + right[0] * right[1]) / count, count};
        });
    return both[0];
  });
  EXPECT_THAT(means, ElementsAre(3));
  EXPECT_THAT(made(3,
                   [] {
                     return associative_scan({filled({1, 2, 3})}, 0,
                                             [](const auto& left, const auto& right) {
                                               return std::vector<Val>{left[0] * right[0]};
                                             })[0];
                   }),
              ElementsAre(1, 2, 6));
}

TEST(Lang, MultipliesMatrices) {
  EXPECT_THAT(made(4,
                   [] {
                     return dot(matrix({1, 2, 3, 4}, 2), matrix({5, 6, 7, 8}, 2));
                   }),
              ElementsAre(19, 22, 43, 50));
  tracing([] {
    EXPECT_EQ(dot(zeros({2, 3}, DType::F16), zeros({3, 4}, DType::F16)).dtype(), DType::F32);
    EXPECT_EQ(dot(zeros({2, 3}, DType::I8), zeros({3, 4}, DType::I8)).dtype(), DType::I32);
    EXPECT_EQ(dot(zeros({2, 3}), zeros({3, 4}), zeros({2, 4})).shape(), (Extents{2, 4}));
  });
}

TEST(Lang, SoftmaxSumsToOne) {
  const Floats found = made(3, [] { return softmax(filled({1, 2, 3})); });
  const double total = std::exp(-2) + std::exp(-1) + 1;
  EXPECT_NEAR(found[0], std::exp(-2) / total, 1e-7);
  EXPECT_NEAR(found[2], 1 / total, 1e-7);
}

// ---------------------------------------------------------------------------------------- memory

TEST(Lang, LoadsAndStoresThroughViews) {
  Floats x = {1, 2, 3, 4, 5, 6}, out(6);
  run(kernel("shift", {"x", "out"},
             [](const ViewOf<float, 2>& from, const ViewOf<float, 2>& to) {
               const Val tile = from.load({1, 1}, {2, 3}, -1);
               to.store({0, program_id(0)}, tile * from.dim(1).to(DType::F32));
             }),
      {1, 1, 1}, view_of(x, {2, 3}), view_of(out, {2, 3}));
  EXPECT_THAT(out, ElementsAre(15, 18, -3, -3, -3, -3));
}

TEST(Lang, MakesViewsOfPointers) {
  Floats x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  run(kernel("views", {"x", "rows", "columns"},
             [](const Ptr<float>& p, const Num<int>& rows, const Num<int>& columns) {
               const View contiguous = make_view(p, {2, rows, columns});
               const View transposed = make_view(p, {columns, rows}, {1, columns});
               const Val rows_first = trans(transposed.load({0, 0}, {3, 2}));
               contiguous.store({1, 0, 0}, reshape(rows_first, {1, 2, 3}));
             }),
      {1, 1, 1}, x, 2, 3);
  EXPECT_THAT(x, ElementsAre(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
}

TEST(Lang, MasksWhatIsLoadedAndStored) {
  Floats x = {1, 2, 3};
  run(kernel("masked", {"x"},
             [](const Ptr<float>& p) {
               const Val at = arange(0, 8);
               const Val found = load(p + at, at < 3, 9);
               store(p + at, sum(found), at == 1);
             }),
      {1, 1, 1}, x);
  EXPECT_THAT(x, ElementsAre(1, 51, 3));
}

TEST(Lang, AtomicsReturnWhatWasThere) {
  std::vector<std::int32_t> x = {5, 5, 5, 6, 6, 6, 7, 0}, old(8);
  run(kernel("atomics", {"x", "old"},
             [](const Ptr<std::int32_t>& p, const Ptr<std::int32_t>& before) {
               store(before + 0, atomic_add(p + 0, 2));
               store(before + 1, atomic_max(p + 1, 9));
               store(before + 2, atomic_min(p + 2, 1));
               store(before + 3, atomic_and(p + 3, 2));
               store(before + 4, atomic_or(p + 4, 1));
               store(before + 5, atomic_xor(p + 5, 3));
               store(before + 6, atomic_xchg(p + 6, 8));
               const Val first = atomic_cas(p + 7, 0, 4);
               store(before + 7, first + atomic_cas(p + 7, 3, 1));
             }),
      {1, 1, 1}, x, old);
  EXPECT_THAT(x, ElementsAre(7, 9, 1, 2, 7, 5, 8, 4));
  EXPECT_THAT(old, ElementsAre(5, 5, 5, 6, 6, 6, 7, 4));
}

// --------------------------------------------------------------------------------------- control

TEST(Lang, ALoopCarriesWhatItsBodyAssigns) {
  std::vector<std::int64_t> out(1);
  const auto summed =
      kernel("sum", {"out", "n"}, [](const Ptr<std::int64_t>& to, const Num<int>& n) {
        Val total = 0, untouched = 7;
        for (const Val i : range(n)) {
          for (const Val j : range(0, i + 1, 2)) total += j * untouched;
        }
        store(to, total);
      });
  run(summed, {1, 1, 1}, out, 6);
  EXPECT_EQ(out[0], 7 * (0 + 0 + 2 + 2 + 6 + 6));
  EXPECT_THAT(to_text(*summed),
              HasSubstr("v6: i64 = for (v4: i32 = v2 to n step v3, v5: i64 = v0) {"));
}

TEST(Lang, ALoopCarriesPointersAndSwapsOfVariables) {
  std::vector<std::int64_t> out(8);
  run(kernel("fibonacci", {"out"},
             [](const Ptr<std::int64_t>& to) {
               Val a = 0, b = 1, at = to;
               for ([[maybe_unused]] const Val i : range(0, 8)) {
                 store(at, a);
                 const Val next = a + b;
                 a = b;
                 b = next;
                 at += 1;
               }
             }),
      {1, 1, 1}, out);
  EXPECT_THAT(out, ElementsAre(0, 1, 1, 2, 3, 5, 8, 13));
}

TEST(Lang, BranchesHandOnWhatTheyAssign) {
  std::vector<std::int64_t> out(6);
  run(kernel("branch", {"out"},
             [](const Ptr<std::int64_t>& to) {
               const Val i = program_id(0);
               Val x = 100, y, z = i;
               when(
                   i % 2 == 0,
                   [&] {
                     y = i * 10;
                     when(i == 4, [&] { x += 1; });
                   },
                   [&] { y = -i; });
               when(
                   true, [&] { z = z + 1; }, [&] { z = z - 1; });
               store(to + i, x + y * 1000 + z);
             }),
      {6, 1, 1}, out);
  EXPECT_THAT(out, ElementsAre(101, -898, 20103, -2896, 40106, -4894));
}

TEST(Lang, WhileRepeatsAsLongAsItsConditionHolds) {
  std::vector<std::int64_t> out(5);
  run(kernel("collatz", {"out"},
             [](const Ptr<std::int64_t>& to) {
               Val x = program_id(0) + 1, steps = 0;
               loop_while([&] { return x != 1; },
                          [&] {
                            x = where(x % 2 == 0, x / 2, 3 * x + 1);
                            steps += 1;
                          });
               store(to + program_id(0), steps);
             }),
      {5, 1, 1}, out);
  EXPECT_THAT(out, ElementsAre(0, 1, 7, 2, 5));
}

TEST(Lang, VariablesInContainersAreVariables) {
  std::vector<std::int64_t> out(3);
  run(kernel("container", {"out"},
             [](const Ptr<std::int64_t>& to) {
               std::vector<Val> sums(3, Val(0));
               for (const Val i : range(0, 4)) {
                 for (int j = 0; j < 3; ++j) sums[static_cast<std::size_t>(j)] += i * j;
               }
               for (int j = 0; j < 3; ++j) store(to + j, sums[static_cast<std::size_t>(j)]);
             }),
      {1, 1, 1}, out);
  EXPECT_THAT(out, ElementsAre(0, 6, 12));
}

TEST(Lang, GroupsOfTilesVisitEachTileOnce) {
  constexpr std::int64_t kRows = 5, kColumns = 3;
  std::vector<std::int64_t> order(kRows * kColumns);
  run(kernel("order", {"order"},
             [](const Ptr<std::int64_t>& to) {
               const auto [row, column] = swizzle2d(program_id(0), kRows, kColumns, 2);
               store(to + program_id(0), row * 10 + column);
             }),
      {kRows * kColumns, 1, 1}, order);
  EXPECT_THAT(order, ElementsAre(0, 10, 1, 11, 2, 12, 20, 30, 21, 31, 22, 32, 40, 41, 42));
}

TEST(Lang, RecordsFactsAndPrints) {
  const auto traced = kernel("facts", {"n"}, [](const Num<std::int64_t>& n) {
    assume(n > 0);
    const Val at = max_contiguous(multiple_of(arange(0, 8) + n, {8}), {8});
    device_assert(at >= 0, "not below 0");
    device_print("at", {at, 3});
    barrier();
  });
  ASSERT_TRUE(traced) << why(traced);
  for (const char* part : {"assume(", "multiple_of", "max_contiguous", "not below 0", "barrier()"})
    EXPECT_THAT(to_text(*traced), HasSubstr(part));
  std::string printed;
  const auto list = arguments_of(*traced, 8);
  ASSERT_TRUE(interpret(*traced, list, {1, 1, 1},
                        {.print = [&](std::string_view text) { printed += text; }}));
  EXPECT_THAT(printed, HasSubstr("at"));
}

}  // namespace
}  // namespace tessera::tile
