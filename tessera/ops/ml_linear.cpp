#include "tessera/ops/ml_scores.h"

// Linear models of ai.onnx.ml.

namespace tessera::define {
namespace {

/// x W^T + intercepts, with W [targets, features].
Expected<Val> linear_scores(Body& b, const Val& x, const Floats& coefficients,
                            const Floats& intercepts, std::size_t targets) {
  if (targets == 0 || coefficients.empty() || coefficients.size() % targets != 0)
    return bad_operands(fmt::format("there are {} coefficients", coefficients.size()),
                        fmt::format("there have to be as many for each of {} targets", targets));
  if (!intercepts.empty() && intercepts.size() != targets)
    return bad_operands(fmt::format("there are {} intercepts", intercepts.size()),
                        fmt::format("there have to be {}", targets));
  const auto rows = static_cast<std::int64_t>(targets);
  const auto columns = static_cast<std::int64_t>(coefficients.size() / targets);
  if (const auto features = x.dim(1).constant(); features && *features != columns)
    return bad_operands(fmt::format("x has {} features", *features),
                        fmt::format("there are {} coefficients for each target", columns));
  const Val weight = transposed(float_constant(b, {rows, columns}, coefficients), {1, 0});
  const Val product = b.op("matmul", {x, weight});
  return intercepts.empty() ? product : product + float_constant(b, {rows}, intercepts);
}

}  // namespace

OpDef ml_linear_regressor() {
  return {.name = "ml_linear_regressor",
          .summary = "x coefficients^T + intercepts, transformed",
          .inputs = {"x"},
          .attrs = {{"coefficients", Floats{}},
                    {"intercepts", Floats{}},
                    post_transform_attr(),
                    {"targets", 1}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY_DONE(check_post_transform(attrs));
            TESSERA_TRY(const Val x, feature_rows(in[0]));
            const std::int64_t targets = std::max<std::int64_t>(attrs.i("targets"), 0);
            TESSERA_TRY(const Val scores, linear_scores(b, x, attrs.floats("coefficients"),
                                                        attrs.floats("intercepts"),
                                                        static_cast<std::size_t>(targets)));
            return Vals{post_transformed(scores, attrs.s("post_transform"))};
          }};
}

OpDef ml_linear_classifier() {
  return {
      .name = "ml_linear_classifier",
      .summary = "the class with the largest of linear scores, and the scores, transformed",
      .inputs = {"x"},
      .outputs = {"labels", "scores"},
      .attrs = {{"classlabels_ints", Ints{}},
                {"classlabels_strings", Strings{}},
                required_attr("coefficients", Floats{}),
                {"intercepts", Floats{}},
                {"multi_class", 0},
                post_transform_attr()},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY_DONE(check_post_transform(attrs));
        TESSERA_TRY(ClassLabels labels, ClassLabels::of(attrs, "classlabels_ints"));
        TESSERA_TRY(const Val x, feature_rows(in[0]));
        const Floats &coefficients = attrs.floats("coefficients"),
                     &intercepts = attrs.floats("intercepts");
        // One row of coefficients may stand for two classes.
        const std::size_t targets = intercepts.empty() ? labels.count() : intercepts.size();
        TESSERA_TRY(const Val scores, linear_scores(b, x, coefficients, intercepts, targets));
        const std::string& transform = attrs.s("post_transform");
        if (targets > 1) {
          if (targets > labels.count())
            return bad_operands(fmt::format("there are {} class labels", labels.count()),
                                fmt::format("there are {} scores", targets));
          return Vals{labels.at(top_class(scores)), post_transformed(scores, transform)};
        }
        const Val positive = b.op("greater", {picked(scores, 1, 0), b.number(0, DType::F32)});
        if (labels.count() == 2)
          return Vals{labels.at(index_of_truth(positive)), two_scores(scores, transform, false)};
        labels = labels.strings.empty() ? ClassLabels{.ints = {0, 1}}
                                        : ClassLabels{.strings = {"0", "1"}};
        return Vals{labels.at(index_of_truth(positive)), post_transformed(scores, transform)};
      }};
}

}  // namespace tessera::define
