#include <cmath>
#include <limits>

#include "tests/ops/expect_op.h"

// Expected numbers are computed by hand or recorded from ONNX Runtime.

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_op;
using testing::f32;
using testing::f64;
using testing::i64;
using testing::numbers;
using testing::tensor;
using testing::try_evaluate;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Strings strings_of(const Tensor& tensor) {
  return tensor.strings == nullptr ? Strings{} : *tensor.strings;
}

TEST(Ml, BinarizerComparesIntegersExactly) {
  expect_op({.op = "ml_binarizer",
             .attrs = {{"threshold", 0.5}},
             .inputs = {f32({4}, {0.5, 0.6, -1, kNan})},
             .outputs = {f32({4}, {0, 1, 0, 0})}});
  expect_op({.op = "ml_binarizer",
             .attrs = {{"threshold", -0.5}},
             .inputs = {i64({3}, {-1, 0, 1})},
             .outputs = {i64({3}, {0, 1, 1})}});
}

TEST(Ml, ScalerTakesOneNumberOrOneForEachFeature) {
  expect_op({.op = "ml_scaler",
             .attrs = {{"offset", Floats{1, 2}}, {"scale", Floats{10, 0.5}}},
             .inputs = {tensor(DType::I32, {2, 2}, {1, 2, 3, 6})},
             .outputs = {f32({2, 2}, {0, 0, 20, 2})}});
  expect_op({.op = "ml_scaler",
             .attrs = {{"offset", Floats{1}}, {"scale", Floats{2}}},
             .inputs = {f64({3}, {1, 2, 4})},
             .outputs = {f32({3}, {0, 2, 6})}});
  EXPECT_FALSE(try_evaluate("ml_scaler", {{"scale", Floats{1, 2, 3}}}, {f32({1, 2}, {1, 2})}));
}

TEST(Ml, NormalizerKeepsRowsWhoseDivisorIsZero) {
  const Tensor x = f32({3, 2}, {3, -4, 0, 0, -1, -2});
  expect_op({.op = "ml_normalizer",
             .attrs = {{"norm", "L1"}},
             .inputs = {x},
             .outputs = {f32({3, 2}, {3. / 7, -4. / 7, 0, 0, -1. / 3, -2. / 3})}});
  expect_op({.op = "ml_normalizer",
             .attrs = {{"norm", "L2"}},
             .inputs = {x},
             .outputs = {f32({3, 2}, {0.6, -0.8, 0, 0, -0.4472136, -0.8944272})}});
  expect_op(
      {.op = "ml_normalizer", .inputs = {x}, .outputs = {f32({3, 2}, {1, -4. / 3, 0, 0, 1, 2})}});
}

TEST(Ml, ImputerReplacesWhatIsNoNumber) {
  expect_op({.op = "ml_imputer",
             .attrs = {{"imputed_value_floats", Floats{7, 8}}, {"replaced_value_float", kNan}},
             .inputs = {f32({2, 2}, {kNan, 1, 2, kNan})},
             .outputs = {f32({2, 2}, {7, 1, 2, 8})}});
  expect_op({.op = "ml_imputer",
             .attrs = {{"imputed_value_int64s", Ints{9}}, {"replaced_value_int64", -1}},
             .inputs = {i64({1, 3}, {-1, 0, -1})},
             .outputs = {i64({1, 3}, {9, 0, 9})}});
}

TEST(Ml, ArrayFeatureExtractorMakesAListOneRow) {
  expect_op({.op = "ml_array_feature_extractor",
             .inputs = {f32({3}, {5, 6, 7}), i64({1, 2}, {2, 0})},
             .outputs = {f32({1, 2}, {7, 5})}});
  const std::vector<Tensor> words =
      evaluate("ml_array_feature_extractor", {},
               {Tensor::of_strings({2, 2}, {"a", "b", "c", "d"}), i64({1}, {1})});
  EXPECT_EQ(words.at(0).shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(strings_of(words.at(0)), (Strings{"b", "d"}));
}

TEST(Ml, FeatureVectorizerCutsAndPads) {
  expect_op({.op = "ml_feature_vectorizer",
             .attrs = {{"inputdimensions", Ints{1, 3}}},
             .inputs = {f32({2, 2}, {1, 2, 3, 4}), i64({2, 2}, {5, 6, 7, 8})},
             .outputs = {f32({2, 4}, {1, 5, 6, 0, 3, 7, 8, 0})}});
}

TEST(Ml, LinearRegressorTransformsItsTargets) {
  const Tensor x = f32({1, 2}, {1, 2});
  Attrs attrs{{"coefficients", Floats{1, 1, -1, 2}}, {"intercepts", Floats{0, -3}}, {"targets", 2}};
  expect_op({.op = "ml_linear_regressor",
             .attrs = attrs,
             .inputs = {x},
             .outputs = {f32({1, 2}, {3, 0})}});
  attrs.set("post_transform", std::string("SOFTMAX"));
  expect_op({.op = "ml_linear_regressor",
             .attrs = attrs,
             .inputs = {x},
             .outputs = {f32({1, 2}, {0.9525741, 0.0474259})}});
  attrs.set("post_transform", std::string("SOFTMAX_ZERO"));
  expect_op({.op = "ml_linear_regressor",
             .attrs = attrs,
             .inputs = {x},
             .outputs = {f32({1, 2}, {1, 0})}});
  // One score alone is transformed by PROBIT only.
  expect_op({.op = "ml_linear_regressor",
             .attrs = {{"coefficients", Floats{0.1, 0.1}}, {"post_transform", "LOGISTIC"}},
             .inputs = {x},
             .outputs = {f32({1, 1}, {0.3})}});
  expect_op({.op = "ml_linear_regressor",
             .attrs = {{"coefficients", Floats{0.1, 0.1}}, {"post_transform", "PROBIT"}},
             .inputs = {x},
             .outputs = {f32({1, 1}, {-0.5244459})}});
}

TEST(Ml, LinearClassifierNamesTheLargestScore) {
  const Tensor x = f32({2, 1}, {1, -1});
  const std::vector<Tensor> out = evaluate("ml_linear_classifier",
                                           {{"coefficients", Floats{-1, 0, 1}},
                                            {"intercepts", Floats{0, 0.5, 0}},
                                            {"classlabels_strings", Strings{"low", "mid", "high"}}},
                                           {x});
  EXPECT_EQ(strings_of(out.at(0)), (Strings{"high", "low"}));
  EXPECT_EQ(numbers(out.at(1)), (std::vector<double>{-1, 0.5, 1, 1, 0.5, -1}));
  // One row of coefficients for two classes.
  expect_op(
      {.op = "ml_linear_classifier",
       .attrs = {{"coefficients", Floats{2}},
                 {"intercepts", Floats{0}},
                 {"classlabels_ints", Ints{7, 9}},
                 {"post_transform", "LOGISTIC"}},
       .inputs = {x},
       .outputs = {i64({2}, {9, 7}), f32({2, 2}, {0.1192029, 0.8807971, 0.8807971, 0.1192029})}});
  EXPECT_FALSE(try_evaluate("ml_linear_classifier", {{"coefficients", Floats{2}}}, {x}));
  EXPECT_FALSE(
      try_evaluate("ml_linear_classifier",
                   {{"classlabels_ints", Ints{1, 2}}, {"coefficients", Floats{1, 2, 3, 4, 5, 6}}},
                   {f32({1, 5}, {1, 2, 3, 4, 5})}));
  EXPECT_FALSE(try_evaluate("ml_linear_regressor", {{"coefficients", Floats{1, 2}}},
                            {f32({1, 3}, {1, 2, 3})}));
}

TEST(Ml, SvmRegressorAppliesItsKernel) {
  const auto run = [](const char* kernel, const Floats& params) {
    return numbers(evaluate("ml_svm_regressor",
                            {{"kernel_type", kernel},
                             {"kernel_params", params},
                             {"n_supports", 2},
                             {"support_vectors", Floats{1, 0, 0, 2}},
                             {"coefficients", Floats{2, -1}},
                             {"rho", Floats{0.5}}},
                            {f32({1, 2}, {1, 3})})
                       .at(0))
        .at(0);
  };
  EXPECT_NEAR(run("LINEAR", {0, 0, 0}), 2 * 1 - 6 + 0.5, 1e-5);
  EXPECT_NEAR(run("POLY", {0.5, 1, 2}), 2 * 2.25 - 16 + 0.5, 1e-4);
  EXPECT_NEAR(run("SIGMOID", {0.5, 1, 0}), 2 * std::tanh(1.5) - std::tanh(4) + 0.5, 1e-5);
  EXPECT_NEAR(run("RBF", {0.5, 0, 0}), 2 * std::exp(-4.5) - std::exp(-1) + 0.5, 1e-5);
  expect_op({.op = "ml_svm_regressor",
             .attrs = {{"coefficients", Floats{1, -1}}, {"rho", Floats{0}}, {"one_class", 1}},
             .inputs = {f32({2, 2}, {2, 1, 1, 2})},
             .outputs = {f32({2, 1}, {1, -1})}});
}

TEST(Ml, SvmClassifierVotesByPairs) {
  const Attrs attrs{{"classlabels_ints", Ints{3, 5, 8}},
                    {"vectors_per_class", Ints{1, 1, 1}},
                    {"support_vectors", Floats{-1, 0, 1}},
                    {"coefficients", Floats{1, -1, -1, 1, 1, -1}},
                    {"rho", Floats{0, 0, 0}},
                    {"kernel_type", "RBF"},
                    {"kernel_params", Floats{1, 0, 0}}};
  const double near = std::exp(-0.01), mid = std::exp(-0.81), far = std::exp(-3.61);
  expect_op({.op = "ml_svm_classifier",
             .attrs = attrs,
             .inputs = {f32({1, 1}, {-0.9})},
             .outputs = {i64({1}, {3}), f32({1, 3}, {near - mid, near - far, mid - far})}});
}

TEST(Ml, SvmClassifierCouplesProbabilities) {
  // Recorded from ONNX Runtime.
  expect_op({.op = "ml_svm_classifier",
             .attrs = {{"classlabels_ints", Ints{3, 5, 8}},
                       {"vectors_per_class", Ints{1, 1, 1}},
                       {"support_vectors", Floats{-1, 0, 1}},
                       {"coefficients", Floats{1, -1, -1, 1, 1, -1}},
                       {"rho", Floats{0, 0, 0}},
                       {"prob_a", Floats{-2, -1, -3}},
                       {"prob_b", Floats{0.1, -0.2, 0}},
                       {"kernel_type", "LINEAR"},
                       {"kernel_params", Floats{0, 0, 0}}},
             .inputs = {f32({2, 1}, {-0.9, 0.4})},
             .outputs = {i64({2}, {3, 8}), f32({2, 3}, {0.7888116, 0.1532809, 0.05790746, 0.2056207,
                                                        0.2304551, 0.5639242})},
             .tolerance = 1e-4});
}

/// One tree: x0 <= 0 (where NaN goes right) leads to leaf 1, else to leaf 2.
Attrs stump(Attrs attrs) {
  attrs.set("nodes_treeids", Ints{0, 0, 0});
  attrs.set("nodes_nodeids", Ints{0, 1, 2});
  attrs.set("nodes_featureids", Ints{0, 0, 0});
  attrs.set("nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "LEAF"});
  attrs.set("nodes_truenodeids", Ints{1, 0, 0});
  attrs.set("nodes_falsenodeids", Ints{2, 0, 0});
  attrs.set("nodes_values", Floats{0, 0, 0});
  return attrs;
}

Attrs classifier(const Ints& ids, const Floats& weights, Attrs attrs) {
  attrs.set("class_treeids", Ints(ids.size(), 0));
  attrs.set("class_nodeids", ids.size() == 2 ? Ints{1, 2} : Ints{1, 1, 2, 2});
  attrs.set("class_ids", ids);
  attrs.set("class_weights", weights);
  return stump(std::move(attrs));
}

const Tensor kSides = f32({2, 1}, {-1, 1});

TEST(Ml, TreesOfOneScoreTellTwoClasses) {
  const Ints labels{7, 8};
  // Votes that are not negative are probabilities.
  expect_op({.op = "ml_tree_ensemble_classifier",
             .attrs = classifier({0, 0}, {0.3, 0.9}, {{"classlabels_int64s", labels}}),
             .inputs = {kSides},
             .outputs = {i64({2}, {7, 8}), f32({2, 2}, {0.7, 0.3, 0.1, 0.9})}});
  expect_op({.op = "ml_tree_ensemble_classifier",
             .attrs = classifier({0, 0}, {-0.3, 0.9}, {{"classlabels_int64s", labels}}),
             .inputs = {kSides},
             .outputs = {i64({2}, {7, 8}), f32({2, 2}, {0.3, -0.3, -0.9, 0.9})}});
  expect_op(
      {.op = "ml_tree_ensemble_classifier",
       .attrs = classifier({0, 0}, {-0.3, 0.9},
                           {{"classlabels_int64s", labels},
                            {"post_transform", "LOGISTIC"},
                            {"base_values", Floats{0.1}}}),
       .inputs = {kSides},
       .outputs = {i64({2}, {7, 8}), f32({2, 2}, {0.5498340, 0.4501660, 0.2689414, 0.7310586})}});
}

TEST(Ml, TreesNameTheClassOfMostVotes) {
  expect_op({.op = "ml_tree_ensemble_classifier",
             .attrs = classifier({0, 1, 0, 1}, {0.3, 0.6, 0.9, 0.2},
                                 {{"classlabels_int64s", Ints{7, 8}}}),
             .inputs = {kSides},
             .outputs = {i64({2}, {8, 7}), f32({2, 2}, {0.3, 0.6, 0.9, 0.2})}});
  const std::vector<Tensor> out = evaluate(
      "ml_tree_ensemble_classifier",
      classifier({0, 2, 1, 2}, {0.3, 0.6, 0.9, 0.1},
                 {{"classlabels_strings", Strings{"a", "b", "c"}}, {"post_transform", "SOFTMAX"}}),
      {f32({2, 1}, {0, kNan})});
  EXPECT_EQ(strings_of(out.at(0)), (Strings{"c", "b"}));
  testing::expect_near(
      out.at(1), f32({2, 3}, {0.3235537, 0.2396945, 0.4367518, 0.2190689, 0.5388225, 0.2421086}),
      1e-5);
}

TEST(Ml, LabelsOfOneClassAreNumbers) {
  EXPECT_FALSE(try_evaluate("ml_tree_ensemble_classifier",
                            classifier({0, 0}, {1, 2}, {{"classlabels_strings", Strings{"a"}}}),
                            {kSides}));
}

TEST(Ml, PostTransformOfPROBITIsTheNormalQuantile) {
  expect_op({.op = "ml_post_transform",
             .attrs = {{"post_transform", "PROBIT"}},
             .inputs = {f32({1, 4}, {0.5, 0.3, 0.9, 0})},
             .outputs = {f32({1, 4}, {0, -0.5244459, 1.2817129, -kInfinity})},
             .tolerance = 1e-4});
  EXPECT_FALSE(try_evaluate("ml_post_transform", {{"post_transform", "TANH"}}, {f32({1, 1}, {1})}));
}

}  // namespace
}  // namespace tessera
