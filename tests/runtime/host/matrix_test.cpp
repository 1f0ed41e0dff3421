#include <cmath>

#include "tessera/support/rng.h"
#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

TEST(Det, IsTakenOfEachMatrix) {
  expect_result({"det", {floats({2, 2}, {0, 1, 2, 3})}}, floats({}, {-2}));
  expect_result({"det", {floats({3, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1})}},
                floats({3}, {-2, -3, -8}));
}

TEST(Det, OfASingularMatrixIsZero) {
  expect_result({"det", {floats({2, 2}, {0, 1, 0, 3})}}, floats({}, {0}));
}

TEST(Det, OfTheEmptyMatrixIsOne) {
  expect_result({"det", {floats({2, 0, 0}, {})}}, floats({2}, {1, 1}));
}

/// By expansion along the first row.
double expanded(const std::vector<double>& matrix, std::size_t m) {
  if (m == 0) return 1;
  double sum = 0;
  for (std::size_t skip = 0; skip < m; ++skip) {
    std::vector<double> minor;
    for (std::size_t r = 1; r < m; ++r)
      for (std::size_t c = 0; c < m; ++c)
        if (c != skip) minor.push_back(matrix[r * m + c]);
    sum += (skip % 2 == 0 ? 1 : -1) * matrix[skip] * expanded(minor, m - 1);
  }
  return sum;
}

TEST(Det, AgreesWithTheExpansionByMinors) {
  Rng rng(3);
  for (std::size_t m = 1; m <= 5; ++m) {
    std::vector<double> matrix(m * m);
    for (double& entry : matrix) entry = rng.uniform() - 0.5;
    const auto extent = static_cast<std::int64_t>(m);
    const auto out = results_of({"det", {numbers(DType::F64, {extent, extent}, matrix)}});
    EXPECT_NEAR(number_at(out[0].tensor(), 0), expanded(matrix, m), 1e-12);
  }
}

TEST(Det, WorksForEveryFloat) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64})
    expect_result({"det", {numbers(dtype, {2, 2}, {1, 2, 3, 4})}}, numbers(dtype, {}, {-2}));
}

TEST(Det, RefusesBadInput) {
  expect_refused({"det", {floats({1, 2}, {1, 2})}}, "shape [1, 2] holds no square matrices");
  expect_refused({"det", {floats({1}, {1})}}, "shape [1] holds no square matrices");
  expect_refused({"det", {integers({1, 1}, {1})}}, "input 0 has dtype i64");
  const std::int64_t many = std::int64_t{1} << 40;
  expect_refused({"det", {floats({many, many, 0, 0}, {})}},
                 "a tensor of shape [1099511627776, 1099511627776] is impossible");
}

}  // namespace
}  // namespace tessera::host
