#include <gtest/gtest.h>

#include "tessera/ops/catalog.h"
#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

struct ReshapeCase {
  std::vector<std::int64_t> from, asked, to;
};

Tensor counted(const std::vector<std::int64_t>& shape) {
  std::vector<double> elements(static_cast<std::size_t>(*element_count(shape)));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i);
  return f32(shape, elements);
}

Tensor list(const std::vector<std::int64_t>& values) {
  return i64({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Reshape, KeepsTheRowMajorOrder) {
  const ReshapeCase cases[] = {
      {{2, 3}, {6}, {6}},
      {{6}, {2, 3}, {2, 3}},
      {{4, 6}, {2, 12}, {2, 12}},
      {{4, 6}, {6, 4}, {6, 4}},
      {{4, 6, 5}, {6, 4, 5}, {6, 4, 5}},
      {{2, 3, 4}, {0, -1}, {2, 12}},
      {{2, 3, 4}, {-1, 0, 2}, {4, 3, 2}},
      {{2, 3, 4}, {3, -1, 2}, {3, 4, 2}},
      {{1, 6, 1}, {2, 1, 3}, {2, 1, 3}},
      {{12, 5}, {3, 2, 2, 5, 1}, {3, 2, 2, 5, 1}},
      {{1}, {}, {}},
      {{}, {1, 1}, {1, 1}},
      {{0, 3}, {0, -1}, {0, 3}},
      {{0, 3}, {3, 0}, {3, 0}},
  };
  for (const ReshapeCase& c : cases) {
    SCOPED_TRACE(fmt::format("case {}", &c - cases));
    const bool zero = c.from == std::vector<std::int64_t>{0, 3} && c.asked[0] == 3;
    expect_op({"reshape",
               {{"allowzero", zero ? 1 : 0}},
               {counted(c.from), list(c.asked)},
               {counted(c.to)}});
  }
}

TEST(Reshape, NeedsNoDivisionWhereAxesOnlySplitAndMerge) {
  const Argument x{.type = {DType::F32, {Dim::symbol("n"), 4, 6}}};
  const Argument shape{.type = {DType::I64, {2}}, .value = std::vector<Dim>{-1, 12}};
  const auto definition = find_op("reshape")->define({{"allowzero", 0}}, {x, shape});
  ASSERT_TRUE(definition);
  const Output& out = definition->outputs[0];
  EXPECT_EQ(out.shape(), (Shape{Dim::symbol("n") * 2, 12}));
  ASSERT_EQ(out.axes[0].parts.size(), 2u);
  EXPECT_EQ(out.axes[0].parts[0].size(), Dim::symbol("n"));
  EXPECT_EQ(out.axes[1].parts.size(), 2u);
}

TEST(Reshape, RefusesShapesThatHoldMoreOrLess) {
  const Tensor x = counted({2, 3});
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
           {5}, {-1, -1}, {-2, 3}, {4, -1}, {1, 1, 0}, {INT64_MAX, INT64_MAX}})
    EXPECT_FALSE(try_evaluate("reshape", {}, {x, list(shape)}));
}

TEST(Reshape, FlattensAroundAnAxis) {
  expect_op({"flatten", {}, {counted({2, 3, 4})}, {counted({2, 12})}});
  expect_op({"flatten", {{"axis", 0}}, {counted({2, 3})}, {counted({1, 6})}});
  expect_op({"flatten", {{"axis", -1}}, {counted({2, 3, 4})}, {counted({6, 4})}});
  expect_op({"flatten", {{"axis", 3}}, {counted({2, 3, 4})}, {counted({24, 1})}});
  EXPECT_FALSE(try_evaluate("flatten", {{"axis", 3}}, {counted({2, 3})}));
}

TEST(Reshape, DropsAndAddsAxesOfSizeOne) {
  expect_op({"squeeze", {}, {counted({1, 3, 1})}, {counted({3})}});
  expect_op({"squeeze", {}, {counted({1, 3, 1}), list({-1})}, {counted({1, 3})}});
  expect_op({"unsqueeze", {}, {counted({3}), list({0, -1})}, {counted({1, 3, 1})}});
  expect_op({"unsqueeze", {}, {counted({2, 3}), list({1})}, {counted({2, 1, 3})}});
  EXPECT_FALSE(try_evaluate("squeeze", {}, {counted({2, 3}), list({0})}));
  EXPECT_FALSE(try_evaluate("unsqueeze", {}, {counted({2}), list({1, 1})}));
}

}  // namespace
}  // namespace tessera
