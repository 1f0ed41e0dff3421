#include "bench/gpu/windows.h"

#include <fmt/format.h>

#include "tessera/ir/builder.h"

namespace tessera {

double ChannelWindow::bytes() const {
  return 2.0 * static_cast<double>(batch * channels * (size * size + result() * result()));
}

std::string ChannelWindow::name() const {
  return fmt::format("window {} f16 {}x{}x{}x{} {}x{} stride {}", op, batch, size, size, channels,
                     window, window, stride);
}

Expected<Graph> ChannelWindow::graph() const {
  GraphBuilder g;
  Vals inputs = {g.input("image", DType::F16, {batch, channels, size, size})};
  Attrs attrs = {{"kernel_shape", Ints(2, window)},
                 {"pads", Ints(4, window / 2)},
                 {"strides", Ints(2, stride)}};
  if (op == "conv") {
    const std::vector<std::uint16_t> zeros(static_cast<std::size_t>(channels * window * window));
    inputs.push_back(g.constant(Tensor::of(DType::F16, {channels, 1, window, window},
                                           std::span<const std::uint16_t>(zeros))));
    attrs.set("group", channels);
  }
  return g.finish({{"out", g.op(op, inputs, attrs)}});
}

/// Of resnet50, inception, mobilenet, efficientnet and convnext.
std::vector<ChannelWindow> channel_windows() {
  return {{.size = 112, .stride = 2},
          {.size = 28, .channels = 256},
          {.op = "average_pool", .size = 35, .channels = 288},
          {.op = "average_pool", .size = 57, .channels = 256, .stride = 2},
          {.op = "conv", .size = 112, .channels = 32},
          {.op = "conv", .size = 56, .channels = 144, .stride = 2},
          {.op = "conv", .size = 14, .channels = 576},
          {.op = "conv", .size = 28, .channels = 240, .window = 5},
          {.op = "conv", .size = 28, .channels = 192, .window = 7}};
}

}  // namespace tessera
