#include "tessera/lower/tree_model.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tessera::lower {
namespace {

Diagnostic malformed(std::string reason) {
  return {.id = "cost-model-malformed",
          .message = fmt::format("the cost model is malformed: {}", reason)};
}

/// Removes the first word of a text and returns it.
std::string_view take_word(std::string_view& text, char separator = ' ') {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Number>
std::optional<Number> number_in(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

Expected<Done> TreeModel::add_tree(std::string_view text) {
  const auto root = static_cast<std::uint32_t>(nodes_.size());
  while (!text.empty()) {
    std::string_view word = take_word(text);
    Node node;
    if (word.find(',') != std::string_view::npos) {
      const auto feature = number_in<std::int32_t>(take_word(word, ','));
      const auto threshold = number_in<float>(take_word(word, ','));
      const auto left = number_in<std::uint32_t>(take_word(word, ','));
      const auto right = number_in<std::uint32_t>(word);
      if (!feature || !threshold || !left || !right) return malformed("a node has four numbers");
      if (*feature < 0 || static_cast<std::size_t>(*feature) >= features_.size())
        return malformed("a node has an unknown feature");
      node = {*feature, *threshold, root + *left, root + *right};
      // Children come later, so that every walk ends.
      const auto own = static_cast<std::uint32_t>(nodes_.size());
      if (node.left <= own || node.right <= own) return malformed("a node precedes its parent");
    } else if (const auto value = number_in<float>(word)) {
      node.value = *value;
    } else {
      return malformed("a leaf is a number");
    }
    nodes_.push_back(node);
  }
  if (nodes_.size() == root) return malformed("a tree is empty");
  for (std::size_t i = root; i < nodes_.size(); ++i)
    if (nodes_[i].feature >= 0 &&
        (nodes_[i].left >= nodes_.size() || nodes_[i].right >= nodes_.size()))
      return malformed("a node has no child");
  roots_.push_back(root);
  return Done{};
}

Expected<TreeModel> TreeModel::parse(std::string_view text) {
  TreeModel model;
  while (!text.empty()) {
    std::string_view line = take_word(text, '\n');
    const std::string_view key = take_word(line);
    if (key == "model") {
      model.name_ = line;
    } else if (key == "features") {
      while (!line.empty()) model.features_.emplace_back(take_word(line));
    } else if (key == "base") {
      const auto base = number_in<float>(line);
      if (!base) return malformed("the base is a number");
      model.base_ = *base;
    } else if (key == "tree") {
      TESSERA_TRY_DONE(model.add_tree(line));
    } else if (!key.empty()) {
      return malformed(fmt::format("unknown property '{}'", key));
    }
  }
  if (model.roots_.empty()) return malformed("it has no trees");
  return model;
}

float TreeModel::leaf(std::uint32_t root, std::span<const float> features) const {
  std::uint32_t at = root;
  while (nodes_[at].feature >= 0) {
    const Node& node = nodes_[at];
    at = features[static_cast<std::size_t>(node.feature)] < node.value ? node.left : node.right;
  }
  return nodes_[at].value;
}

float TreeModel::predict(std::span<const float> features) const {
  float sum = base_;
  for (const std::uint32_t root : roots_) sum += leaf(root, features);
  return sum;
}

std::vector<float> TreeModel::predict_all(std::span<const std::vector<float>> vectors) const {
  std::vector<float> sums(vectors.size(), base_);
  for (const std::uint32_t root : roots_)
    for (std::size_t i = 0; i < vectors.size(); ++i) sums[i] += leaf(root, vectors[i]);
  return sums;
}

}  // namespace tessera::lower
