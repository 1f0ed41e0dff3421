#include <algorithm>
#include <numeric>

#include "tessera/ops/ml_scores.h"

// Support vector machines of ai.onnx.ml.

namespace tessera::define {
namespace {

std::vector<AttrSpec> with_kernel(std::vector<AttrSpec> attrs) {
  return tessera::concat<AttrSpec>(std::move(attrs), {{"coefficients", Floats{}},
                                                      {"kernel_params", Floats{}},
                                                      {"kernel_type", "LINEAR"},
                                                      post_transform_attr(),
                                                      {"rho", Floats{}},
                                                      {"support_vectors", Floats{}}});
}

/// The kernel of each row of x, [N, F], with each row of `vectors`: [N, V].
Expected<Val> kernel(Body& b, const Attrs& attrs, const Val& x, const Floats& vectors,
                     std::int64_t count) {
  const Floats& params = attrs.floats("kernel_params");
  if (!params.empty() && params.size() != 3)
    return bad_operands(fmt::format("kernel_params has {} entries", params.size()),
                        "there have to be 3: gamma, coef0 and degree");
  const auto param = [&](std::size_t i) { return params.empty() ? 0.0 : params[i]; };
  if (vectors.empty() || static_cast<std::int64_t>(vectors.size()) % count != 0)
    return bad_operands(fmt::format("the {} vectors have {} numbers", count, vectors.size()));
  const auto features = static_cast<std::int64_t>(vectors.size()) / count;
  const Val rows = float_constant(b, {count, features}, vectors);
  const std::string& type = attrs.s("kernel_type");
  if (type == "RBF") {
    const Val apart = unsqueezed(x, {1}) - rows;  // [N, V, F]
    const Val distance = b.op("reduce_sum", {apart * apart, b.ints({2})}, {{"keepdims", 0}});
    return b.op("exp", {distance * -param(0)});
  }
  const Val product = b.op("matmul", {x, transposed(rows, {1, 0})});
  if (type == "LINEAR") return product;
  const Val scaled = product * param(0) + param(1);
  if (type == "SIGMOID") return b.op("tanh", {scaled});
  return b.op("pow", {scaled, b.number(param(2), DType::F32)});
}

Expected<Done> check_kernel(const Attrs& attrs) {
  TESSERA_TRY_DONE(check_post_transform(attrs));
  return check_word(attrs, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"});
}

/// The rows of linear models.
Expected<Val> linear_models(Body& b, const Attrs& attrs, const Val& x, std::int64_t count) {
  const Floats &coefficients = attrs.floats("coefficients"), &rho = attrs.floats("rho");
  if (rho.empty()) return bad_operands("rho has no entries");
  Attrs linear = attrs;
  linear.set("kernel_type", std::string("LINEAR"));
  TESSERA_TRY(const Val scores, kernel(b, linear, x, coefficients, count));
  return scores + static_cast<double>(static_cast<float>(rho[0]));
}

/// All pairs of classes i < j, in order.
struct Pairs {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  std::size_t classes;

  explicit Pairs(std::size_t count) : classes(count) {
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = i + 1; j < count; ++j) all.emplace_back(i, j);
  }
  std::int64_t count() const { return std::ssize(all); }
  std::int64_t class_count() const { return static_cast<std::int64_t>(classes); }

  /// [pairs, classes]: 1 at the first or the second class of each pair.
  Val indicator(Body& b, bool second) const {
    Floats ones(all.size() * classes, 0.0);
    for (std::size_t p = 0; p < all.size(); ++p)
      ones[p * classes + (second ? all[p].second : all[p].first)] = 1;
    return float_constant(b, {count(), class_count()}, ones);
  }
};

/// The probabilities of classes, [N, K], from those of pairs: r[n, i, j] is that of i against j.
/// The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by
/// Pairwise Coupling", 2004, with the tolerance of libsvm.
Val coupled(const Val& r, std::int64_t classes) {
  constexpr std::int64_t kMostSteps = 100;
  Body& b = r.body();
  const auto number = [](Body& body, double value) { return body.number(value, DType::F32); };
  const auto k = static_cast<std::size_t>(classes);
  Floats identity(k * k, 0.0);
  for (std::size_t i = 0; i < k; ++i) identity[i * k + i] = 1;
  const Val diagonal = float_constant(b, {classes, classes}, identity);
  // Q[i, i] = sum of r[j, i]^2 over j, Q[i, j] = -r[j, i] r[i, j]; r[i, i] is 0.
  const Val mirrored = transposed(r, {0, 2, 1});
  const Val squares = reduced("reduce_sum", r * r, {1});
  const Val q = diagonal * squares - mirrored * r;
  const Val start = b.op(
      "expand", {number(b, 1.0 / static_cast<double>(classes)), joined({sizes_of(r, 0, 2)}, 0)});
  const Val steps = float_constant(b, {kMostSteps}, Floats(kMostSteps, 0.0));
  const double tolerance = 0.005 / static_cast<double>(classes);
  const Vals results =
      b.scan({start, q}, {steps}, [&](Body& inner, const Vals& states, const Vals&) -> Vals {
        const Val &before = states[0], &all = states[1];
        Val p = before;
        Val qp =
            inner.op("reduce_sum", {all * unsqueezed(p, {1}), inner.ints({2})}, {{"keepdims", 0}});
        Val pqp = reduced("reduce_sum", p * qp, {1});
        const Val error = reduced("reduce_max", inner.op("abs", {qp - pqp}), {1});
        const Val converged = inner.op("less", {error, number(inner, tolerance)});
        for (std::int64_t i = 0; i < classes; ++i) {
          const Val row = picked(all, 1, i);  // [N, K]
          const Val own = sliced(row, 1, i, i + 1), at = sliced(qp, 1, i, i + 1);
          const Val change = (pqp - at) / own, rescale = change + 1.0;
          Floats unit(k, 0.0);
          unit[static_cast<std::size_t>(i)] = 1;
          p = (p + change * float_constant(inner, {classes}, unit)) / rescale;
          pqp = (pqp + change * (change * own + at * 2.0)) / rescale / rescale;
          qp = (qp + change * row) / rescale;
        }
        return {inner.op("where", {converged, before, p}), all};
      });
  return results[0];
}

}  // namespace

OpDef ml_svm_regressor() {
  return {.name = "ml_svm_regressor",
          .summary = "coefficients times the kernel of x with support vectors, plus rho",
          .inputs = {"x"},
          .attrs = with_kernel({{"n_supports", 0}, flag_attr("one_class", 0)}),
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY_DONE(check_kernel(attrs));
            TESSERA_TRY(const Val x, feature_rows(in[0]));
            const std::int64_t count = attrs.i("n_supports");
            Val score;
            if (count > 0) {
              const Floats &weights = attrs.floats("coefficients"), &rho = attrs.floats("rho");
              if (static_cast<std::int64_t>(weights.size()) != count || rho.empty())
                return bad_operands(fmt::format("there are {} coefficients and {} entries of rho",
                                                weights.size(), rho.size()),
                                    fmt::format("there have to be {} and 1", count));
              TESSERA_TRY(const Val near,
                          kernel(b, attrs, x, attrs.floats("support_vectors"), count));
              score = b.op("matmul", {near, float_constant(b, {count, 1}, weights)}) +
                      static_cast<double>(static_cast<float>(rho[0]));
            } else {
              TESSERA_TRY(score, linear_models(b, attrs, x, 1));
            }
            if (attrs.i("one_class") != 0) {
              const auto number = [&](double value) { return b.number(value, DType::F32); };
              const Val inside = b.op("greater", {score, number(0)});
              return Vals{b.op("where", {inside, number(1), number(-1)})};
            }
            return Vals{post_transformed(score, attrs.s("post_transform"))};
          }};
}

namespace {

/// A classifier without support vectors: a linear model of each class.
Expected<Vals> linear_classifier(Body& b, const Attrs& attrs, const Val& x,
                                 const ClassLabels& labels) {
  const auto number = [&](double value) { return b.number(value, DType::F32); };
  TESSERA_TRY(const Val scores,
              linear_models(b, attrs, x, static_cast<std::int64_t>(labels.count())));
  Val index = top_class(scores);
  if (labels.count() == 2) {
    // The second class wins as soon as one score is positive enough.
    const bool positive =
        std::ranges::all_of(attrs.floats("coefficients"), [](double w) { return w >= 0; });
    const Val most = b.op("reduce_max", {scores, b.ints({1})}, {{"keepdims", 0}});
    const Val second = positive ? b.op("greater_or_equal", {most, number(0.5)})
                                : b.op("greater", {most, number(0)});
    index = b.op("max", {index, index_of_truth(second)});
  }
  return Vals{labels.at(index), post_transformed(scores, attrs.s("post_transform"))};
}

/// The weights of support vectors in the scores of pairs, [vectors, pairs]: the coefficients of a
/// vector against the other classes are in its column.
Floats weights_of_pairs(const Pairs& pairs, const Ints& per_class, const Floats& coefficients) {
  const auto vectors = static_cast<std::size_t>(
      std::accumulate(per_class.begin(), per_class.end(), std::int64_t{0}));
  Floats weights(vectors * pairs.all.size(), 0.0);
  for (std::size_t p = 0; p < pairs.all.size(); ++p) {
    const auto [i, j] = pairs.all[p];
    std::size_t v = 0;
    for (std::size_t c = 0; c < per_class.size(); ++c)
      for (std::int64_t n = 0; n < per_class[c]; ++n, ++v)
        if (c == i || c == j)
          weights[v * pairs.all.size() + p] = coefficients[(c == i ? j - 1 : i) * vectors + v];
  }
  return weights;
}

/// Probabilities that one class of a pair wins, r[n, i, j], of the scores of pairs: those of i < j
/// by a sigmoid, r[n, j, i] the rest to 1, r[n, i, i] zero.
Val pair_probabilities(Body& b, const Pairs& pairs, const Val& scores, const Floats& a,
                       const Floats& bias) {
  const auto number = [&](double value) { return b.number(value, DType::F32); };
  const auto of_pairs = [&](const Floats& list) {
    return float_constant(b, {pairs.count()}, Floats(list.begin(), list.begin() + pairs.count()));
  };
  const Val likely = b.op("sigmoid", {-(scores * of_pairs(a) + of_pairs(bias))});
  const Val bounded = b.op("clip", {likely, number(1e-7), number(1 - 1e-7)});
  const Val all = joined({bounded, 1.0 - bounded, sliced(bounded, 1, 0, 1) * 0.0}, 1);
  const std::size_t k = pairs.classes;
  Ints places(k * k, 2 * pairs.count());
  for (std::size_t p = 0; p < pairs.all.size(); ++p) {
    const auto [i, j] = pairs.all[p];
    places[i * k + j] = static_cast<std::int64_t>(p);
    places[j * k + i] = static_cast<std::int64_t>(p) + pairs.count();
  }
  const auto classes = static_cast<std::int64_t>(k);
  const Val flat = b.op("gather", {all, b.ints(places)}, {{"axis", 1}});
  return b.op("reshape", {flat, joined({sizes_of(flat, 0, 1), b.ints({classes, classes})}, 0)});
}

}  // namespace

OpDef ml_svm_classifier() {
  return {
      .name = "ml_svm_classifier",
      .summary =
          "the class that wins most comparisons of pairs, and their scores, or "
          "probabilities of classes",
      .inputs = {"x"},
      .outputs = {"labels", "scores"},
      .attrs = with_kernel({{"classlabels_ints", Ints{}},
                            {"classlabels_strings", Strings{}},
                            {"prob_a", Floats{}},
                            {"prob_b", Floats{}},
                            {"vectors_per_class", Ints{}}}),
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY_DONE(check_kernel(attrs));
        TESSERA_TRY(const ClassLabels labels, ClassLabels::of(attrs, "classlabels_ints"));
        TESSERA_TRY(const Val x, feature_rows(in[0]));
        const std::string& transform = attrs.s("post_transform");
        const Floats& weights = attrs.floats("coefficients");
        const auto classes = static_cast<std::int64_t>(labels.count());
        const auto number = [&](double value) { return b.number(value, DType::F32); };

        const Ints& per_class = attrs.ints("vectors_per_class");
        const std::int64_t count =
            std::accumulate(per_class.begin(), per_class.end(), std::int64_t{0});
        if (std::ranges::any_of(per_class, [](std::int64_t n) { return n < 0; }))
          return bad_operands("vectors_per_class has a negative entry");
        if (count == 0) return linear_classifier(b, attrs, x, labels);

        const Floats &rho = attrs.floats("rho"), &a = attrs.floats("prob_a"),
                     &bias = attrs.floats("prob_b");
        const std::int64_t pair_count = classes * (classes - 1) / 2;
        const auto enough = [&](const Floats& list) { return std::ssize(list) >= pair_count; };
        if (classes < 2 || std::ssize(per_class) != classes || !enough(rho) ||
            std::ssize(weights) < (classes - 1) * count || a.size() != bias.size() ||
            (!a.empty() && !enough(a)))
          return bad_operands(
              fmt::format("{} classes do not fit {} coefficients of {} support vectors", classes,
                          weights.size(), count),
              "there have to be vectors of each class, classes - 1 coefficients for each vector, "
              "and rho, prob_a and prob_b for each pair");
        constexpr std::int64_t kMostWeights = std::int64_t{1} << 24;
        if (std::max(count, classes) > kMostWeights / pair_count)
          return bad_operands(
              fmt::format("there are {} classes and {} support vectors", classes, count),
              fmt::format("up to {} weights of pairs of classes are read", kMostWeights));
        const Pairs pairs(labels.count());
        TESSERA_TRY(const Val near, kernel(b, attrs, x, attrs.floats("support_vectors"), count));
        const Floats spread = weights_of_pairs(pairs, per_class, weights);
        const Floats offsets(rho.begin(), rho.begin() + pairs.count());
        const Val scores =
            b.op("matmul", {near, float_constant(b, {count, pairs.count()}, spread)}) +
            float_constant(b, {pairs.count()}, offsets);
        const Val first = converted(b.op("greater", {scores, number(0)}), DType::F32);
        const Val votes = b.op("matmul", {first, pairs.indicator(b, false)}) +
                          b.op("matmul", {1.0 - first, pairs.indicator(b, true)});
        const Val winner = labels.at(top_class(votes));
        if (a.empty()) {
          if (classes > 2) return Vals{winner, post_transformed(scores, transform)};
          return Vals{winner, two_scores(scores, transform, transform == "NONE")};
        }
        const Val r = pair_probabilities(b, pairs, scores, a, bias);
        return Vals{winner, post_transformed(coupled(r, classes), transform)};
      }};
}

}  // namespace tessera::define
