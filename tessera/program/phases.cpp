#include "tessera/program/phases.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/expr/number.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ops/catalog.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

/// The taps of one phase along one axis: tap `first` of the window meets the pixel `low` beside the
/// one that the phase's position names, the next (earlier by a stride) the one after it.
struct Taps {
  std::int64_t low = 0, count = 0;  // offsets of pixels: low, low + 1, …
  std::int64_t first = 0;           // tap that meets `low`
  std::int64_t after = 0;           // padding behind the image
};

class Axis2 {
 public:
  std::int64_t stride = 1, before = 0, window = 1, image = 1, result = 1;

  std::int64_t positions() const { return result / stride; }

  /// Nothing where the convolution would have to leave out pixels at an edge.
  std::optional<Taps> taps(std::int64_t phase) const {
    // Position q of the phase is pixel q*stride + phase of the result; its tap r reads pixel q + j
    // of the image where r = phase + before - j*stride.
    const std::int64_t high = integer::floor_div(phase + before, stride);
    const std::int64_t low = -integer::floor_div(window - 1 - phase - before, stride);
    Taps taps{.low = low, .count = high - low + 1, .first = phase + before - low * stride};
    if (taps.count < 1 || low > 0) return std::nullopt;
    return padded(taps);
  }

  /// The same for the pixels that any phase reads: some of the taps are none of the window's.
  std::optional<Taps> all_taps(std::int64_t phase) const {
    std::int64_t low = 0, high = 0;
    for (std::int64_t other = 0; other < stride; ++other) {
      const auto taps = this->taps(other);
      if (!taps) return std::nullopt;
      low = std::min(low, taps->low);
      high = std::max(high, taps->low + taps->count - 1);
    }
    return padded({.low = low, .count = high - low + 1, .first = phase + before - low * stride});
  }

 private:
  std::optional<Taps> padded(Taps taps) const {
    taps.after = positions() - image + taps.low + taps.count - 1;
    if (taps.after < 0) return std::nullopt;
    return taps;
  }
};

const OpDef& op(std::string_view name) {
  return *find_op(name);
}

/// Tensors one after the other along the first axis.
Tensor stacked(const std::vector<Tensor>& parts) {
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

/// Weights [f, c, …] of a phase out of [c, f, …] of the whole.
Tensor weights_of(const Tensor& whole, const Taps& rows, const Taps& columns,
                  const std::array<Axis2, 2>& axes) {
  const std::int64_t channels = whole.shape[0], filters = whole.shape[1];
  const auto width = static_cast<std::size_t>(byte_width(whole.dtype));
  const std::vector<std::int64_t> shape{filters, channels, rows.count, columns.count};
  Buffer buffer(static_cast<std::size_t>(*element_count(shape)) * width);
  std::byte* to = buffer.data();
  for (std::int64_t f = 0; f < filters; ++f)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t j = 0; j < rows.count; ++j)
        for (std::int64_t i = 0; i < columns.count; ++i) {
          const std::int64_t r = rows.first - j * axes[0].stride;
          const std::int64_t s = columns.first - i * axes[1].stride;
          const std::int64_t at = ((c * filters + f) * axes[0].window + r) * axes[1].window + s;
          if (r >= 0 && r < axes[0].window && s >= 0 && s < axes[1].window)
            std::copy_n(whole.bytes.data() + static_cast<std::size_t>(at) * width, width, to);
          to += width;
        }
  return {whole.dtype, shape, std::move(buffer).freeze()};
}

ValueId reshaped(Rebuilder& out, ValueId value, DType dtype,
                 const std::vector<std::int64_t>& shape) {
  const Tensor sizes = Tensor::of<std::int64_t>(
      DType::I64, {static_cast<std::int64_t>(shape.size())}, std::span(shape));
  return out.add({.op = &op("reshape"),
                  .attrs = *completed(op("reshape"), {}),
                  .inputs = {value, out.constant(sizes)},
                  .outputs = {Type::tensor(dtype, {shape.begin(), shape.end()})}})[0];
}

/// Of an image of one pixel every pixel of the result meets one tap: a product of matrices.
std::optional<ValueId> product_of_pixel(Rebuilder& out, const GraphNode& node,
                                        const Tensor& weights, std::int64_t batch,
                                        const std::vector<std::int64_t>& result) {
  const auto inputs = out.from().inputs(node);
  const Tensor* bias = nullptr;
  if (inputs.size() > 2 && inputs[2].present()) {
    bias = out.from().constant(inputs[2]);
    if (bias == nullptr) return std::nullopt;
  }
  const DType dtype = weights.dtype;
  const std::int64_t channels = weights.shape[0], filters = weights.shape[1],
                     taps = weights.shape[2] * weights.shape[3];
  const ValueId pixel = reshaped(out, out.mapped(inputs[0]), dtype, {batch, channels});
  const ValueId matrix = out.constant({dtype, {channels, filters * taps}, weights.bytes});
  const Type type = Type::tensor(dtype, {batch, filters * taps});
  ValueId made = out.add({.op = &op("matmul"),
                          .attrs = *completed(op("matmul"), {}),
                          .inputs = {pixel, matrix},
                          .outputs = {type}})[0];
  if (bias != nullptr) {
    const auto width = static_cast<std::size_t>(byte_width(dtype));
    Buffer repeated(static_cast<std::size_t>(filters * taps) * width);
    for (std::int64_t i = 0; i < filters * taps; ++i)
      std::copy_n(bias->bytes.data() + static_cast<std::size_t>(i / taps) * width, width,
                  repeated.data() + static_cast<std::size_t>(i) * width);
    made = out.add(
        {.op = &op("add"),
         .attrs = *completed(op("add"), {}),
         .inputs = {made, out.constant({dtype, {filters * taps}, std::move(repeated).freeze()})},
         .outputs = {type}})[0];
  }
  return reshaped(out, made, dtype, result);
}

std::optional<ValueId> phased(Rebuilder& out, const GraphNode& node) {
  const Graph& graph = out.from();
  const auto inputs = graph.inputs(node);
  const Tensor* weights = graph.constant(inputs[1]);
  const auto image = numbers(graph.type(inputs[0]));
  const auto result = numbers(graph.type(graph.outputs(node)[0]));
  const Attrs& attrs = *node.attrs;
  const Ints &strides = attrs.ints("strides"), &dilations = attrs.ints("dilations"),
             &pads = attrs.ints("pads");
  if (weights == nullptr || !image || !result || image->size() != 4 || attrs.i("group") != 1 ||
      std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; }) ||
      !attrs.ints("output_shape").empty() ||
      (attrs.s("auto_pad") != "NOTSET" && attrs.s("auto_pad") != "VALID"))
    return std::nullopt;
  std::array<Axis2, 2> axes;
  for (std::size_t i = 0; i < 2; ++i) {
    axes[i] = {.stride = strides.empty() ? 1 : strides[i],
               .before = pads.empty() || attrs.s("auto_pad") == "VALID" ? 0 : pads[i],
               .window = weights->shape[2 + i],
               .image = (*image)[2 + i],
               .result = (*result)[2 + i]};
  }
  if (std::ranges::all_of(axes, [](const Axis2& axis) {
        return axis.image == 1 && axis.before == 0 && axis.result == axis.window;
      }))
    return product_of_pixel(out, node, *weights, (*image)[0], *result);
  // depth_to_space knows square blocks.
  const std::int64_t block = axes[0].stride;
  if (axes[1].stride != block ||
      std::ranges::any_of(axes, [&](const Axis2& axis) { return axis.result % block != 0; }))
    return std::nullopt;

  const DType dtype = graph.type(inputs[0]).dtype;
  const std::int64_t filters = weights->shape[1];
  const Dim batch = (*image)[0], height = axes[0].positions(), width = axes[1].positions();
  // With few filters, one convolution with zeros among its weights beats several small ones.
  const bool widen = filters < 16;
  std::vector<Attrs> attrs_of;
  std::vector<Tensor> weights_of_phase;
  for (std::int64_t py = 0; py < block; ++py)
    for (std::int64_t px = 0; px < block; ++px) {
      const auto rows = widen ? axes[0].all_taps(py) : axes[0].taps(py),
                 columns = widen ? axes[1].all_taps(px) : axes[1].taps(px);
      if (!rows || !columns) return std::nullopt;
      const auto conv = completed(
          op("conv"), {{"pads", Ints{-rows->low, -columns->low, rows->after, columns->after}}});
      if (!conv) return std::nullopt;
      attrs_of.push_back(*conv);
      weights_of_phase.push_back(weights_of(*weights, *rows, *columns, axes));
    }
  const auto phases = static_cast<std::int64_t>(attrs_of.size());
  const bool has_bias = inputs.size() > 2 && inputs[2].present();
  const Tensor* bias = has_bias ? graph.constant(inputs[2]) : nullptr;
  const auto convolution = [&](const Attrs& conv, Tensor tensor, std::optional<ValueId> added) {
    const Dim made = tensor.shape[0];
    std::vector<ValueId> operands{out.mapped(inputs[0]), out.constant(std::move(tensor))};
    if (added) operands.push_back(*added);
    return out.add({.op = &op("conv"),
                    .attrs = conv,
                    .inputs = std::move(operands),
                    .outputs = {Type::tensor(dtype, {batch, made, height, width})}})[0];
  };
  // Where all phases read the same pixels, one convolution computes them all.
  const bool alike =
      std::ranges::all_of(attrs_of, [&](const Attrs& a) { return a == attrs_of[0]; }) &&
      std::ranges::all_of(weights_of_phase,
                          [&](const Tensor& t) { return t.shape == weights_of_phase[0].shape; });
  ValueId together;
  if (alike && (!has_bias || bias != nullptr)) {
    std::optional<ValueId> repeated;
    if (has_bias)
      repeated =
          out.constant(stacked(std::vector<Tensor>(static_cast<std::size_t>(phases), *bias)));
    together = convolution(attrs_of[0], stacked(weights_of_phase), repeated);
  } else {
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < attrs_of.size(); ++i)
      parts.push_back(convolution(attrs_of[i], std::move(weights_of_phase[i]),
                                  has_bias ? std::optional(out.mapped(inputs[2])) : std::nullopt));
    const auto concat = completed(op("concat"), {{"axis", 1}});
    if (!concat) return std::nullopt;
    together =
        out.add({.op = &op("concat"),
                 .attrs = *concat,
                 .inputs = parts,
                 .outputs = {Type::tensor(dtype, {batch, filters * phases, height, width})}})[0];
  }
  if (phases == 1) return together;
  const auto spread = completed(op("depth_to_space"), {{"blocksize", block}});
  if (!spread) return std::nullopt;
  return out.add({.op = &op("depth_to_space"),
                  .attrs = *spread,
                  .inputs = {together},
                  .outputs = {graph.type(graph.outputs(node)[0])}})[0];
}

}  // namespace

Expected<Graph> with_phases(const Graph& graph) {
  return rebuild(graph, [](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
    if (node.op->name == "conv_transpose")
      if (const auto made = phased(out, node)) return {*made};
    return out.copy(node);
  });
}

}  // namespace tessera::program
