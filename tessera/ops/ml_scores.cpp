#include "tessera/ops/ml_scores.h"

#include <array>

namespace tessera {
namespace {

constexpr std::array kPostTransforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

/// The inverse of the normal distribution function by Winitzki's approximation of the inverse error
/// function, which is what ONNX Runtime has.
Val probit(const Val& p) {
  Body& b = p.body();
  constexpr double kA = 0.147, kPi = 3.14159;
  const Val x = p * 2.0 - 1.0;
  const Val log = b.op("log", {(1.0 - x) * (x + 1.0)});
  const Val v = log * 0.5 + 2.0 / (kPi * kA);
  const Val size = b.op("sqrt", {b.op("sqrt", {v * v - log * (1.0 / kA)}) - v});
  const Val negative = b.op("less", {x, b.number(0, x.dtype())});
  return b.op("where", {negative, -size, size}) * 1.41421356;
}

/// Softmax in which zeros stay zeros.
Val softmax_zero(const Val& x) {
  Body& b = x.body();
  const auto number = [&](double value) { return b.number(value, x.dtype()); };
  const Val most = reduced("reduce_max", x, {-1});
  const Val zero = b.op("less_or_equal", {b.op("abs", {x}), number(1e-7)});
  const Val power = b.op("exp", {x - most});
  const Val sum = reduced("reduce_sum", b.op("where", {zero, number(0), power}), {-1});
  return b.op("where", {zero, x * b.op("exp", {-most}), power}) / sum;
}

}  // namespace

Val float_constant(Body& b, std::vector<std::int64_t> shape, const Floats& values) {
  const std::vector<float> elements(values.begin(), values.end());
  return b.constant(Tensor::of<float>(DType::F32, std::move(shape), elements));
}

Expected<Val> feature_rows(const Val& x) {
  if (x.rank() != 1 && x.rank() != 2)
    return bad_operands(fmt::format("x has {} axes", x.rank()), "it has to have 1 or 2");
  return converted(x.rank() == 1 ? unsqueezed(x, {0}) : x, DType::F32);
}

AttrSpec post_transform_attr() {
  return {"post_transform", "NONE"};
}

Expected<Done> check_post_transform(const Attrs& attrs) {
  return check_word(attrs, "post_transform",
                    Strings(kPostTransforms.begin(), kPostTransforms.end()));
}

Val post_transformed(const Val& scores, const std::string& transform) {
  Body& b = scores.body();
  if (transform == "PROBIT") return probit(scores);
  if (scores.dim(1).is(1)) return scores;
  if (transform == "LOGISTIC") return b.op("sigmoid", {scores});
  if (transform == "SOFTMAX") return b.op("softmax", {scores}, {{"axis", 1}});
  return transform == "SOFTMAX_ZERO" ? softmax_zero(scores) : scores;
}

Val two_scores(const Val& score, const std::string& transform, bool mirrored) {
  Body& b = score.body();
  if (transform == "LOGISTIC") return b.op("sigmoid", {joined({-score, score}, 1)});
  const Val both = joined({mirrored ? -score : 1.0 - score, score}, 1);
  return transform == "PROBIT" ? probit(both) : both;
}

Expected<ClassLabels> ClassLabels::of(const Attrs& attrs, std::string_view ints_name) {
  ClassLabels labels{attrs.ints(ints_name), attrs.strings("classlabels_strings")};
  if (labels.ints.empty() == labels.strings.empty())
    return bad_operands(fmt::format("there are {} class labels that are numbers, {} that are text",
                                    labels.ints.size(), labels.strings.size()),
                        "there have to be labels of one kind");
  return labels;
}

Val ClassLabels::at(const Val& index) const {
  Body& b = index.body();
  if (strings.empty()) return b.op("gather", {b.ints(ints), index}, {{"axis", 0}});
  return b.op(
      "ml_label_encoder", {index},
      {{"keys_int64s", counted(0, static_cast<int>(strings.size()))}, {"values_strings", strings}});
}

Val top_class(const Val& scores) {
  return scores.body().op("arg_max", {scores}, {{"axis", 1}, {"keepdims", 0}});
}

Val index_of_truth(const Val& condition) {
  return converted(condition, DType::I64);
}

}  // namespace tessera
