#include <gtest/gtest.h>

#include "tessera/interp/interp.h"
#include "tessera/ops/catalog.h"
#include "tests/support/evaluate.h"

// Operators that only select and compare elements do so with text as well.

namespace tessera {
namespace {

using testing::evaluate;
using testing::i64;
using testing::numbers;
using testing::tensor;
using testing::try_evaluate;

Tensor texts(std::vector<std::int64_t> shape, Strings elements) {
  return Tensor::of_strings(std::move(shape), std::move(elements));
}

struct TextCase {
  std::string_view op;
  Attrs attrs = {};
  std::vector<std::optional<Tensor>> inputs;
  Tensor expected;
};

void expect_text(const TextCase& c) {
  SCOPED_TRACE(c.op);
  const std::vector<Tensor> out = evaluate(c.op, c.attrs, c.inputs);
  ASSERT_FALSE(out.empty());
  ASSERT_EQ(out[0].dtype, DType::String);
  EXPECT_EQ(out[0].shape, c.expected.shape);
  EXPECT_EQ(*out[0].strings, *c.expected.strings);
}

const Tensor kWords = texts({2, 3}, {"a", "b", "", "b", "dé", "a"});

TEST(Text, IsMovedByDefinitions) {
  expect_text({"transpose", {}, {kWords}, texts({3, 2}, {"a", "b", "b", "dé", "", "a"})});
  expect_text(
      {"reshape", {}, {kWords, i64({2}, {3, -1})}, texts({3, 2}, {"a", "b", "", "b", "dé", "a"})});
  expect_text(
      {"gather", {{"axis", 1}}, {kWords, i64({2}, {-1, 0})}, texts({2, 2}, {"", "a", "a", "b"})});
  expect_text({"concat",
               {{"axis", 0}},
               {texts({1}, {"x"}), texts({0}, {}), texts({2}, {"", "x"})},
               texts({3}, {"x", "", "x"})});
  expect_text({"slice",
               {},
               {kWords, i64({1}, {1}), i64({1}, {3}), i64({1}, {1})},
               texts({2, 2}, {"b", "", "dé", "a"})});
  expect_text({"where",
               {},
               {tensor(DType::Bool, {2, 1}, {1, 0}), kWords, texts({}, {"no"})},
               texts({2, 3}, {"a", "b", "", "no", "no", "no"})});
  expect_text({"scatter_elements",
               {{"axis", 0}},
               {texts({3}, {"a", "b", "c"}), i64({2}, {2, 0}), texts({2}, {"x", "y"})},
               texts({3}, {"y", "b", "x"})});
}

TEST(Text, IsEmptyWherePaddingIs) {
  expect_text(
      {"pad", {}, {texts({2}, {"a", "b"}), i64({2}, {1, 2})}, texts({5}, {"", "a", "b", "", ""})});
  expect_text(
      {"pad", {}, {texts({1}, {"a"}), i64({2}, {1, 0}), texts({}, {"p"})}, texts({2}, {"p", "a"})});
}

TEST(Text, IsComparedForEquality) {
  const std::vector<Tensor> out =
      evaluate("equal", {}, {texts({2, 1}, {"a", ""}), texts({3}, {"a", "A", ""})});
  EXPECT_EQ(out.at(0).dtype, DType::Bool);
  EXPECT_EQ(numbers(out.at(0)), (std::vector<double>{1, 0, 0, 0, 0, 1}));
}

TEST(Text, HasASizeAndAShape) {
  EXPECT_EQ(numbers(evaluate("shape", {}, {kWords}).at(0)), (std::vector<double>{2, 3}));
}

TEST(Text, IsNotComputedWith) {
  const Tensor x = texts({2}, {"a", "b"});
  for (const char* op : {"add", "max", "less", "concat_from_sequence", "matmul"})
    EXPECT_FALSE(try_evaluate(
        op, op == std::string("concat_from_sequence") ? Attrs{{"axis", 0}} : Attrs{}, {x, x}))
        << op;
  for (const char* op : {"relu", "neg", "reduce_max", "arg_max", "cum_sum", "abs"})
    EXPECT_FALSE(try_evaluate(op, {}, {x})) << op;
  EXPECT_FALSE(try_evaluate("cast", {{"to", std::string("f32")}}, {x}));
  EXPECT_FALSE(try_evaluate("where", {}, {x, x, x}));
  EXPECT_FALSE(try_evaluate("scatter_elements", {{"reduction", "add"}}, {x, i64({1}, {0}), x}));
}

TEST(Text, LeadsToADiagnosticInEveryOtherOperator) {
  for (const OpDef& op : catalog())
    for (int rank = 0; rank <= 4; ++rank)
      for (std::size_t count = 1; count <= 5; ++count) {
        if (op.kind() == OpDef::Kind::Control) continue;
        const Tensor x = texts(std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1), {"a"});
        const auto out = try_evaluate(op.name, {}, std::vector<std::optional<Tensor>>(count, x));
        if (!out) {
          EXPECT_FALSE(out.error().id.empty()) << op.name;
        }
      }
}

}  // namespace
}  // namespace tessera
