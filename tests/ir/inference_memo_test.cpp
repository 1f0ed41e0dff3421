#include "tessera/ir/inference_memo.h"

#include <gtest/gtest.h>

#include "tessera/ops/catalog.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

const Dim n = Dim::symbol("n");

std::string result_of(const char* op, const Attrs& attrs, const std::vector<ValueInfo>& operands) {
  const OpDef& called = *find_op(op);
  const auto complete = completed(called, attrs);
  if (!complete) return to_string(complete.error());
  const auto results = infer(called, *complete, operands);
  return results ? to_string(results->front().type) : to_string(results.error());
}

ValueInfo of_type(Shape shape, DType dtype = DType::F32) {
  return {.type = Type::tensor(dtype, std::move(shape))};
}

ValueInfo shape_content(std::vector<std::int64_t> sizes) {
  const auto rank = static_cast<std::int64_t>(sizes.size());
  return constant_info(Tensor::of<std::int64_t>(DType::I64, {rank}, sizes));
}

/// Calls that differ in one place each.
std::vector<std::string> results_of_calls() {
  return {
      result_of("add", {}, {of_type({n, 3}), of_type({n, 3})}),
      result_of("add", {}, {of_type({n, 3}), of_type({1, 3})}),
      result_of("add", {}, {of_type({n, 3}, DType::F64), of_type({n, 3}, DType::F64)}),
      result_of("mul", {}, {of_type({n, 3}), of_type({2, 3})}),
      result_of("transpose", {{"perm", Ints{1, 0}}}, {of_type({n, 3})}),
      result_of("transpose", {{"perm", Ints{0, 1}}}, {of_type({n, 3})}),
      result_of("reshape", {}, {of_type({2, 6}), shape_content({3, 4})}),
      result_of("reshape", {}, {of_type({2, 6}), shape_content({4, 3})}),
      result_of("matmul", {}, {of_type({2, 3}), of_type({2, 3})}),
      result_of("softmax", {{"axis", 1}}, {of_type({n, 3})}),
  };
}

TEST(InferenceMemo, ChangesNoResult) {
  const std::vector<std::string> without = results_of_calls();
  const InferenceMemo memo;
  for (int again = 0; again < 2; ++again) {
    const InferenceMemo inner;
    EXPECT_EQ(results_of_calls(), without);
  }
  EXPECT_EQ(results_of_calls(), without);
}

TEST(InferenceMemo, SharesDefinitions) {
  const OpDef& add = *find_op("add");
  const Signature in(2, Argument{.type = {DType::F32, {n}}});
  EXPECT_NE(defined(add, {}, in)->get(), defined(add, {}, in)->get());
  const InferenceMemo memo;
  EXPECT_EQ(defined(add, {}, in)->get(), defined(add, {}, in)->get());
}

}  // namespace
}  // namespace tessera
