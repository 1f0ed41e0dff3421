#pragma once

#include "tessera/ops/composite.h"

// What the classifiers and regressors of ai.onnx.ml share. Where the specification leaves a case
// open it is what ONNX Runtime does.

namespace tessera {

/// A constant of f32 with this many axes.
Val float_constant(Body& b, std::vector<std::int64_t> shape, const Floats& values);

/// [N, C] in f32; a list is one row.
Expected<Val> feature_rows(const Val& x);

/// The attribute post_transform of each operator.
AttrSpec post_transform_attr();
/// It is one of the five that there are.
Expected<Done> check_post_transform(const Attrs& attrs);

/// The scores, [N, K], transformed. One score alone (K = 1) is transformed by PROBIT only.
Val post_transformed(const Val& scores, const std::string& transform);

/// The scores of two classes of a score for the second one: [N, 1] as [N, 2]. The first is 1 - s or
/// -s (`mirrored`); they are transformed by LOGISTIC and PROBIT only.
Val two_scores(const Val& score, const std::string& transform, bool mirrored);

/// The labels of a classifier, numbers or text.
struct ClassLabels {
  Ints ints = {};
  Strings strings = {};

  static Expected<ClassLabels> of(const Attrs& attrs, std::string_view ints_name);
  std::size_t count() const { return strings.empty() ? ints.size() : strings.size(); }
  /// The labels at these positions.
  Val at(const Val& index) const;
};

/// Where the largest score of each row is; the first of equal ones.
Val top_class(const Val& scores);

/// 1 or 0 by a truth value, as an index.
Val index_of_truth(const Val& condition);

}  // namespace tessera
