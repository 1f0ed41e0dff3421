#pragma once

#include "tessera/ops/composite.h"

// Helpers of the classifiers and regressors of ai.onnx.ml. Cases that the specification leaves open
// follow ONNX Runtime.

namespace tessera {

/// Constant of f32 with this shape.
Val float_constant(Body& b, std::vector<std::int64_t> shape, const Floats& values);

/// Features as [N, C] in f32; a vector is one row.
Expected<Val> feature_rows(const Val& x);

/// Specification of the attribute `post_transform`.
AttrSpec post_transform_attr();
/// Checks that `post_transform` is one of the five known transforms.
Expected<Done> check_post_transform(const Attrs& attrs);

/// Applies the post transform to scores [N, K]. A single score (K = 1) is transformed by PROBIT
/// only.
Val post_transformed(const Val& scores, const std::string& transform);

/// Scores of two classes from a score for the second one: [N, 1] to [N, 2]. The first is 1 - s or
/// -s (`mirrored`); they are transformed by LOGISTIC and PROBIT only.
Val two_scores(const Val& score, const std::string& transform, bool mirrored);

/// Class labels of a classifier: integers or strings.
struct ClassLabels {
  Ints ints = {};
  Strings strings = {};

  static Expected<ClassLabels> of(const Attrs& attrs, std::string_view ints_name);
  std::size_t count() const { return strings.empty() ? ints.size() : strings.size(); }
  /// Labels at these positions.
  Val at(const Val& index) const;
};

/// Argmax of the scores of each row; the first of equal ones.
Val top_class(const Val& scores);

/// Boolean as the index 1 or 0.
Val index_of_truth(const Val& condition);

}  // namespace tessera
