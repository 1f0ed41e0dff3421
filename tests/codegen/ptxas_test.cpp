#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "examples/attention.h"
#include "examples/conv.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tests/codegen/ptxas.h"

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Long rows that are kept beside their parameters, and tiles as large as registers are, which fit
/// where some threads copy for the others.
bool fills_registers(const std::string& example) {
  return example.starts_with("layer_norm 8192") || example.starts_with("matmul f16") ||
         example.starts_with("matmul bf16") || example.starts_with("matmul, ") ||
         example == "matmul i8";
}

std::vector<std::pair<std::string, Expected<tile::Kernel>>> all_examples() {
  std::vector<std::pair<std::string, Expected<tile::Kernel>>> all;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const auto add = [&](const std::string& name, Expected<tile::Kernel> kernel) {
      all.emplace_back(fmt::format("{} {}", name, to_string(dtype)), std::move(kernel));
    };
    add("vector_add", examples::vector_add(dtype, 1024));
    for (const std::int64_t width : {257, 1024, 8192}) {
      add(fmt::format("softmax {}", width), examples::softmax(dtype, width));
      add(fmt::format("layer_norm {}", width), examples::layer_norm(dtype, width));
    }
    add("online_softmax", examples::online_softmax(dtype, 256));
    add("dropout", examples::dropout(dtype, 256));
    if (dtype == DType::F32) {
      add("matmul", examples::matmul(dtype, dtype, {64, 64, 32}));
      continue;
    }
    add("matmul", examples::matmul(dtype, dtype, {128, 128, 64, 8}));
    add("matmul, gelu",
        examples::matmul_bias(dtype, {128, 128, 64, 8}, examples::Activation::Gelu));
    add("matmul, silu",
        examples::matmul_bias(dtype, {128, 256, 64, 8}, examples::Activation::Silu));
    add("matmul of small tiles", examples::matmul(dtype, DType::F32, {32, 32, 32}));
    for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
      add(mask == examples::Mask::None ? "attention" : "causal attention",
          examples::attention(dtype, 64, {128, 64, examples::Scores::Rows}, mask));
    add("conv", examples::conv(dtype, {3, 3, 1, 1, 64, 64},
                               examples::conv_tiles({2, 14, 14, 64}, 64, 64, 64),
                               examples::AfterConv::BiasRelu));
  }
  all.emplace_back("histogram", examples::histogram(256));
  all.emplace_back("matmul i8", examples::matmul(DType::I8, DType::I32, {64, 64, 64}));
  return all;
}

TEST(SlowPtxas, TakesAllExamplesWithoutSpills) {
  const auto ptxas = testing::ptxas();
  if (!ptxas) GTEST_SKIP() << "no ptxas on the path";
  const fs::path folder = fs::path(::testing::TempDir()) / "tessera_ptxas";
  fs::create_directories(folder);
  for (const auto& [target, name] :
       {std::pair(PtxTarget::Sm80, "sm_80"), std::pair(PtxTarget::Sm90a, "sm_90a")})
    for (const auto& [what, kernel] : all_examples()) {
      SCOPED_TRACE(fmt::format("{} for {}", what, name));
      ASSERT_TRUE(kernel) << to_string(kernel.error());
      // Exact activations take more registers than their sums leave.
      const Precision precision = what.starts_with("matmul, ") ? Precision::Fast : Precision::Exact;
      for (const auto& [loops, maps] :
           {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
        const auto ptx = ptx_of(
            *kernel, {.target = target, .precision = precision, .persistent = loops, .maps = maps});
        ASSERT_TRUE(ptx) << to_string(ptx.error());
        if (ptx->persistent != loops || ptx->maps.empty() == maps) continue;  // the same text
        std::ofstream(folder / "kernel.ptx") << ptx->text;
        const int status =
            std::system(fmt::format("'{}' -arch={} -v -o '{}' '{}' > '{}' 2>&1", ptxas->string(),
                                    name, (folder / "kernel.cubin").string(),
                                    (folder / "kernel.ptx").string(), (folder / "log").string())
                            .c_str());
        const std::string log = read(folder / "log");
        ASSERT_EQ(status, 0) << log;
        if (fills_registers(what) && !maps) continue;
        // Threads that copy where there are no maps have few registers, and may spill some.
        const std::size_t stores = log.find(" bytes spill stores");
        ASSERT_NE(stores, std::string::npos);
        const int spilled = std::stoi(log.substr(log.rfind(' ', stores - 1)));
        // Attention without warpgroups has all registers in use, and lacks a few where it copies
        // rows that begin at any element.
        const bool full = target == PtxTarget::Sm80 && what.starts_with("attention");
        EXPECT_LE(spilled, full || what.starts_with("matmul, ") ? 40 : 0) << log;
      }
    }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera::codegen
