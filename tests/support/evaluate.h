#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/attrs.h"
#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera::testing {

/// Runs one operator by its definition in double; an input that is nullopt is left out.
Expected<std::vector<Tensor>> try_evaluate(std::string_view op, const Attrs& attrs,
                                           const std::vector<std::optional<Tensor>>& inputs);

/// The same for what has to succeed: a diagnostic fails the test and gives nothing.
std::vector<Tensor> evaluate(std::string_view op, const Attrs& attrs,
                             const std::vector<std::optional<Tensor>>& inputs);

/// Tensors from plain numbers.
Tensor f32(std::vector<std::int64_t> shape, const std::vector<double>& elements);
Tensor f64(std::vector<std::int64_t> shape, const std::vector<double>& elements);
Tensor i64(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& elements);
Tensor tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& elements);
/// Seeded numbers in [-1, 1).
Tensor random_f32(std::vector<std::int64_t> shape, std::uint64_t seed);

/// The elements as doubles.
std::vector<double> numbers(const Tensor& tensor);

/// Shape and elements agree, the latter within `tolerance` * max(1, |expected|); NaN equals NaN.
void expect_near(const Tensor& actual, const Tensor& expected, double tolerance = 1e-6);

}  // namespace tessera::testing
