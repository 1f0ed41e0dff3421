#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::try_evaluate;

const Tensor kQuery = f32({1, 2, 4}, {1, 2, 3, 4, 0.5, -1, 2, 0});  // 2 heads that share one state
const Tensor kKey = f32({1, 2, 2}, {0.5, 1, -1, 0.25});
const Tensor kValue = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});

TEST(LinearAttention, AddsProductsOfKeyAndValueToTheState) {
  // S1 = past + k1 v1 = [[1.5, 3, 4.5], [5, 7, 9]], S2 = S1 + k2 v2; scale is 2.
  expect_op({.op = "linear_attention",
             .attrs = {{"q_num_heads", 2},
                       {"kv_num_heads", 1},
                       {"update_rule", "linear"},
                       {"scale", 2.0}},
             .inputs = {kQuery, kKey, kValue, f32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})},
             .outputs = {f32({1, 2, 6}, {23, 34, 45, 49, 74, 99, -14.5, -18.5, -22.5, -10, -8, -6}),
                         f32({1, 1, 2, 3}, {-2.5, -2, -1.5, 6, 8.25, 10.5})}});
}

TEST(LinearAttention, DecaysTheStateAndCorrectsWhatTheKeyRetrieves) {
  expect_op({.op = "linear_attention",
             .attrs = {{"q_num_heads", 2}, {"kv_num_heads", 1}},
             .inputs = {kQuery, kKey, kValue, std::nullopt, f32({1, 2, 1}, {-0.5, -1}),
                        f32({1, 2, 1}, {0.5, 0.25})},
             .outputs = {f32({1, 2, 6}, {0.8838835, 1.767767, 2.6516504, 1.9445436, 3.8890872,
                                         5.833631, -0.6339756, -0.8702038, -1.1064318, -1.3004066,
                                         -1.5401533, -1.7798995}),
                         f32({1, 1, 2, 3}, {-0.9195263, -1.0890528, -1.258579, 0.4368138, 0.6861275,
                                            0.9354414})}});
}

TEST(LinearAttention, KeepsTheStateWhereThereAreNoSteps) {
  const Tensor past = f32({1, 1, 2, 1}, {3, 4});
  expect_op({.op = "linear_attention",
             .attrs = {{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "linear"}},
             .inputs = {f32({1, 0, 2}, {}), f32({1, 0, 2}, {}), f32({1, 0, 1}, {}), past},
             .outputs = {f32({1, 0, 1}, {}), past}});
}

TEST(LinearAttention, RefusesInputsThatTheRuleDoesNotTake) {
  const Attrs gated{{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "gated"}};
  const Attrs shared{{"q_num_heads", 3}, {"kv_num_heads", 2}, {"update_rule", "linear"}};
  const Tensor x = f32({1, 1, 6}, {1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(try_evaluate("linear_attention", gated, {x, x, x}));
  EXPECT_FALSE(try_evaluate("linear_attention", gated, {x, x, x, std::nullopt, std::nullopt, x}));
  EXPECT_FALSE(try_evaluate("linear_attention", shared, {x, x, x}));
  // The head of the key has another size than that of the query.
  const Attrs linear{{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "linear"}};
  EXPECT_FALSE(try_evaluate("linear_attention", linear, {x, f32({1, 1, 5}, {1, 2, 3, 4, 5}), x}));
}

TEST(CausalConvWithState, SeesThePastAndKeepsTheEnd) {
  expect_op({.op = "causal_conv_with_state",
             .inputs = {f32({1, 2, 3}, {1, 2, 3, 4, 5, 6}), f32({2, 1, 3}, {1, 10, 100, 1, 0, -1}),
                        f32({2}, {0, 1}), f32({1, 2, 2}, {7, 8, 9, 10})},
             .outputs = {f32({1, 2, 3}, {187, 218, 321, 6, 6, -1}), f32({1, 2, 2}, {2, 3, 5, 6})}});
}

TEST(CausalConvWithState, PadsWithZerosAndAppliesTheActivation) {
  expect_op({.op = "causal_conv_with_state",
             .attrs = {{"activation", "silu"}},
             .inputs = {f32({1, 1, 1}, {2}), f32({1, 1, 4}, {5, 6, 7, 0.5})},
             .outputs = {f32({1, 1, 1}, {0.7310586}), f32({1, 1, 3}, {0, 0, 2})}});
  // A window of one element has no past.
  expect_op({.op = "causal_conv_with_state",
             .inputs = {f32({1, 1, 2}, {2, 3}), f32({1, 1, 1}, {5})},
             .outputs = {f32({1, 1, 2}, {10, 15}), f32({1, 1, 0}, {})}});
}

TEST(CausalConvWithState, RefusesAnUnknownActivation) {
  EXPECT_FALSE(try_evaluate("causal_conv_with_state", {{"activation", "relu"}},
                            {f32({1, 1, 1}, {2}), f32({1, 1, 1}, {5})}));
}

}  // namespace
}  // namespace tessera
