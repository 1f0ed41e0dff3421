#include <algorithm>
#include <set>

#include "tessera/ops/families.h"
#include "tessera/ops/ml_scores.h"

// Decision trees of ai.onnx.ml. Host functions walk the trees and aggregate what their leaves vote
// for; base values, transforms and labels are graphs of other operators.

namespace tessera::define {
namespace {

/// One number for each row of x and target.
Expected<std::vector<OpaqueType>> scores_of_rows(const Argument& x, DType dtype,
                                                 const Attrs& attrs) {
  const std::int64_t targets = attrs.has("n_targets") ? attrs.i("n_targets") : 1;
  if (x.rank() != 1 && x.rank() != 2)
    return bad_operands(fmt::format("x has {} axes", x.rank()), "it has to have 1 or 2");
  if (targets < 1)
    return bad_operands(fmt::format("n_targets is {}", targets), "it has to be at least 1");
  const Dim rows = x.rank() == 1 ? Dim(1) : x.dim(0);
  return std::vector{OpaqueType{.dtype = dtype, .shape = Shape{rows, targets}}};
}

/// The nodes of trees up to version 3 of the domain.
std::vector<AttrSpec> with_nodes(std::vector<AttrSpec> attrs) {
  return tessera::concat<AttrSpec>(std::move(attrs),
                                   {{"nodes_falsenodeids", Ints{}},
                                    {"nodes_featureids", Ints{}},
                                    {"nodes_hitrates", Floats{}},
                                    optional_attr("nodes_hitrates_as_tensor", Tensor{}),
                                    {"nodes_missing_value_tracks_true", Ints{}},
                                    {"nodes_modes", Strings{}},
                                    {"nodes_nodeids", Ints{}},
                                    {"nodes_treeids", Ints{}},
                                    {"nodes_truenodeids", Ints{}},
                                    {"nodes_values", Floats{}},
                                    optional_attr("nodes_values_as_tensor", Tensor{})});
}

/// An attribute that is a list of floats, or a tensor of the same name that ends in _as_tensor.
Floats list_or_tensor(const Attrs& attrs, const std::string& name) {
  if (!attrs.has(name + "_as_tensor")) return attrs.floats(name);
  const Tensor& tensor = attrs.tensor(name + "_as_tensor");
  Floats list;
  for (std::int64_t i = 0; i < tensor.count(); ++i) list.push_back(number_at(tensor, i));
  return list;
}

}  // namespace

OpDef ml_tree_ensemble() {
  return {.name = "ml_tree_ensemble",
          .summary = "what the leaves that each row of x reaches vote for, aggregated by target",
          .inputs = {"x"},
          .attrs = {{"aggregate_function", 1},
                    required_attr("leaf_targetids", Ints{}),
                    required_attr("leaf_weights", Tensor{}),
                    optional_attr("membership_values", Tensor{}),
                    optional_attr("n_targets", 1),
                    required_attr("nodes_falseleafs", Ints{}),
                    required_attr("nodes_falsenodeids", Ints{}),
                    required_attr("nodes_featureids", Ints{}),
                    optional_attr("nodes_hitrates", Tensor{}),
                    {"nodes_missing_value_tracks_true", Ints{}},
                    required_attr("nodes_modes", Tensor{}),
                    required_attr("nodes_splits", Tensor{}),
                    required_attr("nodes_trueleafs", Ints{}),
                    required_attr("nodes_truenodeids", Ints{}),
                    required_attr("tree_roots", Ints{})},
          .infer = [](const Attrs& attrs, const Signature& in) {
            return scores_of_rows(in[0], in[0].dtype(), attrs);
          }};
}

OpDef ml_tree_ensemble_regressor() {
  return {.name = "ml_tree_ensemble_regressor",
          .summary = "the same for nodes that have numbers within their trees",
          .inputs = {"x"},
          .attrs = with_nodes({{"aggregate_function", "SUM"},
                               optional_attr("n_targets", 1),
                               {"target_ids", Ints{}},
                               {"target_nodeids", Ints{}},
                               {"target_treeids", Ints{}},
                               {"target_weights", Floats{}},
                               optional_attr("target_weights_as_tensor", Tensor{})}),
          .infer = [](const Attrs& attrs, const Signature& in) {
            return scores_of_rows(in[0], DType::F32, attrs);
          }};
}

OpDef ml_post_transform() {
  return {.name = "ml_post_transform",
          .summary = "scores of targets or classes, transformed",
          .inputs = {"x"},
          .attrs = {post_transform_attr()},
          .expand = [](Body&, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY_DONE(check_post_transform(attrs));
            TESSERA_TRY_DONE(check_rank(in[0], "x", 2));
            return Vals{post_transformed(in[0], attrs.s("post_transform"))};
          }};
}

OpDef ml_tree_ensemble_classifier() {
  return {.name = "ml_tree_ensemble_classifier",
          .summary =
              "the class that the leaves which each row of x reaches give most votes, and the "
              "sums of votes, transformed",
          .inputs = {"x"},
          .outputs = {"labels", "scores"},
          .attrs = with_nodes({{"base_values", Floats{}},
                               optional_attr("base_values_as_tensor", Tensor{}),
                               {"class_ids", Ints{}},
                               {"class_nodeids", Ints{}},
                               {"class_treeids", Ints{}},
                               {"class_weights", Floats{}},
                               optional_attr("class_weights_as_tensor", Tensor{}),
                               {"classlabels_int64s", Ints{}},
                               {"classlabels_strings", Strings{}},
                               post_transform_attr()}),
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            TESSERA_TRY_DONE(check_post_transform(attrs));
            TESSERA_TRY(ClassLabels labels, ClassLabels::of(attrs, "classlabels_int64s"));
            const auto classes = static_cast<std::int64_t>(labels.count());
            Attrs trees{{"n_targets", classes}};
            for (const auto& [name, value] : attrs.entries()) {
              if (name.starts_with("nodes_")) trees.set(name, value);
              if (name.starts_with("class_")) trees.set("target_" + name.substr(6), value);
            }
            Val scores = b.op("ml_tree_ensemble_regressor", {in[0]}, trees);
            Floats base = list_or_tensor(attrs, "base_values");
            if (base.size() == 1 && classes == 2) base.push_back(0);
            if (!base.empty() && std::ssize(base) != classes)
              return bad_operands(fmt::format("there are {} base values", base.size()),
                                  fmt::format("there are {} classes", classes));
            const Ints& ids = attrs.ints("class_ids");
            const std::set<std::int64_t> voted(ids.begin(), ids.end());
            if (!base.empty()) scores = scores + float_constant(b, {classes}, base);

            const std::string& transform = attrs.s("post_transform");
            const auto above = [&](double limit) {
              const Val score = picked(scores, 1, voted.size() == 1 ? *voted.begin() : 0);
              return index_of_truth(b.op("greater", {score, b.number(limit, DType::F32)}));
            };
            if (classes == 1) {
              if (labels.ints.empty())
                return bad_operands("the only class label is text", "it has to be a number");
              labels.ints = {0, 1};
              return Vals{labels.at(above(0)), post_transformed(scores, transform)};
            }
            // Votes for one of two classes are a score, or a probability where none is negative.
            if (classes == 2 && voted.size() == 1 && (*voted.begin() == 0 || *voted.begin() == 1)) {
              const Floats weights = list_or_tensor(attrs, "class_weights");
              const bool positive = std::ranges::all_of(weights, [](double w) { return w >= 0; });
              const Val label = labels.at(above(positive ? 0.5 : 0));
              if (*voted.begin() == 0)
                return Vals{label, two_scores(sliced(scores, 1, 0, 1), transform, !positive)};
              return Vals{label, post_transformed(scores, transform)};
            }
            return Vals{labels.at(top_class(scores)), post_transformed(scores, transform)};
          }};
}

}  // namespace tessera::define
