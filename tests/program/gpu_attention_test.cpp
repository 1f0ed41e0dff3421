#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/codegen/ptxas.h"
#include "tests/program/gpu_case.h"

// Attention with producer warps, a pipeline for each view, and the second matmul one tile late. The
// emulator reports accesses outside of the tensors.

namespace tessera::program {
namespace {

using testing::random_f32;

struct Attention {
  std::int64_t queries = 130, keys = 300, width = 64;
  std::int64_t batch = 1, heads = 2, kv_heads = 2;
  std::int64_t values = 0;  // width of the values; 0: the same
  bool is_causal = false;
  const char* dtype = "f16";
  const char* mask = "";  // "added" or "boolean"
};

std::string text_of(const Attention& c) {
  const std::int64_t values = c.values == 0 ? c.width : c.values;
  const auto tensor = [&](std::int64_t rows, std::int64_t columns) {
    return fmt::format("f32[{}, {}, {}]", c.batch, rows, columns);
  };
  const auto cast = [&](const char* name) {
    return fmt::format("cast({}) {{to=\"{}\"}}", name, c.dtype);
  };
  const std::string_view mask = c.mask;
  std::string more, input;
  if (!mask.empty()) {
    more = fmt::format(", m: f32[{}, {}]", c.queries, c.keys);
    input = mask == "added" ? ", " + cast("m") : ", less(m, 0.5)";
  }
  return fmt::format(
      "graph(q: {}, k: {}, v: {}{}) {{ return cast(attention({}, {}, {}{}) {{is_causal={}, "
      "q_num_heads={}, kv_num_heads={}}}) {{to=\"f32\"}} }}",
      tensor(c.queries, c.width * c.heads), tensor(c.keys, c.width * c.kv_heads),
      tensor(c.keys, values * c.kv_heads), more, cast("q"), cast("k"), cast("v"), input,
      c.is_causal ? 1 : 0, c.heads, c.kv_heads);
}

CompileReport expect_right(const Attention& c) {
  const std::string text = text_of(c);
  SCOPED_TRACE(text);
  const std::int64_t values = c.values == 0 ? c.width : c.values;
  std::vector<Tensor> inputs = {random_f32({c.batch, c.queries, c.width * c.heads}, 1),
                                random_f32({c.batch, c.keys, c.width * c.kv_heads}, 2),
                                random_f32({c.batch, c.keys, values * c.kv_heads}, 3)};
  if (*c.mask != '\0') inputs.push_back(random_f32({c.queries, c.keys}, 4));
  const std::size_t given = inputs.size();
  return expect_same_on_gpu(
      {text, std::move(inputs), given, {}, std::string_view(c.dtype) == "f16" ? 1e-2 : 6e-2});
}

bool is_overlapped(const CompileReport& report) {
  return std::ranges::any_of(report.steps, [](const auto& step) {
    return step.strategy.find("overlapped") != std::string::npos;
  });
}

void expect_overlapped(const std::vector<Attention>& all) {
  for (const Attention& c : all) EXPECT_TRUE(is_overlapped(expect_right(c))) << text_of(c);
}

TEST(SlowGpuAttention, OfEveryWidth) {
  for (const std::int64_t width : {32, 64, 80, 96, 128, 160, 192, 256})
    expect_overlapped({{.queries = 70, .keys = 400, .width = width}});
}

TEST(SlowGpuAttention, ToEarlierKeysOfEveryWidth) {
  for (const std::int64_t width : {32, 64, 80, 96, 128, 160, 192, 256})
    expect_overlapped(
        {{.queries = 300, .keys = 400, .width = width, .is_causal = true, .dtype = "bf16"}});
}

TEST(SlowGpuAttention, OfTilesThatAreWhole) {
  expect_overlapped({{.queries = 256, .keys = 384, .width = 96, .is_causal = true},
                     {.queries = 128, .keys = 512, .width = 64},
                     {.queries = 64, .keys = 320, .width = 192, .is_causal = true}});
}

TEST(GpuAttention, OfSeveralHeads) {
  expect_overlapped({{.keys = 400, .width = 96, .heads = 3, .kv_heads = 3, .is_causal = true},
                     {.queries = 70, .keys = 270, .width = 32, .heads = 3, .kv_heads = 1},
                     {.queries = 70, .width = 80, .batch = 2, .heads = 4, .kv_heads = 2}});
}

TEST(SlowGpuAttention, OfManyHeads) {
  expect_overlapped({{.queries = 40, .width = 80, .batch = 3, .heads = 6, .kv_heads = 2},
                     {.width = 64, .batch = 2, .heads = 5, .kv_heads = 5, .is_causal = true},
                     {.queries = 20, .width = 96, .heads = 7, .kv_heads = 7, .is_causal = true}});
}

TEST(SlowGpuAttention, ToMoreKeysOrFewer) {
  expect_overlapped({{.queries = 20, .keys = 700, .width = 128},
                     {.queries = 20, .keys = 700, .width = 96, .is_causal = true},
                     {.queries = 400, .keys = 257, .width = 64, .is_causal = true}});
}

TEST(GpuAttention, WithMasks) {
  for (const char* mask : {"added", "boolean"})
    expect_overlapped({{.queries = 70, .keys = 392, .width = 64, .mask = mask}});
}

TEST(SlowGpuAttention, WithMasks) {
  for (const char* mask : {"added", "boolean"})
    expect_overlapped({{.keys = 384, .width = 32, .is_causal = true, .mask = mask},
                       {.queries = 256, .keys = 384, .width = 64, .mask = mask}});
}

// Rows of masks that are not aligned are loaded element by element, for which registers are short.
TEST(GpuAttention, WithMasksThatAreNotAligned) {
  const CompileReport report =
      expect_right({.queries = 70, .keys = 396, .width = 64, .mask = "added"});
  EXPECT_FALSE(is_overlapped(report));
}

// A loop over one tile would be none.
TEST(GpuAttention, ToFewKeysHasSmallTiles) {
  const CompileReport report = expect_right({.queries = 70, .keys = 270, .width = 80});
  EXPECT_TRUE(std::ranges::any_of(report.steps, [](const auto& step) {
    return step.strategy == "attention, overlapped, 128 x 64";
  }));
}

TEST(SlowGpuAttention, OfValuesOfAnotherWidth) {
  expect_overlapped({{.width = 192, .values = 128, .is_causal = true},
                     {.queries = 70, .width = 64, .values = 160},
                     {.queries = 70, .width = 128, .values = 32}});
}

TEST(GpuAttention, GivenDefaultsAreTheSameProgram) {
  for (const Attention& c : std::vector<Attention>{{.queries = 300, .keys = 400, .width = 64},
                                                   {.queries = 40, .keys = 270, .width = 128}}) {
    const Graph graph = testing::parsed(text_of(c));
    const auto usual = compile(graph, {.machine = machine::cuda()});
    ASSERT_TRUE(usual) << to_string(usual.error());
    EXPECT_TRUE(is_overlapped(usual->report));
    auto book = std::make_shared<ScheduleBook>();
    for (const CompileReport::Step& step : usual->report.steps)
      if (step.group != nullptr && step.group->made->schedule)
        book->entries[step.group->key] = {*step.group->made->schedule, ""};
    const auto again = compile(graph, {.machine = machine::cuda(), .schedules = book});
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(again->report.illegal_schedules.empty());
    EXPECT_TRUE(std::ranges::equal(usual->program.image.view(), again->program.image.view()));
  }
}

/// Log of ptxas for a kernel.
std::string assembled(const std::filesystem::path& ptxas, const char* ptx) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "attention";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "kernel.ptx") << ptx;
  const std::string command =
      fmt::format("'{0}' -arch=sm_90a -v -o '{1}/kernel.cubin' '{1}/kernel.ptx' > '{1}/log' 2>&1",
                  ptxas.string(), folder.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream log(folder / "log");
  return {std::istreambuf_iterator<char>(log), {}};
}

// Kernels with producers are whole programs, which must not use local memory (Device::load).
TEST(SlowGpuAttention, KernelsThatAreWholeDoNotSpill) {
  const auto ptxas = testing::ptxas();
  if (!ptxas) GTEST_SKIP() << "no ptxas on the path";
  int whole = 0;
  for (const Attention& c : std::vector<Attention>{
           {.queries = 8192, .keys = 270, .width = 64, .heads = 7, .kv_heads = 7, .dtype = "bf16"},
           {.queries = 8192, .keys = 270, .width = 80},
           {.queries = 2048, .keys = 2048, .width = 128, .is_causal = true},
           {.queries = 4096, .keys = 4096, .width = 96, .heads = 3, .kv_heads = 3},
           {.queries = 1500, .keys = 1500, .width = 64, .mask = "added"},
           {.queries = 1500, .keys = 1504, .width = 64, .mask = "added"},
           {.queries = 1500, .keys = 1500, .width = 256, .is_causal = true}}) {
    SCOPED_TRACE(text_of(c));
    const auto optimized = passes::optimize(testing::parsed(text_of(c)), {});
    ASSERT_TRUE(optimized);
    const auto compiled = compile(optimized->graph, {.machine = machine::cuda()});
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    const runtime::Program& program = compiled->program;
    for (const runtime::Program::Kernel& kernel : program.kernels) {
      if (!kernel.is_whole) continue;
      ++whole;
      const std::string log =
          assembled(*ptxas, reinterpret_cast<const char*>(program.image.data() + kernel.entry));
      EXPECT_THAT(log, ::testing::HasSubstr(" 0 bytes stack frame, 0 bytes spill stores"));
    }
  }
  EXPECT_EQ(whole, 6);
}

}  // namespace
}  // namespace tessera::program
