#include "tessera/passes/split_windows.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tessera/passes/conv_windows.h"
#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

constexpr std::int64_t kMostParts = 32;  // of a convolution; bounds the number of nodes

/// One tap of a window, and the positions at which it reads the image.
struct Tap {
  Ints at, first, count;

  std::int64_t positions() const { return product(count); }
};

/// The taps that read the image somewhere, those with the most positions first.
std::vector<Tap> taps_of(const std::vector<WindowAxis>& windows) {
  std::vector<Tap> taps{{}};
  for (const WindowAxis& window : windows) {
    std::vector<Tap> longer;
    for (const Tap& tap : taps)
      for (std::int64_t at = 0; at < window.taps; ++at) {
        if (!window.reads_image(at)) continue;
        Tap& next = longer.emplace_back(tap);
        next.at.push_back(at);
        next.first.push_back(window.first(at));
        next.count.push_back(window.count(at));
      }
    taps = std::move(longer);
  }
  std::ranges::stable_sort(taps, std::greater(), &Tap::positions);
  return taps;
}

/// Whether the taps cost less than the window. A result of a tap is written, padded, read and added
/// in the time of kResult multiply-adds: measured on Sapphire Rapids, images of 16 x 16 to 65 x 65
/// pixels with 256 to 2048 channels.
bool is_faster(const std::vector<Tap>& taps, const std::vector<WindowAxis>& windows,
               std::int64_t channels) {
  constexpr std::int64_t kResult = 256;
  std::int64_t of_window = 1, of_taps = 0;
  for (const WindowAxis& window : windows) of_window *= window.positions * window.taps;
  for (const Tap& tap : taps) of_taps += tap.positions();
  return taps.size() > 1 && static_cast<double>(of_taps) * static_cast<double>(channels + kResult) <
                                static_cast<double>(of_window) * static_cast<double>(channels);
}

class SplitConvolution {
 public:
  /// The new result; none if the convolution is left as it is.
  static std::optional<ValueId> write(Rebuilder& out, const GraphNode& node) {
    const Graph& graph = out.from();
    const Tensor* weights = graph.constant(graph.inputs(node)[1]);
    if (weights == nullptr || weights->dtype != DType::F32 || weights->bytes.size() == 0 ||
        node.attrs->i("group") != 1)
      return std::nullopt;
    const std::vector<WindowAxis> windows = windows_of(graph, node, *weights);
    if (windows.empty()) return std::nullopt;
    if (std::accumulate(windows.begin(), windows.end(), std::int64_t{1},
                        [](std::int64_t n, const WindowAxis& w) { return n * w.taps; }) >
        kMostParts)
      return std::nullopt;
    const std::vector<Tap> taps = taps_of(windows);
    const bool is_first_whole =
        !taps.empty() && std::ranges::equal(taps[0].count, windows, {}, {}, &WindowAxis::positions);
    if (!is_first_whole || !is_faster(taps, windows, weights->shape[1])) return std::nullopt;
    return SplitConvolution(out, node, *weights, windows).sum(taps);
  }

 private:
  SplitConvolution(Rebuilder& out, const GraphNode& node, const Tensor& weights,
                   const std::vector<WindowAxis>& windows)
      : writer_(out, weights.dtype),
        inputs_(out.inputs_of(node)),
        image_(*static_shape(out.from().type(out.from().inputs(node)[0]))),
        result_(*static_shape(out.from().type(out.from().outputs(node)[0]))),
        weights_(weights),
        windows_(windows) {}

  ValueId sum(const std::vector<Tap>& taps) {
    ValueId total = part(taps[0], /*has_bias=*/true);
    for (std::size_t i = 1; i < taps.size(); ++i)
      total = writer_.add(op::add, {}, {total, part(taps[i], /*has_bias=*/false)}, result_);
    return total;
  }

  /// Contribution of a tap to the result, which is zero where the tap reads padding.
  ValueId part(const Tap& tap, bool has_bias) {
    std::vector<ValueId> operands{pixels(tap)};
    operands.push_back(writer_.constant(part_of(weights_, tap.at, Ints(windows_.size(), 1))));
    if (has_bias) operands.insert(operands.end(), inputs_.begin() + 2, inputs_.end());
    std::vector<std::int64_t> shape{result_[0], result_[1]}, before{0, 0}, after{0, 0}, strides;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      shape.push_back(tap.count[i]);
      before.push_back(tap.first[i]);
      after.push_back(windows_[i].positions - tap.first[i] - tap.count[i]);
      strides.push_back(windows_[i].stride);
    }
    const ValueId made = writer_.add(op::conv, {{"strides", Ints(strides.begin(), strides.end())}},
                                     std::move(operands), shape);
    if (shape == result_) return made;
    before.insert(before.end(), after.begin(), after.end());
    return writer_.add(op::pad, {}, {made, writer_.integers(before)}, result_);
  }

  /// The part of the image that a tap reads.
  ValueId pixels(const Tap& tap) {
    std::vector<std::int64_t> begin{0, 0}, end{image_[0], image_[1]}, shape = end;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const WindowAxis& window = windows_[i];
      begin.push_back(window.offset(tap.at[i]) + tap.first[i] * window.stride);
      shape.push_back((tap.count[i] - 1) * window.stride + 1);
      end.push_back(begin.back() + shape.back());
    }
    if (shape == image_) return inputs_[0];
    return writer_.add(op::slice, {}, {inputs_[0], writer_.integers(begin), writer_.integers(end)},
                       shape);
  }

  Writer writer_;
  const std::vector<ValueId> inputs_;
  const std::vector<std::int64_t> image_, result_;
  const Tensor& weights_;
  const std::vector<WindowAxis>& windows_;
};

}  // namespace

Graph split_windows(const Graph& graph) {
  return with_rewritten(graph, op::conv, SplitConvolution::write);
}

}  // namespace tessera::passes
