#include "tessera/ir/text.h"
#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::tensor;
using testing::try_evaluate;

TEST(BatchNormalization, UsesTheStatisticsThatItIsGiven) {
  expect_op({.op = "batch_normalization",
             .inputs = {f32({2, 3, 2}, {0.61, 0.62, 0.03, -0.43, -0.89, -0.23, -0.18, -0.91, -0.9,
                                        1, 0.3, -0.53}),
                        f32({3}, {-0.13, 0.95, 0.8}), f32({3}, {0.69, -0.22, -0.01}),
                        f32({3}, {0.35, -0.88, 0.11}), f32({3}, {0.34, 0.89, 0.16})},
             .outputs = {f32({2, 3, 2},
                             {0.6320343, 0.6298049, 0.696363, 0.2331465, -2.009938, -0.6899788,
                              0.8081608, 0.9709105, -0.2401398, 1.673146, 0.3699882, -1.28996})}});
}

TEST(BatchNormalization, TakesAnImageWithoutSpatialAxes) {
  expect_op(
      {.op = "batch_normalization",
       .attrs = {{"epsilon", 0.01}},
       .inputs = {f32({2, 3}, {0.36, 0.74, -0.55, 0.79, 0.74, -0.96}), f32({3}, {-0.13, 0.95, 0.8}),
                  f32({3}, {0.69, -0.22, -0.01}), f32({3}, {0.35, -0.88, 0.11}),
                  f32({3}, {0.34, 0.89, 0.16})},
       .outputs = {f32({2, 3}, {0.6878026, 1.402249, -1.290588, 0.5933143, 1.402249, -2.086105})}});
}

TEST(Normalization, RefusesParametersOfOtherSizes) {
  const Tensor x = f32({2, 1}, {1, 2}), four = f32({4}, {1, 2, 3, 4});
  const auto expect_refused =
      [](const std::string& op, const std::vector<std::optional<Tensor>>& in,
         const Attrs& attrs = {}) { EXPECT_FALSE(try_evaluate(op, attrs, in)) << op; };
  expect_refused("layer_normalization", {x, four});
  expect_refused("layer_normalization", {f32({2}, {1, 2}), f32({1, 2}, {1, 2})});
  expect_refused("rms_normalization", {x, four});
  expect_refused("batch_normalization", {x, four, four, four, four});
  expect_refused("instance_normalization", {f32({1, 2, 2}, {1, 2, 3, 4}), four, four});
  expect_refused("group_normalization", {f32({1, 2, 2}, {1, 2, 3, 4}), four, four},
                 {{"num_groups", 1}});
}

TEST(BatchNormalization, MeasuresABatchOfF16InF32) {
  const auto f16 = [](std::vector<std::int64_t> shape, std::vector<double> values) {
    return tensor(DType::F16, std::move(shape), std::move(values));
  };
  expect_op({.op = "batch_normalization",
             .attrs = {{"training_mode", 1}},
             .inputs = {f16({2, 1}, {0, 1000}), f16({1}, {2}), f16({1}, {1}), f16({1}, {0}),
                        f16({1}, {1})},
             .outputs = {f16({2, 1}, {-1, 3}), f16({1}, {50}), f16({1}, {25008})}});
  expect_op({.op = "instance_normalization",
             .inputs = {f16({1, 1, 2}, {0, 1000}), f16({1}, {2}), f16({1}, {1})},
             .outputs = {f16({1, 1, 2}, {-1, 3})}});
  expect_op({.op = "mean_variance_normalization",
             .attrs = {{"axes", Ints{1}}},
             .inputs = {f16({1, 2}, {0, 1000})},
             .outputs = {f16({1, 2}, {-1, 1})}});
}

TEST(BatchNormalization, MeasuresTheBatchInTraining) {
  expect_op(
      {.op = "batch_normalization",
       .attrs = {{"training_mode", 1}, {"momentum", 0.8}},
       .inputs = {f32({2, 3, 2},
                      {0.61, 0.62, 0.03, -0.43, -0.89, -0.23, -0.18, -0.91, -0.9, 1, 0.3, -0.53}),
                  f32({3}, {-0.13, 0.95, 0.8}), f32({3}, {0.69, -0.22, -0.01}),
                  f32({3}, {0.35, -0.88, 0.11}), f32({3}, {0.34, 0.89, 0.16})},
       .outputs = {
           f32({2, 3, 2}, {0.5722557, 0.570208, -0.07798249, -0.7001545, -1.023808, 0.1872566,
                           0.7340261, 0.8835101, -1.335852, 1.233989, 1.159778, -0.363227}),
           f32({3}, {0.287, -0.719, 0.02050001}), f32({3}, {0.352605, 0.810665, 0.1660137})}});
}

TEST(BatchNormalization, HasOneResultOutsideOfTraining) {
  const auto graph = parse_graph(
      "graph(x: f32[2, 3], c: f32[3]) { a, m, v = batch_normalization(x, c, c, c, c)  "
      "return a, m, v }");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().id, "op-operands");
}

TEST(LayerNormalization, NormalizesTheLastAxis) {
  expect_op({.op = "layer_normalization",
             .inputs = {f32({2, 2, 3}, {0.41, -1, 0.01, -0.13, -0.59, -0.35, 0.61, -0.37, -0.7, 0.4,
                                        -0.1, 0.6}),
                        f32({3}, {-0.53, -0.36, 0.6}), f32({3}, {0.01, 0.01, -0.53})},
             .outputs = {f32({2, 2, 3},
                             {-0.5289419, 0.4994467, -0.3243784, -0.6294153, 0.457094, -0.5087098,
                              -0.7172111, 0.1502055, -1.119582, -0.1700216, 0.4991155, 0.08139436}),
                         f32({2, 2, 1}, {-0.1933333, -0.3566667, -0.1533333, 0.3}),
                         f32({2, 2, 1}, {1.685422, 5.322547, 1.797506, 3.396635})}});
}

TEST(LayerNormalization, NormalizesSeveralAxesAndNeedsNoBias) {
  expect_op(
      {.op = "layer_normalization",
       .attrs = {{"axis", 1}, {"epsilon", 0.1}},
       .inputs = {f32({2, 2, 3},
                      {0.41, -1, 0.01, -0.13, -0.59, -0.35, 0.61, -0.37, -0.7, 0.4, -0.1, 0.6}),
                  f32({2, 3}, {-0.97, 0.87, -0.83, 0.69, -0.26, 0.9})},
       .outputs = {
           f32({2, 2, 3}, {-1.212458, -1.150963, -0.4316455, 0.1825666, 0.1494473, -0.1231709,
                           -0.8806035, -0.6524597, 1.085797, 0.3812922, 0.07623589, 0.8018302}),
           f32({2, 1, 1}, {-0.275, 0.07333334}), f32({2, 1, 1}, {1.824754, 1.691625})}});
}

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  expect_op({.op = "rms_normalization",
             .attrs = {{"epsilon", 0.01}},
             .inputs = {f32({2, 2, 3}, {0.41, -1, 0.01, -0.13, -0.59, -0.35, 0.61, -0.37, -0.7, 0.4,
                                        -0.1, 0.6}),
                        f32({3}, {-0.2, 0.87, 0.11})},
             .outputs = {f32({2, 2, 3}, {-0.1297507, -1.376624, 0.001740559, 0.06260065, -1.235881,
                                         -0.09269711, -0.2083113, -0.5496344, -0.1314751, -0.185164,
                                         -0.2013659, 0.1527603})}});
}

TEST(InstanceNormalization, NormalizesEachChannelOfEachImage) {
  expect_op({.op = "instance_normalization",
             .inputs = {f32({2, 2, 3}, {-0.52, 0.48, 0.35, 0.37, -0.07, -0.56, 0.28, -0.79, 0.38,
                                        0.27, -0.25, 0.6}),
                        f32({2}, {-0.61, -0.22}), f32({2}, {0.6, -0.24})},
             .outputs = {f32({2, 2, 3}, {1.456462, 0.08245881, 0.2610792, -0.5044786, -0.2496525,
                                         0.03413109, 0.2275514, 1.460088, 0.1123611, -0.2798205,
                                         0.04712706, -0.4873065})}});
}

TEST(GroupNormalization, NormalizesGroupsAndScalesChannels) {
  expect_op(
      {.op = "group_normalization",
       .attrs = {{"num_groups", 2}},
       .inputs = {f32({2, 4, 2}, {0.43, 0.23, 0.88, 0.98, 0.45, 0.62, -0.69, 0.43, 0.7, -0.2, 0.11,
                                  -0.04, 0.92, -0.37, -0.2, -1}),
                  f32({4}, {-0.16, 0.26, 0.87, 0.85}), f32({4}, {-0.35, 0.98, -0.62, 0.65})},
       .outputs = {f32({2, 4, 2}, {-0.24686, -0.14372, 1.189503, 1.273304, -0.2063559, 0.0777633,
                                   -0.8073356, 1.021478, -0.6123203, -0.1888436, 0.9551502,
                                   0.8404586, 0.7401447, -0.8807206, 0.603965, -0.3781151})}});
}

TEST(GroupNormalization, ScalesGroupsIfThatIsWhatItIsGiven) {
  expect_op(
      {.op = "group_normalization",
       .attrs = {{"num_groups", 2}},
       .inputs = {f32({2, 4, 2}, {0.43, 0.23, 0.88, 0.98, 0.45, 0.62, -0.69, 0.43, 0.7, -0.2, 0.11,
                                  -0.04, 0.92, -0.37, -0.2, -1}),
                  f32({2}, {-0.69, -0.19}), f32({2}, {-0.85, 0.72})},
       .outputs = {f32({2, 4, 2}, {-0.4052089, 0.03958231, -1.405989, -1.628385, 0.6296639,
                                   0.567615, 1.045757, 0.6369638, -1.981256, -0.1550129, -0.7840524,
                                   -0.4796784, 0.4229569, 0.776939, 0.7302902, 0.949814})}});
}

TEST(GroupNormalization, RefusesGroupsThatDoNotDivideTheChannels) {
  EXPECT_FALSE(try_evaluate("group_normalization", {{"num_groups", 2}},
                            {f32({1, 3}, {1, 2, 3}), f32({3}, {1, 1, 1}), f32({3}, {0, 0, 0})}));
}

TEST(MeanVarianceNormalization, NormalizesEachChannelByDefault) {
  expect_op({.op = "mean_variance_normalization",
             .inputs = {f32({2, 2, 2, 1}, {0.66, -0.72, 0.05, -0.48, -0.02, 0.11, -0.79, 0.73})},
             .outputs = {f32({2, 2, 2, 1}, {1.327578, -1.480173, 0.299167, -0.6200128, -0.05595157,
                                            0.2085468, -1.157646, 1.478492})}});
}

TEST(LpNormalization, DividesByANorm) {
  expect_op({.op = "lp_normalization",
             .inputs = {f32({2, 3}, {-0.44, -0.11, -0.89, -0.99, -0.61, -0.32})},
             .outputs = {f32({2, 3}, {-0.4404848, -0.1101212, -0.8909807, -0.8208492, -0.5057758,
                                      -0.265325})}});
  expect_op({.op = "lp_normalization",
             .attrs = {{"axis", 0}, {"p", 1}},
             .inputs = {f32({2, 3}, {-0.44, -0.11, -0.89, -0.99, -0.61, -0.32})},
             .outputs = {f32({2, 3}, {-0.3076923, -0.1527778, -0.7355372, -0.6923077, -0.8472222,
                                      -0.2644628})}});
}

TEST(LpNormalization, LeavesZerosAlone) {
  expect_op({.op = "lp_normalization",
             .inputs = {f32({2, 2}, {0, 0, 3, 4})},
             .outputs = {f32({2, 2}, {0, 0, 0.6, 0.8})}});
}

TEST(Lrn, SumsNeighbouringChannels) {
  expect_op(
      {.op = "lrn",
       .attrs = {{"size", 3}, {"alpha", 0.5}, {"beta", 0.7}, {"bias", 2.0}},
       .inputs = {f32({1, 5, 2}, {0.86, 0.78, -0.04, -0.09, 0.33, 0.72, -0.33, 0.59, -0.2, 0.19})},
       .outputs = {f32({1, 5, 2}, {0.5076415, 0.4635999, -0.02347098, -0.05200555, 0.2005787,
                                   0.4219148, -0.2001387, 0.3452103, -0.1220562, 0.1144068})}});
  expect_op(
      {.op = "lrn",
       .attrs = {{"size", 4}, {"alpha", 0.5}},
       .inputs = {f32({1, 5, 2}, {0.86, 0.78, -0.04, -0.09, 0.33, 0.72, -0.33, 0.59, -0.2, 0.19})},
       .outputs = {f32({1, 5, 2}, {0.7972689, 0.7061293, -0.03674369, -0.0792229, 0.3221959,
                                   0.6640735, -0.3222428, 0.5445426, -0.1972528, 0.1834319})}});
}

TEST(Lrn, IsQuickForAWindowBeyondAllChannels) {
  expect_op(
      {.op = "lrn",
       .attrs = {{"size", 1000000}, {"alpha", 0.5}},
       .inputs = {f32({1, 5, 2}, {0.86, 0.78, -0.04, -0.09, 0.33, 0.72, -0.33, 0.59, -0.2, 0.19})},
       .outputs = {f32({1, 5, 2}, {0.8599997, 0.7799996, -0.03999998, -0.08999995, 0.3299999,
                                   0.7199996, -0.3299999, 0.5899996, -0.1999999, 0.1899999})}});
}

TEST(Dropout, KeepsEverythingOutsideOfTraining) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4}), all = tensor(DType::Bool, {2, 2}, {1, 1, 1, 1});
  expect_op({.op = "dropout", .inputs = {x}, .outputs = {x, all}});
  expect_op({.op = "dropout",
             .inputs = {x, f32({}, {0.75}), tensor(DType::Bool, {}, {0})},
             .outputs = {x, all}});
  expect_op({.op = "dropout",
             .inputs = {x, f32({}, {0}), tensor(DType::Bool, {}, {1})},
             .outputs = {x, all}});
}

TEST(Dropout, IsRandomInTrainingAndSaysSo) {
  const auto out =
      try_evaluate("dropout", {}, {f32({1}, {1}), f32({}, {0.5}), tensor(DType::Bool, {}, {1})});
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("the result is random"), std::string::npos);
}

}  // namespace
}  // namespace tessera
