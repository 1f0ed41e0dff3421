#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

/// Determinant by Gaussian elimination with partial pivoting; destroys the m x m matrix.
double determinant(std::vector<double>& matrix, std::size_t m) {
  double product = 1;
  for (std::size_t k = 0; k < m; ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k + 1; r < m; ++r)
      if (std::fabs(matrix[r * m + k]) > std::fabs(matrix[pivot * m + k])) pivot = r;
    if (matrix[pivot * m + k] == 0) return 0;
    if (pivot != k) {
      for (std::size_t c = k; c < m; ++c) std::swap(matrix[k * m + c], matrix[pivot * m + c]);
      product = -product;
    }
    product *= matrix[k * m + k];
    for (std::size_t r = k + 1; r < m; ++r) {
      const double factor = matrix[r * m + k] / matrix[k * m + k];
      for (std::size_t c = k + 1; c < m; ++c) matrix[r * m + c] -= factor * matrix[k * m + c];
    }
  }
  return product;
}

}  // namespace

Results det(const Call& call) {
  const Arguments in(call, "det");
  TESSERA_TRY(const Tensor x, in.float_tensor(0));
  const std::size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2])
    return in.fault(fmt::format("shape {} holds no square matrices", shape_text(x.shape)));
  TESSERA_TRY(Draft out, in.allocate(x.dtype, {x.shape.begin(), x.shape.end() - 2}));
  // Without matrices, m is not bounded by the data.
  const auto m = static_cast<std::size_t>(out.count() == 0 ? 0 : x.shape.back());
  std::vector<double> matrix(m * m);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const std::int64_t base = i * static_cast<std::int64_t>(matrix.size());
    for (std::size_t e = 0; e < matrix.size(); ++e)
      matrix[e] = number_at(x, base + static_cast<std::int64_t>(e));
    out.set_number(i, determinant(matrix, m));
  }
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
