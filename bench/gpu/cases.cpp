#include "bench/gpu/cases.h"

#include <fmt/format.h>

#include "bench/gpu/convolutions.h"
#include "bench/gpu/in_model.h"
#include "examples/attention.h"
#include "examples/conv.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"

namespace tessera {
namespace {

namespace examples = tile::examples;
using tile::Kernel;

/// By one seed.
codegen::TestArguments drawn() {
  return codegen::TestArguments(1);
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::F16: return 2e-3;
    case DType::BF16: return 2e-2;
    case DType::F32: return 2e-5;
    case DType::F64: return 1e-10;
    default: return 0;
  }
}

/// The kernels of convolutions as the compiler makes them, each alone: for this GPU tiles are
/// small, for one with few multiprocessors they are large.
void add_convolutions(std::vector<Case>& all) {
  machine::Machine small = machine::cuda();
  small.gpu->multiprocessors = 2;
  for (const Convolution& c :
       {Convolution{.batch = 3, .height = 9, .width = 10, .channels = 64, .filters = 136},
        Convolution{.batch = 2, .height = 12, .width = 8, .channels = 32, .stride = 2},
        Convolution{.batch = 2, .height = 7, .width = 7, .channels = 256, .filters = 128},
        Convolution{.batch = 4, .height = 7, .width = 7, .channels = 512, .window = 1},
        Convolution{.batch = 2, .height = 8, .width = 8, .channels = 48, .window = 1, .stride = 2},
        Convolution{.batch = 1, .height = 9, .width = 9, .channels = 32, .dilation = 2},
        Convolution{
            .batch = 1, .height = 20, .width = 20, .channels = 3, .window = 7, .stride = 2}})
    for (const machine::Machine& gpu : {machine::cuda(), small}) {
      const auto draft = plan_of(c.graph(), gpu);
      const std::vector<Step> steps =
          draft ? steps_of(*draft)
                : std::vector<Step>{{.kernel = draft.error(), .arguments = {}, .grid = {}}};
      for (std::size_t i = 0; i < steps.size(); ++i) {
        Case one{.name = fmt::format("{}, kernel {} for {} multiprocessors", c.name(), i + 1,
                                     gpu.gpu->multiprocessors),
                 .kernel = steps[i].kernel,
                 .arguments = drawn(),
                 .grid = steps[i].grid,
                 .tolerance = 4e-2,
                 .options = steps[i].options};
        for (const tile::Argument& argument : steps[i].arguments) {
          const DType dtype = argument.type.dtype;
          if (argument.type.is_view())
            one.arguments.view(dtype, argument.type.shape);
          else
            one.arguments.pointer(dtype, argument.bytes / byte_width(dtype));
        }
        all.push_back(std::move(one));
      }
    }
}

/// Kernels that are timed, as plain as what their results are compared with (gpu_check.cpp), of
/// sizes that the interpreter is done with in time.
void add_plain(std::vector<Case>& all) {
  const auto add = [&](const std::string& name, Expected<Kernel> kernel,
                       codegen::TestArguments arguments, const tile::Grid& grid) {
    all.push_back({.name = "plain " + name,
                   .kernel = std::move(kernel),
                   .arguments = std::move(arguments),
                   .grid = grid,
                   .tolerance = 4e-2,
                   .is_plain = true});
  };
  constexpr DType kType = DType::BF16;
  constexpr std::int64_t kRows = 256, kColumns = 512, kDepth = 320;
  const examples::MatmulTiles tiles{128, 256, 64, 8};
  const tile::Grid programs = {examples::matmul_programs(kRows, kColumns, tiles), 1, 1};
  add("matmul", examples::matmul(kType, kType, tiles),
      drawn()
          .view(kType, {kRows, kDepth})
          .view(kType, {kDepth, kColumns})
          .view(kType, {kRows, kColumns}),
      programs);
  add("matmul gelu", examples::matmul_bias(kType, tiles, examples::Activation::Gelu),
      drawn()
          .view(kType, {kRows, kDepth})
          .view(kType, {kDepth, kColumns})
          .view(kType, {kColumns})
          .view(kType, {kRows, kColumns}),
      programs);
  for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal}) {
    const tile::Extents heads = {2, 384, 128};
    add(mask == examples::Mask::Causal ? "causal_attention" : "attention",
        examples::attention(kType, 128, {128, 128, examples::Scores::Rows}, mask),
        drawn().view(kType, heads).view(kType, heads).view(kType, heads).view(kType, heads),
        {3, 2, 1});
  }
  for (const std::int64_t n : {256, 1000, 32768, 50257})
    add(fmt::format("softmax {}", n), examples::softmax(DType::F16, n),
        drawn().view(DType::F16, {5, n}).view(DType::F16, {5, n}), {5, 1, 1});
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, Expected<Kernel> kernel, codegen::TestArguments arguments,
                       tile::Grid grid, double tolerance) {
    all.push_back({std::move(name), std::move(kernel), std::move(arguments), grid, tolerance});
  };
  constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64,
                              DType::I32, DType::I8,  DType::I64};
  for (const DType dtype : kTypes)
    for (const std::int64_t n : {0, 1, 3, 7, 127, 1024, 4099, 65537})
      add(fmt::format("vector_add {} {}", to_string(dtype), n), examples::vector_add(dtype, 1024),
          drawn().pointer(dtype, n).pointer(dtype, n).pointer(dtype, n).integer(DType::I64, n),
          {tile::cdiv(n, 1024), 1, 1}, 0);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const std::int64_t n : {1, 3, 7, 31, 127, 1000, 1024, 1025, 4096, 8191})
      add(fmt::format("softmax {} {}", to_string(dtype), n), examples::softmax(dtype, n),
          drawn().view(dtype, {5, n}).view(dtype, {5, n}), {5, 1, 1}, tolerance_of(dtype));
    add(fmt::format("softmax {} of many rows", to_string(dtype)), examples::softmax(dtype, 264),
        drawn().view(dtype, {20011, 264}).view(dtype, {20011, 264}), {20011, 1, 1},
        tolerance_of(dtype));
    for (const std::int64_t n : {1, 7, 257, 4099})
      add(fmt::format("online_softmax {} {}", to_string(dtype), n),
          examples::online_softmax(dtype, 256), drawn().view(dtype, {5, n}).view(dtype, {5, n}),
          {5, 1, 1}, tolerance_of(dtype));
    for (const std::int64_t n : {1, 7, 768, 1023})
      add(fmt::format("layer_norm {} {}", to_string(dtype), n), examples::layer_norm(dtype, n),
          drawn()
              .view(dtype, {5, n})
              .view(dtype, {n})
              .view(dtype, {n})
              .view(dtype, {5, n})
              .number(DType::F32, 1e-5),
          {5, 1, 1}, tolerance_of(dtype));
  }
  struct Shape {
    std::int64_t m, n, k;
    examples::MatmulTiles tiles;
  };
  const Shape shapes[] = {{1, 1, 1, {16, 8, 16}},        {3, 7, 5, {16, 16, 16}},
                          {64, 64, 64, {32, 32, 32}},    {33, 65, 127, {32, 32, 32}},
                          {128, 256, 192, {64, 64, 64}}, {200, 136, 72, {64, 128, 32}},
                          {130, 258, 96, {128, 128, 32}}};
  for (const Shape& s : shapes) {
    for (const auto& [dtype, result] :
         {std::pair(DType::F16, DType::F32), std::pair(DType::F16, DType::F16),
          std::pair(DType::BF16, DType::F32), std::pair(DType::I8, DType::I32),
          std::pair(DType::F32, DType::F32)}) {
      add(fmt::format("matmul {}->{} {}x{}x{}", to_string(dtype), to_string(result), s.m, s.n, s.k),
          examples::matmul(dtype, result, s.tiles),
          drawn().view(dtype, {s.m, s.k}).view(dtype, {s.k, s.n}).view(result, {s.m, s.n}),
          {examples::matmul_programs(s.m, s.n, s.tiles), 1, 1}, 4 * tolerance_of(result));
    }
  }
  add("matmul f16->f16 256x512x256 128x256x64",
      examples::matmul(DType::F16, DType::F16, {128, 256, 64, 8}),
      drawn()
          .view(DType::F16, {256, 256})
          .view(DType::F16, {256, 512})
          .view(DType::F16, {256, 512}),
      {4, 1, 1}, 8e-3);
  using Function = tile::Val (*)(const tile::Operand&);
  for (const auto& [name, function] : {std::pair<const char*, Function>("exp", tile::exp),
                                       {"sigmoid", tile::sigmoid},
                                       {"tanh", tile::tanh},
                                       {"rsqrt", tile::rsqrt},
                                       {"erf", tile::erf}})
    add(fmt::format("function {} f32", name),
        tile::kernel(name,
                     {tile::view("x", DType::F32, {tile::kDynamic}),
                      tile::view("out", DType::F32, {tile::kDynamic})},
                     [function = function](const tile::View& x, const tile::View& out) {
                       const tile::Val at = tile::program_id(0) * 1024;
                       out.store({at}, function(x.load({at}, {1024}) * 4.0));
                     }),
        drawn().view(DType::F32, {65536}).view(DType::F32, {65536}), {64, 1, 1}, 5e-7);
  using examples::Activation;
  for (const auto& [name, activation] :
       {std::pair("bias", Activation::Identity), std::pair("relu", Activation::Relu),
        std::pair("gelu", Activation::Gelu), std::pair("silu", Activation::Silu)})
    for (const auto& [dtype, tiles] :
         {std::pair(DType::BF16, examples::MatmulTiles{128, 128, 64, 8}),
          std::pair(DType::F16, examples::MatmulTiles{128, 256, 64, 8}),
          std::pair(DType::F16, examples::MatmulTiles{64, 256, 64, 8})})
      for (const std::int64_t columns : {512, 389})
        add(fmt::format("matmul {} {} 300x{}x128 {}x{}", name, to_string(dtype), columns, tiles.m,
                        tiles.n),
            examples::matmul_bias(dtype, tiles, activation),
            drawn()
                .view(dtype, {300, 128})
                .view(dtype, {128, columns})
                .view(dtype, {columns})
                .view(dtype, {300, columns}),
            {examples::matmul_programs(300, columns, tiles), 1, 1}, 4 * tolerance_of(dtype));
  for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
    for (const std::int64_t length : {64, 100, 257})
      add(fmt::format("attention f16 {} {}", length,
                      mask == examples::Mask::Causal ? "causal" : ""),
          examples::attention(DType::F16, 64, {64, 64}, mask),
          drawn()
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64})
              .view(DType::F16, {2, length, 64}),
          {tile::cdiv(length, 64), 2, 1}, 4e-3);
  for (const auto& [dtype, width] : {std::pair(DType::F16, 64), std::pair(DType::BF16, 128)})
    for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
      for (const std::int64_t length : {64, 100, 257, 400})
        add(fmt::format("attention by rows {} {} {} {}", to_string(dtype), width, length,
                        mask == examples::Mask::Causal ? "causal" : ""),
            examples::attention(dtype, width, {128, 64, examples::Scores::Rows}, mask),
            drawn()
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width})
                .view(dtype, {2, length, width}),
            {tile::cdiv(length, 128), 2, 1}, dtype == DType::F16 ? 4e-3 : 4e-2);
  for (const auto& [pixels, filters] : {std::pair(64, 64), std::pair(128, 128), std::pair(256, 128),
                                        std::pair(128, 256), std::pair(64, 128)}) {
    struct Window {
      std::int64_t size, stride, channels;
    };
    for (const auto& [window, stride, channels] :
         {Window{3, 1, 128}, Window{3, 1, 40}, Window{3, 2, 24}, Window{1, 1, 128},
          Window{1, 2, 3}}) {
      const std::int64_t all = channels == 128 ? 2 * filters : 72;
      const tile::Extents out = {3, 5, 6, all};
      const examples::ConvTiles tiles = examples::conv_tiles(out, pixels, filters, 64);
      const examples::ConvWindow how = {window, window, stride, window / 2, channels, all};
      add(fmt::format("conv f16 {}x{} stride {} {} to {} by {} pixels", window, window, stride,
                      channels, all, pixels),
          examples::conv(DType::F16, how, tiles, examples::AfterConv::BiasRelu),
          drawn()
              .view(DType::F16, examples::conv_image(out, how, tiles))
              .view(DType::F16, {window * window, channels, all})
              .view(DType::F16, {all})
              .view(DType::F16, out),
          {examples::conv_programs(out, tiles), 1, 1}, 4e-2);
    }
  }
  add_convolutions(all);
  add_plain(all);
  for (const std::int64_t n : {1, 1000, 4097})
    add(fmt::format("histogram {}", n), examples::histogram(256),
        drawn()
            .pointer(DType::I32, n)
            .pointer(DType::I32, 100)
            .integer(DType::I64, n)
            .integer(DType::I64, 100),
        {tile::cdiv(n, 256), 1, 1}, 0);
  for (const std::int64_t n : {1, 1000, 4097})
    add(fmt::format("dropout {}", n), examples::dropout(DType::F32, 256),
        drawn()
            .pointer(DType::F32, n)
            .pointer(DType::F32, n)
            .integer(DType::I64, n)
            .number(DType::F32, 0.3)
            .integer(DType::I64, 42),
        {tile::cdiv(n, 256), 1, 1}, 1e-6);
  return all;
}

}  // namespace tessera
