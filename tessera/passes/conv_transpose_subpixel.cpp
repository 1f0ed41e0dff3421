#include "tessera/passes/conv_transpose_subpixel.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "tessera/expr/number.h"
#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// Taps of one phase along one axis: tap `first` of the window reads the input pixel at offset
/// `low` from the position, and the next tap (earlier by a stride) the pixel after it. Taps outside
/// of the window are zero.
struct Taps {
  std::int64_t low = 0, high = 0;  // offsets of pixels, 0 among them or after them
  std::int64_t first = 0;          // tap that meets `low`

  std::int64_t count() const { return high - low + 1; }
};

/// One axis of a transposed convolution.
struct SpatialAxis {
  std::int64_t stride = 1, before = 0, window = 1, dilation = 1, image = 1, result = 1;

  std::int64_t reach() const { return (window - 1) * dilation + 1; }

  Taps taps(std::int64_t phase) const {
    // Position q of the phase is pixel q*stride + phase of the result; its tap r reads pixel q + j
    // of the image where r = phase + before - j*stride.
    const std::int64_t high = integer::floor_div(phase + before, stride);
    const std::int64_t low = -integer::floor_div(reach() - 1 - phase - before, stride);
    return from(phase, std::min<std::int64_t>(low, 0),
                std::max(high, std::min<std::int64_t>(low, 0)));
  }

  /// Taps of a phase over the union of the pixels that all phases read.
  Taps all_taps(std::int64_t phase) const {
    Taps all;
    for (std::int64_t other = 0; other < stride; ++other) {
      const Taps taps = this->taps(other);
      all = {.low = std::min(all.low, taps.low), .high = std::max(all.high, taps.high)};
    }
    return from(phase, all.low, all.high);
  }

  /// Number of output positions of each phase: enough for the result, and so many that no
  /// convolution needs negative padding at the end.
  std::int64_t positions() const {
    std::int64_t most = integer::floor_div(result + stride - 1, stride);
    for (std::int64_t phase = 0; phase < stride; ++phase)
      most = std::max(most, image - taps(phase).high);
    return most;
  }

 private:
  Taps from(std::int64_t phase, std::int64_t low, std::int64_t high) const {
    return {.low = low, .high = high, .first = phase + before - low * stride};
  }
};

/// Calls `visit(index)` for every index below `sizes`, the last axis fastest.
template <typename Visit>
void for_each_index(const std::vector<std::int64_t>& sizes, const Visit& visit) {
  std::vector<std::int64_t> index(sizes.size(), 0);
  for (std::int64_t left = product(sizes); left > 0; --left) {
    visit(index);
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      if (++index[axis] < sizes[axis]) break;
      index[axis] = 0;
    }
  }
}

/// Tensors one after the other along the first axis.
Tensor stacked(std::span<const Tensor> parts) {
  std::vector<std::int64_t> shape = parts[0].shape;
  std::size_t bytes = 0;
  shape[0] = 0;
  for (const Tensor& part : parts) {
    shape[0] += part.shape[0];
    bytes += part.bytes.size();
  }
  Buffer buffer(bytes);
  std::byte* to = buffer.data();
  for (const Tensor& part : parts) to = std::copy_n(part.bytes.data(), part.bytes.size(), to);
  return {parts[0].dtype, shape, std::move(buffer).freeze()};
}

/// One convolution: its padding and its weights.
struct Phase {
  Ints pads;
  Tensor weights;

  bool reads_like(const Phase& other) const {
    return pads == other.pads && weights.shape == other.weights.shape;
  }
};

/// Sub-pixel decomposition of one transposed convolution.
class SubpixelConvolution {
 public:
  /// The new result; none if the convolution is left as it is.
  static std::optional<ValueId> write(Rebuilder& out, const GraphNode& node) {
    const Graph& graph = out.from();
    const auto inputs = graph.inputs(node);
    const bool has_bias = inputs.size() > 2 && inputs[2].present();
    const Tensor* weights = graph.constant(inputs[1]);
    const Tensor* bias = has_bias ? graph.constant(inputs[2]) : nullptr;
    const auto image = static_shape(graph.type(inputs[0]));
    const auto result = static_shape(graph.type(graph.outputs(node)[0]));
    if (weights == nullptr || (has_bias && bias == nullptr) || !image || !result ||
        product(*image) == 0 || product(*result) == 0)
      return std::nullopt;
    return SubpixelConvolution(out, node, *weights, bias, *image, *result).written();
  }

 private:
  SubpixelConvolution(Rebuilder& out, const GraphNode& node, const Tensor& weights,
                      const Tensor* bias, const std::vector<std::int64_t>& image,
                      const std::vector<std::int64_t>& result)
      : writer_(out, weights.dtype),
        image_(out.mapped(out.from().inputs(node)[0])),
        weights_(weights),
        bias_(bias),
        batch_(image[0]),
        groups_(node.attrs->i("group")),
        result_(result) {
    const Attrs& attrs = *node.attrs;
    const auto given = [&](const char* name, std::size_t i, std::int64_t otherwise) {
      const Ints& list = attrs.ints(name);
      return list.empty() ? otherwise : list[i];
    };
    const std::string& mode = attrs.s("auto_pad");
    const bool sized = !attrs.ints("output_shape").empty() || mode.starts_with("SAME");
    for (std::size_t i = 0; i + 2 < image.size(); ++i) {
      SpatialAxis along{.stride = given("strides", i, 1),
                        .before = mode == "NOTSET" ? given("pads", i, 0) : 0,
                        .window = weights.shape[2 + i],
                        .dilation = given("dilations", i, 1),
                        .image = image[2 + i],
                        .result = result[2 + i]};
      if (sized) {  // the padding follows from the size
        const std::int64_t full =
            (along.image - 1) * along.stride + given("output_padding", i, 0) + along.reach();
        const std::int64_t total = std::max<std::int64_t>(full - along.result, 0);
        along.before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      }
      axes_.push_back(along);
    }
  }

  std::int64_t filters() const { return weights_.shape[1]; }  // of a group

  std::optional<ValueId> written() {
    if (groups_ == 1 && std::ranges::all_of(axes_, [](const SpatialAxis& axis) {
          return axis.image == 1 && axis.before == 0 && axis.dilation == 1 &&
                 axis.result == axis.window;
        }))
      return matmul_of_pixel();
    std::vector<Phase> phases = this->phases();
    std::vector<ValueId> parts;
    std::int64_t channels = 0;
    // Neighbours that read the same pixels are one convolution; with groups their filters would lie
    // apart.
    for (std::size_t first = 0, last = 0; first < phases.size(); first = last) {
      while (last < phases.size() &&
             (last == first || (groups_ == 1 && phases[first].reads_like(phases[last]))))
        ++last;
      parts.push_back(convolution(std::span(phases).subspan(first, last - first)));
    }
    channels = groups_ * filters() * static_cast<std::int64_t>(phases.size());
    const ValueId together =
        parts.size() == 1 ? parts[0]
                          : writer_.add(op::concat, {{"axis", 1}}, parts, positioned(channels));
    return cropped(interleaved(together, channels));
  }

  /// [batch, channels, positions…]
  std::vector<std::int64_t> positioned(std::int64_t channels) const {
    std::vector<std::int64_t> shape{batch_, channels};
    for (const SpatialAxis& axis : axes_) shape.push_back(axis.positions());
    return shape;
  }

  /// With an input of one pixel, every output pixel has one tap: a matmul.
  ValueId matmul_of_pixel() {
    const std::int64_t channels = weights_.shape[0], taps = product(weights_.shape) / channels;
    const ValueId pixel = writer_.reshaped(image_, {batch_, channels});
    const ValueId matrix = writer_.constant({weights_.dtype, {channels, taps}, weights_.bytes});
    ValueId made = writer_.add(op::matmul, {}, {pixel, matrix}, {batch_, taps});
    made = writer_.reshaped(made, result_);
    if (bias_ == nullptr) return made;
    std::vector<std::int64_t> along(axes_.size() + 1, 1);
    along[0] = filters();
    return writer_.add(op::add, {}, {made, writer_.constant({bias_->dtype, along, bias_->bytes})},
                       result_);
  }

  std::vector<Phase> phases() const {
    std::vector<std::int64_t> strides;
    for (const SpatialAxis& axis : axes_) strides.push_back(axis.stride);
    // With few filters or many phases, one convolution with zeros among its weights beats several
    // small ones.
    const bool widen = groups_ == 1 && (filters() < 16 || product(strides) > 8);
    std::vector<Phase> all;
    for_each_index(strides, [&](const std::vector<std::int64_t>& phase) {
      std::vector<Taps> taps;
      for (std::size_t i = 0; i < axes_.size(); ++i)
        taps.push_back(widen ? axes_[i].all_taps(phase[i]) : axes_[i].taps(phase[i]));
      Phase made = weights_of(taps);
      for (const Taps& along : taps) made.pads.push_back(-along.low);
      for (std::size_t i = 0; i < axes_.size(); ++i)
        made.pads.push_back(axes_[i].positions() - axes_[i].image + taps[i].high);
      all.push_back(std::move(made));
    });
    return all;
  }

  /// Weights [group f, c, …] of a phase out of [group c, f, …] of the whole.
  Phase weights_of(const std::vector<Taps>& taps) const {
    const std::int64_t channels = weights_.shape[0] / groups_;
    const auto width = static_cast<std::size_t>(byte_width(weights_.dtype));
    std::vector<std::int64_t> shape{groups_, filters(), channels};
    for (const Taps& along : taps) shape.push_back(along.count());
    Buffer buffer(static_cast<std::size_t>(product(shape)) * width);
    std::byte* to = buffer.data();
    for_each_index(shape, [&](const std::vector<std::int64_t>& at) {
      std::int64_t from = (at[0] * channels + at[2]) * filters() + at[1];
      bool exists = true;
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        const SpatialAxis& axis = axes_[i];
        const std::int64_t reached = taps[i].first - at[3 + i] * axis.stride;
        exists = exists && reached >= 0 && reached < axis.reach() && reached % axis.dilation == 0;
        from = from * axis.window + reached / axis.dilation;
      }
      if (exists)
        std::copy_n(weights_.bytes.data() + static_cast<std::size_t>(from) * width, width, to);
      to += width;
    });
    shape.erase(shape.begin());
    shape[0] *= groups_;
    return {.pads = {}, .weights = {weights_.dtype, shape, std::move(buffer).freeze()}};
  }

  ValueId convolution(std::span<const Phase> phases) {
    std::vector<Tensor> weights;
    for (const Phase& phase : phases) weights.push_back(phase.weights);
    const Tensor all = stacked(weights);
    std::vector<ValueId> operands{image_, writer_.constant(all)};
    if (bias_ != nullptr)
      operands.push_back(writer_.constant(stacked(std::vector<Tensor>(phases.size(), *bias_))));
    return writer_.add(op::conv, {{"pads", phases[0].pads}, {"group", groups_}},
                       std::move(operands), positioned(all.shape[0]));
  }

  /// [n, phases… f, positions…] as [n, f, positions * phases …].
  ValueId interleaved(ValueId together, std::int64_t channels) {
    const std::size_t spatial = axes_.size();
    std::int64_t phases = 1;
    for (const SpatialAxis& axis : axes_) phases *= axis.stride;
    if (phases == 1) return together;
    std::vector<std::int64_t> spread{batch_, channels / phases}, apart{batch_};
    std::vector<std::int64_t> order{0, static_cast<std::int64_t>(spatial) + 1};
    for (const SpatialAxis& axis : axes_) {
      apart.push_back(axis.stride);
      spread.push_back(axis.positions() * axis.stride);
    }
    apart.push_back(channels / phases);
    for (std::size_t i = 0; i < spatial; ++i) {
      apart.push_back(axes_[i].positions());
      order.insert(order.end(),
                   {static_cast<std::int64_t>(spatial + 2 + i), static_cast<std::int64_t>(1 + i)});
    }
    if (spatial == 2 && axes_[0].stride == axes_[1].stride)
      return writer_.add(op::depth_to_space, {{"blocksize", axes_[0].stride}}, {together}, spread);
    const ValueId transposed = writer_.transposed(writer_.reshaped(together, apart), apart, order);
    return writer_.reshaped(transposed, spread);
  }

  /// Crops the result to its size.
  ValueId cropped(ValueId value) {
    const auto fits = [](const SpatialAxis& axis) {
      return axis.positions() * axis.stride == axis.result;
    };
    if (std::ranges::all_of(axes_, fits)) return value;
    return writer_.add(op::slice, {},
                       {value, writer_.integers(std::vector<std::int64_t>(result_.size(), 0)),
                        writer_.integers(result_)},
                       result_);
  }

  Writer writer_;
  const ValueId image_;
  const Tensor& weights_;
  const Tensor* bias_;
  const std::int64_t batch_, groups_;
  const std::vector<std::int64_t> result_;
  std::vector<SpatialAxis> axes_;
};

}  // namespace

Expected<Graph> conv_transpose_subpixel(const Graph& graph) {
  return with_rewritten(graph, op::conv_transpose, SubpixelConvolution::write);
}

}  // namespace tessera::passes
