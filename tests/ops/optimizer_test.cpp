#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

TEST(Adagrad, TrainsTwoTensors) {
  expect_op({.op = "adagrad",
             .attrs = {{"norm_coefficient", 0.001}, {"decay_factor", 0.1}},
             .inputs = {f32({}, {0.1}), i64({}, {0}), f32({2}, {0.62, 0.56}),
                        f32({2}, {-0.47, -0.27}), f32({2}, {1, 0.68}), f32({2}, {0.08, -0.36}),
                        f32({2}, {0.91, 0.35}), f32({2}, {0.52, 0.63})},
             .outputs = {f32({2}, {0.5476213, 0.4845295}), f32({2}, {-0.4809623, -0.2286687}),
                         f32({2}, {1.91124, 0.8131619}), f32({2}, {0.526325, 0.7597945})}});
  expect_op({.op = "adagrad",
             .attrs = {{"norm_coefficient", 0.001}, {"decay_factor", 0.1}},
             .inputs = {f32({}, {0.1}), i64({}, {3}), f32({2}, {0.53, 0.41}),
                        f32({2}, {0.37, -0.59}), f32({2}, {-0.32, 0.5}), f32({2}, {0.15, 0.82}),
                        f32({2}, {0.16, 0.99}), f32({2}, {0.54, 0.37})},
             .outputs = {f32({2}, {0.5780048, 0.3754379}), f32({2}, {0.354579, -0.6517649}),
                         f32({2}, {0.2620611, 1.24041}), f32({2}, {0.5626112, 1.041433})}});
}

TEST(Momentum, TrainsTwoTensors) {
  expect_op(
      {.op = "momentum",
       .attrs = {{"alpha", 0.9}, {"beta", 0.7}, {"mode", "standard"}, {"norm_coefficient", 0.01}},
       .inputs = {f32({}, {0.1}), i64({}, {0}), f32({2}, {0.96, 0.6}), f32({2}, {-0.46, -0.23}),
                  f32({2}, {0.35, -0.95}), f32({2}, {-0.67, 0.58}), f32({2}, {0.38, 0.31}),
                  f32({2}, {0.92, 0.75})},
       .outputs = {f32({2}, {0.88984, 0.6665}), f32({2}, {-0.47534, -0.35527}),
                   f32({2}, {0.7016, -0.665}), f32({2}, {0.1534, 1.2527})}});
  expect_op(
      {.op = "momentum",
       .attrs = {{"alpha", 0.9}, {"beta", 0.7}, {"mode", "standard"}, {"norm_coefficient", 0.01}},
       .inputs = {f32({}, {0.1}), i64({}, {3}), f32({2}, {0.72, 0.57}), f32({2}, {0.03, -0.63}),
                  f32({2}, {0.39, 0.1}), f32({2}, {0.46, 0.35}), f32({2}, {0.81, 0.15}),
                  f32({2}, {0.25, 0.89})},
       .outputs = {f32({2}, {0.619296, 0.549101}), f32({2}, {-0.024721, -0.734159}),
                   f32({2}, {1.00704, 0.20899}), f32({2}, {0.54721, 1.04159})}});
  expect_op(
      {.op = "momentum",
       .attrs = {{"alpha", 0.9}, {"beta", 0.7}, {"mode", "nesterov"}, {"norm_coefficient", 0.01}},
       .inputs = {f32({}, {0.1}), i64({}, {0}), f32({2}, {0.37, 0.73}), f32({2}, {-0.89, 0.04}),
                  f32({2}, {-0.98, -0.68}), f32({2}, {-0.91, -0.62}), f32({2}, {0.33, 0.17}),
                  f32({2}, {0.68, 0.63})},
       .outputs = {f32({2}, {0.528767, 0.844043}), f32({2}, {-0.770489, 0.106694}),
                   f32({2}, {-0.6793, -0.5197}), f32({2}, {-0.3069, -0.05260003})}});
  expect_op(
      {.op = "momentum",
       .attrs = {{"alpha", 0.9}, {"beta", 0.7}, {"mode", "nesterov"}, {"norm_coefficient", 0.01}},
       .inputs = {f32({}, {0.1}), i64({}, {3}), f32({2}, {0.37, 0.95}), f32({2}, {-0.44, -0.51}),
                  f32({2}, {-0.39, 0.63}), f32({2}, {0.31, 0.5}), f32({2}, {0.31, 0.22}),
                  f32({2}, {0.53, 0.91})},
       .outputs = {f32({2}, {0.4078569, 0.8279415}), f32({2}, {-0.5327428, -0.6643787}),
                   f32({2}, {0.008589983, 0.64565}), f32({2}, {0.6909199, 1.16543})}});
}

TEST(Momentum, RefusesTensorsThatDoNotPairUp) {
  const Attrs attrs{{"alpha", 0.9}, {"beta", 0.9}, {"mode", "standard"}, {"norm_coefficient", 0.0}};
  const Tensor x = f32({1}, {1});
  EXPECT_FALSE(try_evaluate("momentum", attrs, {x, i64({}, {0}), x, x}));
  EXPECT_FALSE(try_evaluate("momentum", attrs, {x, i64({}, {0})}));
}

TEST(Adam, CorrectsTheRateByTheNumberOfUpdates) {
  expect_op({.op = "adam",
             .attrs = {{"norm_coefficient", 0.001}, {"norm_coefficient_post", 0.01}},
             .inputs = {f32({}, {0.1}), i64({}, {2}), f32({2}, {1, -2}), f32({2}, {0.5, -0.25}),
                        f32({2}, {0.1, 0.2}), f32({2}, {0.01, 0.04})},
             .outputs = {f32({2}, {0.9577487, -1.9980259}), f32({2}, {0.1401, 0.1548}),
                         f32({2}, {0.010241, 0.0400235})}});
  // Before the first update the rate is as given: v = 0.5 g, h = 0.5 g^2, x - 0.1 v / sqrt(h).
  expect_op({.op = "adam",
             .attrs = {{"alpha", 0.5}, {"beta", 0.5}, {"epsilon", 0.0}},
             .inputs = {f32({}, {0.1}), i64({}, {0}), f32({1}, {1}), f32({1}, {2}), f32({1}, {0}),
                        f32({1}, {0})},
             .outputs = {f32({1}, {0.9292893}), f32({1}, {1}), f32({1}, {2})}});
}

}  // namespace
}  // namespace tessera
