#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::lower {

/// Gradient-boosted regression trees, as XGBoost trains them (tools/train-cost-model). The text
/// form has a line for each property and each tree:
///
///   model x86-64-avx512                name of the machine family
///   features rows columns …            names, in the order of the vectors
///   base 0.25
///   tree 3,0.5,1,2 0.1 -0.2            nodes: feature, threshold, left and right node; or a value
///
/// A node goes left where the feature is below the threshold.
class TreeModel {
 public:
  static Expected<TreeModel> parse(std::string_view text);

  /// Sum of the values of the leaves that a feature vector leads to, plus the base.
  float predict(std::span<const float> features) const;
  /// The same for many vectors, tree by tree, so that a tree stays in the cache.
  std::vector<float> predict_all(std::span<const std::vector<float>> vectors) const;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& features() const { return features_; }
  std::size_t tree_count() const { return roots_.size(); }

 private:
  struct Node {
    std::int32_t feature = -1;  // -1: leaf
    float value = 0;            // threshold, or the value of the leaf
    std::uint32_t left = 0, right = 0;
  };

  Expected<Done> add_tree(std::string_view text);
  float leaf(std::uint32_t root, std::span<const float> features) const;

  std::string name_;
  std::vector<std::string> features_;
  float base_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> roots_;
};

}  // namespace tessera::lower
