#include "bench/gpu/convolutions.h"

#include <fmt/format.h>

#include <array>

#include "tessera/ir/builder.h"

namespace tessera {

Expected<Graph> Convolution::graph() const {
  const std::vector<std::int64_t> shape = {filters, channels, window, window};
  const std::vector<std::uint16_t> zeros(
      static_cast<std::size_t>(filters * channels * window * window));
  GraphBuilder g;
  const Val image = g.input("image", DType::F16, {batch, channels, height, width});
  const Val weights =
      g.constant(Tensor::of(DType::F16, shape, std::span<const std::uint16_t>(zeros)), "weights");
  return g.finish({{"out", g.op("conv", {image, weights},
                                {{"pads", Ints(4, pad())},
                                 {"strides", Ints(2, stride)},
                                 {"dilations", Ints(2, dilation)}})}});
}

std::string Convolution::name() const {
  return fmt::format("conv f16 {}x{}x{}x{} to {} {}x{} stride {} dilation {}", batch, height, width,
                     channels, filters, window, window, stride, dilation);
}

double Convolution::operations() const {
  return 2.0 * static_cast<double>(batch * result(height) * result(width) * filters * channels *
                                   window * window);
}

std::vector<Convolution> convolutions() {
  std::vector<Convolution> all;
  // resnet50: size of the image, channels, filters, window, stride.
  struct Shape {
    std::int64_t size, channels, filters, window, stride;
  };
  for (const Shape& s :
       {Shape{56, 64, 64, 3, 1},    Shape{56, 128, 128, 3, 2},  Shape{28, 128, 128, 3, 1},
        Shape{28, 256, 256, 3, 2},  Shape{14, 256, 256, 3, 1},  Shape{14, 512, 512, 3, 2},
        Shape{7, 512, 512, 3, 1},   Shape{56, 64, 64, 1, 1},    Shape{56, 64, 256, 1, 1},
        Shape{56, 256, 64, 1, 1},   Shape{56, 256, 128, 1, 1},  Shape{28, 128, 512, 1, 1},
        Shape{28, 512, 128, 1, 1},  Shape{28, 512, 256, 1, 1},  Shape{14, 256, 1024, 1, 1},
        Shape{14, 1024, 256, 1, 1}, Shape{7, 512, 2048, 1, 1},  Shape{7, 2048, 512, 1, 1},
        Shape{56, 256, 512, 1, 2},  Shape{28, 512, 1024, 1, 2}, Shape{14, 1024, 2048, 1, 2}})
    all.push_back({.batch = 32,
                   .height = s.size,
                   .width = s.size,
                   .channels = s.channels,
                   .filters = s.filters,
                   .window = s.window,
                   .stride = s.stride});
  const auto add = [&](const Convolution& c) { all.push_back(c); };
  // Of mobilenet, vgg, unet (whose sizes are odd), deeplab, inception; a stem.
  for (const auto& [size, channels, filters] :
       {std::array{112, 32, 16}, {56, 24, 144}, {14, 96, 576}, {14, 576, 96}, {7, 960, 320}})
    add({32, size, size, channels, filters, 1});
  for (const auto& [size, channels, filters] :
       {std::array{224, 64, 64}, {112, 128, 128}, {28, 512, 512}, {14, 512, 512}})
    add({16, size, size, channels, filters, 3});
  for (const auto& [height, width, channels] : {std::array{125, 187, 64}, {63, 47, 256}})
    add({4, height, width, channels, channels, 3});
  add({.batch = 8, .height = 33, .width = 33, .channels = 256, .filters = 256, .dilation = 6});
  add({.batch = 8, .height = 65, .width = 65, .channels = 512, .filters = 256, .dilation = 2});
  add({.height = 35, .width = 35, .channels = 48, .filters = 64, .window = 5});
  add({.height = 57, .width = 57, .channels = 64, .filters = 128, .stride = 2});
  add({.height = 224, .width = 224, .channels = 3, .window = 7, .stride = 2});
  // Of other batches.
  for (const std::int64_t batch : {1, 4, 64}) {
    add({batch, 56, 56, 64, 64, 3});
    add({batch, 14, 14, 256, 256, 3});
    add({batch, 7, 7, 512, 512, 3});
    add({batch, 14, 14, 1024, 256, 1});
    add({batch, 7, 7, 512, 2048, 1});
  }
  return all;
}

}  // namespace tessera
