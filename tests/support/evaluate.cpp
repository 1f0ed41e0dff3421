#include "tests/support/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/interp/interp.h"
#include "tessera/ir/infer.h"
#include "tessera/ops/catalog.h"
#include "tessera/support/rng.h"

namespace tessera::testing {

Expected<std::vector<Tensor>> try_evaluate(std::string_view op, const Attrs& attrs,
                                           const std::vector<std::optional<Tensor>>& inputs) {
  const OpDef* found = find_op(op);
  if (found == nullptr)
    return Diagnostic{.id = "test", .message = fmt::format("there is no operator {}", op)};
  TESSERA_TRY(const Attrs complete, completed(*found, attrs));
  std::vector<interp::Value> values;
  for (const std::optional<Tensor>& input : inputs)
    values.push_back(input ? interp::Value{*input} : interp::Value{});
  std::vector<ValueInfo> inputs_known;
  for (const std::optional<Tensor>& input : inputs)
    inputs_known.push_back(input ? constant_info(*input) : ValueInfo{.present = false});
  TESSERA_TRY(std::vector<ValueInfo> results_known, infer(*found, complete, inputs_known));
  while (found->kind() == OpDef::Kind::Composite && results_known.size() > 1 &&
         results_known.back().type.kind == Type::Kind::Unknown)
    results_known.pop_back();
  TESSERA_TRY(const std::vector<interp::Value> results,
              interp::run_op<double>(*found, complete, values,
                                     static_cast<int>(results_known.size()), {.threads = 2}));
  std::vector<Tensor> tensors;
  for (const interp::Value& result : results)
    tensors.push_back(result.datum.is_tensor() ? result.datum.tensor() : Tensor{});
  return tensors;
}

std::vector<Tensor> evaluate(std::string_view op, const Attrs& attrs,
                             const std::vector<std::optional<Tensor>>& inputs) {
  auto results = try_evaluate(op, attrs, inputs);
  if (!results) {
    ADD_FAILURE() << op << ": " << to_string(results.error());
    return {};
  }
  return *std::move(results);
}

Tensor tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& elements) {
  Buffer buffer(elements.size() * static_cast<std::size_t>(byte_width(dtype)));
  for (std::size_t i = 0; i < elements.size(); ++i)
    store_number(dtype, buffer.data(), static_cast<std::int64_t>(i), elements[i]);
  return {dtype, std::move(shape), std::move(buffer).freeze()};
}

Tensor f32(std::vector<std::int64_t> shape, const std::vector<double>& elements) {
  return tensor(DType::F32, std::move(shape), elements);
}
Tensor f64(std::vector<std::int64_t> shape, const std::vector<double>& elements) {
  return tensor(DType::F64, std::move(shape), elements);
}
Tensor i64(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& elements) {
  return Tensor::of<std::int64_t>(DType::I64, std::move(shape), elements);
}

Tensor random_f32(std::vector<std::int64_t> shape, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> elements(static_cast<std::size_t>(element_count(shape).value()));
  for (double& element : elements) element = 2 * rng.uniform() - 1;
  return f32(std::move(shape), elements);
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.count(); ++i) result.push_back(number_at(tensor, i));
  return result;
}

void expect_near(const Tensor& actual, const Tensor& expected, double tolerance) {
  EXPECT_EQ(to_string(actual.dtype), to_string(expected.dtype));
  ASSERT_EQ(actual.shape, expected.shape);
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    const double a = number_at(actual, i), e = number_at(expected, i);
    if (std::isnan(e)) {
      EXPECT_TRUE(std::isnan(a)) << "element " << i << " is " << a;
    } else if (std::isinf(e)) {
      EXPECT_EQ(a, e) << "element " << i;
    } else {
      EXPECT_NEAR(a, e, tolerance * std::max(1.0, std::fabs(e))) << "element " << i;
    }
  }
}

}  // namespace tessera::testing
