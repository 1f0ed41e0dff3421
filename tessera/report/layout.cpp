#include "tessera/report/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <sstream>

#include "tessera/report/graphviz.h"

namespace tessera::report {
namespace {

constexpr double kHorizontalGap = 24, kVerticalGap = 36, kPixelsPerInch = 72;

std::string dot_text(const BoxGraph& graph) {
  // Few iterations of the simplex algorithm, straight edges: seconds for thousands of boxes.
  std::string text = fmt::format(
      "digraph {{ graph [splines=false nslimit=2 nslimit1=2 mclimit=0.5 nodesep={:.3f} "
      "ranksep={:.3f}] node [shape=box fixedsize=true label=\"\"]\n",
      kHorizontalGap / kPixelsPerInch, kVerticalGap / kPixelsPerInch);
  for (std::size_t i = 0; i < graph.boxes.size(); ++i)
    text +=
        fmt::format("n{} [width={:.3f} height={:.3f}]\n", i, graph.boxes[i].width / kPixelsPerInch,
                    graph.boxes[i].height / kPixelsPerInch);
  for (const auto& [from, to] : graph.edges) text += fmt::format("n{}->n{}\n", from, to);
  return text + "}\n";
}

/// Layout out of dot's format "plain"; none where a line is not as expected.
std::optional<BoxLayout> parsed_plain(const std::string& plain, std::size_t boxes) {
  BoxLayout result{.by = "dot"};
  result.centers.resize(boxes);
  std::size_t found = 0;
  std::istringstream lines(plain);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "graph") {
      double scale = 0;
      words >> scale >> result.width >> result.height;
      result.width *= kPixelsPerInch;
      result.height *= kPixelsPerInch;
    } else if (kind == "node") {
      double x = 0, y = 0;
      words >> name >> x >> y;
      std::size_t index = boxes;
      if (!words || name.empty()) return std::nullopt;
      std::from_chars(name.data() + 1, name.data() + name.size(), index);
      if (index >= boxes) return std::nullopt;
      // Graphviz has its origin at the bottom.
      result.centers[index] = {x * kPixelsPerInch, result.height - y * kPixelsPerInch};
      ++found;
    } else {
      break;
    }
  }
  return found == boxes ? std::optional(result) : std::nullopt;
}

/// Layers of a graph, while their order and coordinates are found.
class LayeredLayout {
 public:
  explicit LayeredLayout(const BoxGraph& graph) : graph_(graph), count_(graph.boxes.size()) {
    above_.resize(count_);
    below_.resize(count_);
    for (const auto& [from, to] : graph.edges) {
      if (from >= to) continue;
      above_[to].push_back(from);
      below_[from].push_back(to);
    }
  }

  BoxLayout run() {
    assign_layers();
    constexpr int kSweeps = 6;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (std::size_t i = 0; i < layers_.size(); ++i)
        order(layers_[down ? i : layers_.size() - 1 - i], down ? above_ : below_);
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep)
      for (std::vector<std::size_t>& layer : layers_) spread(layer);
    return finished();
  }

 private:
  void assign_layers() {
    std::vector<std::size_t> rank(count_, 0);
    for (std::size_t i = 0; i < count_; ++i)
      for (const std::size_t from : above_[i]) rank[i] = std::max(rank[i], rank[from] + 1);
    // Sources sit right above their first use.
    for (std::size_t i = count_; i-- > 0;)
      if (above_[i].empty() && !below_[i].empty()) {
        std::size_t least = rank[below_[i][0]];
        for (const std::size_t to : below_[i]) least = std::min(least, rank[to]);
        rank[i] = least - 1;
      }
    layers_.resize(count_ == 0 ? 0 : *std::ranges::max_element(rank) + 1);
    x_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) layers_[rank[i]].push_back(i);
    for (const std::vector<std::size_t>& layer : layers_) pack(layer);
  }

  /// Places the boxes of a layer side by side, centered around 0.
  void pack(const std::vector<std::size_t>& layer) {
    double width = -kHorizontalGap;
    for (const std::size_t i : layer) width += graph_.boxes[i].width + kHorizontalGap;
    double left = -width / 2;
    for (const std::size_t i : layer) {
      x_[i] = left + graph_.boxes[i].width / 2;
      left += graph_.boxes[i].width + kHorizontalGap;
    }
  }

  double wanted(std::size_t i, const std::vector<std::size_t>& neighbours) const {
    if (neighbours.empty()) return x_[i];
    double sum = 0;
    for (const std::size_t other : neighbours) sum += x_[other];
    return sum / static_cast<double>(neighbours.size());
  }

  void order(std::vector<std::size_t>& layer, const std::vector<std::vector<std::size_t>>& by) {
    std::vector<std::pair<double, std::size_t>> keyed;
    for (const std::size_t i : layer) keyed.emplace_back(wanted(i, by[i]), i);
    std::ranges::stable_sort(keyed, {}, [](const auto& entry) { return entry.first; });
    for (std::size_t k = 0; k < layer.size(); ++k) layer[k] = keyed[k].second;
    pack(layer);
  }

  /// Moves the boxes of a layer towards their neighbours, without overlap.
  void spread(const std::vector<std::size_t>& layer) {
    std::vector<double> goal;
    for (const std::size_t i : layer) {
      std::vector<std::size_t> all = above_[i];
      all.insert(all.end(), below_[i].begin(), below_[i].end());
      goal.push_back(wanted(i, all));
    }
    const auto distance = [&](std::size_t k) {
      return (graph_.boxes[layer[k - 1]].width + graph_.boxes[layer[k]].width) / 2 + kHorizontalGap;
    };
    // The mean of the leftmost and the rightmost placement keeps the distances of both.
    std::vector<double> left = goal, right = goal;
    for (std::size_t k = 1; k < layer.size(); ++k)
      left[k] = std::max(left[k], left[k - 1] + distance(k));
    for (std::size_t k = layer.size(); k-- > 1;)
      right[k - 1] = std::min(right[k - 1], right[k] - distance(k));
    for (std::size_t k = 0; k < layer.size(); ++k) x_[layer[k]] = (left[k] + right[k]) / 2;
  }

  BoxLayout finished() const {
    BoxLayout result{.by = "layers"};
    result.centers.resize(count_);
    double least = 0, most = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      least = std::min(least, x_[i] - graph_.boxes[i].width / 2);
      most = std::max(most, x_[i] + graph_.boxes[i].width / 2);
    }
    double top = 0;
    for (const std::vector<std::size_t>& layer : layers_) {
      double height = 0;
      for (const std::size_t i : layer) height = std::max(height, graph_.boxes[i].height);
      for (const std::size_t i : layer) result.centers[i] = {x_[i] - least, top + height / 2};
      top += height + kVerticalGap;
    }
    result.width = most - least;
    result.height = std::max(0.0, top - kVerticalGap);
    return result;
  }

  const BoxGraph& graph_;
  std::size_t count_;
  std::vector<std::vector<std::size_t>> above_, below_, layers_;
  std::vector<double> x_;
};

}  // namespace

BoxLayout layered_layout(const BoxGraph& graph) {
  return LayeredLayout(graph).run();
}

BoxLayout layout(const BoxGraph& graph, double seconds) {
  if (graph.boxes.empty()) return {.by = "layers"};
  if (const auto plain = run_dot(dot_text(graph), {.format = "plain", .seconds = seconds}); plain)
    if (auto result = parsed_plain(*plain, graph.boxes.size())) return *std::move(result);
  return layered_layout(graph);
}

}  // namespace tessera::report
