#include "bench/gpu/benches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/gpu/convolutions.h"
#include "bench/gpu/in_model.h"
#include "bench/gpu/windows.h"
#include "examples/attention.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"

namespace tessera {
namespace {

namespace examples = tile::examples;
using tile::Argument;
using tile::Kernel;

Argument view(DType dtype, tile::Extents shape) {
  return Argument::view(dtype, nullptr, std::move(shape));
}

/// One kernel, each argument in memory of its own.
Bench alone(std::string name, Step step, double amount, const char* unit) {
  Bench bench{std::move(name), {}, {}, amount, unit};
  for (const Argument& argument : step.arguments) {
    if (argument.type.is_number()) continue;
    step.rooms.push_back(bench.rooms.size());
    bench.rooms.push_back({.dtype = argument.type.dtype, .bytes = argument.bytes});
  }
  bench.steps.push_back(std::move(step));
  return bench;
}

Expected<Kernel> copy_kernel(std::int64_t block) {
  return tile::kernel("copy",
                      {tile::view("x", DType::F32, {tile::kDynamic}),
                       tile::view("out", DType::F32, {tile::kDynamic})},
                      [&](const tile::View& x, const tile::View& out) {
                        const tile::Val at = tile::program_id(0) * block;
                        out.store({at}, x.load({at}, {block}));
                      });
}

void add_streams(std::vector<Bench>& all) {
  const std::int64_t n = std::int64_t{1} << 28;
  const auto count = static_cast<double>(n);
  for (const std::int64_t block : {1024, 2048, 4096}) {
    const auto p = Argument::pointer(DType::F32, nullptr, n * 4);
    all.push_back(alone(fmt::format("vector_add f32 2^28 block {}", block),
                        {.kernel = examples::vector_add(DType::F32, block),
                         .arguments = {p, p, p, Argument::integer(DType::I64, n)},
                         .grid = {n / block, 1, 1}},
                        12.0 * count, "GB/s"));
    all.back().computes = "vector_add f32 2^28";
    all.push_back(alone(fmt::format("copy f32 2^28 block {}", block),
                        {.kernel = copy_kernel(block),
                         .arguments = {view(DType::F32, {n}), view(DType::F32, {n})},
                         .grid = {n / block, 1, 1}},
                        8.0 * count, "GB/s"));
    all.back().computes = "copy f32 2^28";
  }
}

/// Ways to spread rows over threads, besides the one that is chosen, for rows of so many bytes.
struct Way {
  std::int64_t least, most;
  int bytes, prefetched, coarsening, registers, packed = 0;
  std::int64_t part_bytes = 0, cached_bytes = 0;
};
constexpr std::int64_t kLong = std::int64_t{1} << 20, kHalf = 112 << 10, kAll = 224 << 10;
constexpr Way kWays[] = {{512, 512, 32, 0, 2, 40, 1},
                         {512, 512, 64, 0, 4, 64},
                         {1024, 1024, 32, 0, 1, 40},
                         {1024, 1024, 32, 0, 1, 40, 1},
                         {1536, 2048, 64, 0, 1, 64},
                         {1536, 2048, 64, 0, 1, 48, 1},
                         {16384, 32768, 64, 0, 1, 64},
                         {65536, 65536, 64, 1, 1, 64},
                         {32768, kLong, 32, 0, 1, 64, 0, 16384, kHalf},
                         {32768, kLong, 64, 0, 1, 64, 0, 32768, kHalf},
                         {32768, kLong, 64, 0, 1, 64, 0, 32768, 0},
                         {32768, kLong, 64, 0, 1, 64, 0, 16384, kHalf / 2},
                         {65536, kLong, 32, 0, 1, 64, 0, 32768, kAll},
                         {65536, kLong, 16, 0, 1, 32, 0, 16384, kHalf},
                         {65536, kLong, 32, 0, 1, 40, 0, 16384, kHalf / 2},
                         {65536, kLong, 64, 0, 1, 64, 0, 65536, kAll}};

/// Rows of powers of two, and of others: of models' widths, without alignment, and longer than a
/// block holds.
void add_rows(std::vector<Bench>& all) {
  const std::int64_t elements = std::int64_t{1} << 27;
  std::vector<std::int64_t> widths = {768,   1000,  3072,  5000,   8001,  12288,
                                      32000, 50257, 65536, 128256, 151936};
  for (std::int64_t columns = 256; columns <= 32768; columns *= 2) widths.push_back(columns);
  for (const std::int64_t columns : widths) {
    const std::int64_t rows = elements / columns;
    const Argument all_rows = view(DType::F16, {rows, columns}), row = view(DType::F16, {columns});
    const auto add = [&](const std::string& before, const std::string& after,
                         const codegen::PtxOptions& options) {
      const double bytes = 4.0 * static_cast<double>(rows * columns);
      all.push_back(alone(fmt::format("{}softmax f16 {}{}", before, columns, after),
                          {.kernel = examples::softmax(DType::F16, columns),
                           .arguments = {all_rows, all_rows},
                           .grid = {rows, 1, 1},
                           .options = options},
                          bytes, "GB/s"));
      all.back().computes = fmt::format("softmax f16 {}", columns);
      all.push_back(
          alone(fmt::format("{}layer_norm f16 {}{}", before, columns, after),
                {.kernel = examples::layer_norm(DType::F16, columns),
                 .arguments = {all_rows, row, row, all_rows, Argument::number(DType::F32, 1e-5)},
                 .grid = {rows, 1, 1},
                 .options = options},
                bytes, "GB/s"));
      all.back().computes = fmt::format("layer_norm f16 {}", columns);
    };
    add("", "", {});
    for (const Way& way : kWays) {
      if (columns * 2 < way.least || columns * 2 > way.most) continue;
      add("other ",
          fmt::format(
              ", {} bytes a thread, {} ahead, {} together, {} registers{}, parts of {}, {} kept",
              way.bytes, way.prefetched, way.coarsening, way.registers,
              way.packed != 0 ? ", packed" : "", way.part_bytes, way.cached_bytes),
          {.bytes_per_thread = way.bytes,
           .prefetched_rows = way.prefetched,
           .coarsening = way.coarsening,
           .registers = way.registers,
           .packed = way.packed,
           .part = way.part_bytes / 2,
           .cached_bytes = way.cached_bytes});
    }
  }
}

void add_products(std::vector<Bench>& all) {
  struct Product {
    std::int64_t m, n, k;
  };
  struct Tiles {
    examples::MatmulTiles tiles;
    int stages;
    bool specialized = true;
  };
  for (const Product& p : {Product{2048, 2048, 2048}, Product{4096, 4096, 4096},
                           Product{8192, 8192, 8192}, Product{8192, 8192, 512}}) {
    for (const auto& [tiles, stages, specialized] :
         {Tiles{{128, 256, 64, 8}, 4}, Tiles{{128, 256, 64, 16}, 4}, Tiles{{128, 128, 64, 8}, 6},
          Tiles{{128, 128, 64, 16}, 6}, Tiles{{64, 256, 64, 16}, 5}, Tiles{{128, 128, 128, 16}, 3},
          Tiles{{128, 256, 64, 8}, 4, false}}) {
      const auto add = [&, &tiles = tiles, &stages = stages, &specialized = specialized](
                           const char* what, Expected<Kernel> kernel, bool bias) {
        std::vector<Argument> arguments = {view(DType::BF16, {p.m, p.k}),
                                           view(DType::BF16, {p.k, p.n})};
        if (bias) arguments.push_back(view(DType::BF16, {p.n}));
        arguments.push_back(view(DType::BF16, {p.m, p.n}));
        all.push_back(alone(
            fmt::format("{} bf16 {}x{}x{} tiles {}x{}x{} by {}, {} stages{}", what, p.m, p.n, p.k,
                        tiles.m, tiles.n, tiles.k, tiles.group, stages,
                        specialized ? "" : ", alike"),
            {.kernel = std::move(kernel),
             .arguments = std::move(arguments),
             .grid = {examples::matmul_programs(p.m, p.n, tiles), 1, 1},
             .options = {.precision = bias ? codegen::Precision::Fast : codegen::Precision::Exact,
                         .stages = stages,
                         .warp_specialization = specialized}},
            2.0 * static_cast<double>(p.m * p.n * p.k), "TFLOP/s"));
        all.back().computes = fmt::format("{} bf16 {}x{}x{}", what, p.m, p.n, p.k);
      };
      add("matmul", examples::matmul(DType::BF16, DType::BF16, tiles), false);
      add("matmul_gelu", examples::matmul_bias(DType::BF16, tiles, examples::Activation::Gelu),
          true);
    }
  }
}

void add_attention(std::vector<Bench>& all) {
  struct Variant {
    const char* name;
    examples::AttentionTiles tiles;
    codegen::PtxOptions options;
  };
  const std::int64_t width = 128;
  for (const std::int64_t length : {1024, 4096, 16384}) {
    const std::int64_t heads = 16 * (16384 / length);
    for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal}) {
      const bool causal = mask == examples::Mask::Causal;
      for (const auto& [name, tiles, options] : {
               Variant{"128x128, 2 stages", {128, 128, examples::Scores::Rows}, {.stages = 2}},
               Variant{"128x128, 3 stages", {128, 128, examples::Scores::Rows}, {.stages = 3}},
               Variant{"128x64, 4 stages", {128, 64, examples::Scores::Rows}, {.stages = 4}},
           }) {
        const Argument qkv = view(DType::BF16, {heads, length, width});
        all.push_back(
            alone(fmt::format("{} bf16 {} tiles {}", causal ? "causal_attention" : "attention",
                              length, name),
                  {.kernel = examples::attention(DType::BF16, width, tiles, mask),
                   .arguments = {qkv, qkv, qkv, qkv},
                   .grid = {tile::cdiv(length, tiles.queries), heads, 1},
                   .options = options},
                  (causal ? 2.0 : 4.0) * static_cast<double>(heads * length * length * width),
                  "TFLOP/s"));
        all.back().computes =
            fmt::format("{} bf16 {}", causal ? "causal_attention" : "attention", length);
      }
    }
  }
}

/// Those that compute the same become neighbours, in the order of the first ones.
void gather(std::vector<Bench>& all) {
  std::map<std::string, std::size_t> first;
  for (const Bench& bench : all) first.try_emplace(bench.computes, first.size());
  std::stable_sort(all.begin(), all.end(), [&](const Bench& a, const Bench& b) {
    return first.at(a.computes) < first.at(b.computes);
  });
}

}  // namespace

std::vector<Bench> benches(const Wants& wants) {
  std::vector<Bench> all;
  add_streams(all);
  add_rows(all);
  add_products(all);
  add_attention(all);
  std::erase_if(all, [&](const Bench& bench) { return !wants(bench.name); });
  gather(all);
  // Compiled as far as kernels, which takes a while.
  for (const Convolution& convolution : convolutions())
    if (wants(convolution.name()))
      all.push_back(
          in_model(convolution.name(), convolution.graph(), convolution.operations(), "TFLOP/s"));
  for (const ChannelWindow& window : channel_windows())
    if (wants(window.name()))
      all.push_back(in_model(window.name(), window.graph(), window.bytes(), "GB/s"));
  return all;
}

}  // namespace tessera
