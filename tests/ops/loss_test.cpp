#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

TEST(NegativeLogLikelihoodLoss, TakesTheChannelOfTheTarget) {
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "none"}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, 1, 1})},
             .outputs = {f32({2, 2}, {1.3, 1.17, 1.77, 0.52})}});
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "sum"}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, 1, 1})},
             .outputs = {f32({}, {4.76})}});
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "mean"}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, 1, 1})},
             .outputs = {f32({}, {1.19})}});
}

TEST(NegativeLogLikelihoodLoss, WeighsChannelsAndIgnoresOneTarget) {
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "none"}, {"ignore_index", -1}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, -1, 1}), f32({3}, {0.2, 0.3, 0.5})},
             .outputs = {f32({2, 2}, {0.26, 0.585, 0, 0.156})}});
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "sum"}, {"ignore_index", -1}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, -1, 1}), f32({3}, {0.2, 0.3, 0.5})},
             .outputs = {f32({}, {1.001})}});
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"reduction", "mean"}, {"ignore_index", -1}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        i64({2, 2}, {0, 2, -1, 1}), f32({3}, {0.2, 0.3, 0.5})},
             .outputs = {f32({}, {1.001})}});
  expect_op({.op = "negative_log_likelihood_loss",
             .attrs = {{"ignore_index", -1}},
             .inputs = {f32({2, 3, 2}, {-1.3, -1.64, -0.61, -0.7, -1.69, -1.17, -0.65, -1.29, -1.77,
                                        -0.52, -1.18, -2.03}),
                        tensor(DType::I32, {2, 2}, {0, 2, -1, 1})},
             .outputs = {f32({}, {0.9966666})}});
}

TEST(SoftmaxCrossEntropyLoss, IsTheLossOfTheLogSoftmax) {
  expect_op({.op = "softmax_cross_entropy_loss",
             .attrs = {{"reduction", "none"}},
             .inputs = {f32({3, 4}, {-0.37, -0.01, -0.9, -0.91, 0.06, -0.05, 0.67, -0.96, 0.11,
                                     -0.02, 0.2, 0.46}),
                        i64({3}, {3, 0, 2})},
             .outputs = {f32({3}, {1.822234, 1.410221, 1.389634}),
                         f32({3, 4}, {-1.282234, -0.9222338, -1.812234, -1.822234, -1.410221,
                                      -1.520221, -0.8002209, -2.430221, -1.479634, -1.609634,
                                      -1.389634, -1.129634})}});
  expect_op({.op = "softmax_cross_entropy_loss",
             .attrs = {{"reduction", "mean"}},
             .inputs = {f32({3, 4}, {-0.37, -0.01, -0.9, -0.91, 0.06, -0.05, 0.67, -0.96, 0.11,
                                     -0.02, 0.2, 0.46}),
                        i64({3}, {3, 0, 2})},
             .outputs = {f32({}, {1.540696}),
                         f32({3, 4}, {-1.282234, -0.9222338, -1.812234, -1.822234, -1.410221,
                                      -1.520221, -0.8002209, -2.430221, -1.479634, -1.609634,
                                      -1.389634, -1.129634})}});
  expect_op({.op = "softmax_cross_entropy_loss",
             .attrs = {{"ignore_index", 0}},
             .inputs = {f32({3, 4}, {-0.37, -0.01, -0.9, -0.91, 0.06, -0.05, 0.67, -0.96, 0.11,
                                     -0.02, 0.2, 0.46}),
                        i64({3}, {3, 0, 2}), f32({4}, {0.9, 0.7, 0.8, 0.6})},
             .outputs = {f32({}, {1.575034})}});
}

TEST(NegativeLogLikelihoodLoss, RefusesAnUnknownReduction) {
  EXPECT_FALSE(try_evaluate("negative_log_likelihood_loss", {{"reduction", "max"}},
                            {f32({1, 2}, {1, 2}), i64({1}, {0})}));
}

TEST(NegativeLogLikelihoodLoss, RefusesATargetThatIsNoChannel) {
  EXPECT_FALSE(
      try_evaluate("negative_log_likelihood_loss", {}, {f32({1, 2}, {1, 2}), i64({1}, {5})}));
}

}  // namespace
}  // namespace tessera
