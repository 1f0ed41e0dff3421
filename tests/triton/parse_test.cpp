#include <fmt/format.h>

#include <array>
#include <limits>

#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

/// A kernel with one block of operations, over a pointer %p, a number %n and a float %x.
std::string function_of(std::string_view body) {
  return "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %n: i32, %x: f32) {\n" +
         std::string(body) + "\n    tt.return\n  }\n}\n";
}

/// The text is refused with this diagnostic, whose message or note contains `part`.
void expect_refused(const std::string& text, std::string_view id, std::string_view part) {
  const auto kernel = kernel_of(text, "bad.ttir");
  ASSERT_FALSE(kernel) << text;
  EXPECT_EQ(kernel.error().id, id) << to_string(kernel.error());
  EXPECT_NE(to_string(kernel.error()).find(part), std::string::npos) << to_string(kernel.error());
}

TEST(TritonParse, EveryFixtureIsLoweredAndPrintedAndReadAgain) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".ttir") continue;
    ++count;
    const tile::Kernel kernel = kernel_at(entry.path());
    const auto valid = tile::verify(kernel);
    EXPECT_TRUE(valid) << entry.path() << ": " << (valid ? "" : to_string(valid.error()));
    const auto again = tile::parse_kernel(tile::to_text(kernel));
    ASSERT_TRUE(again) << entry.path() << ": " << to_string(again.error());
    EXPECT_EQ(tile::to_text(*again), tile::to_text(kernel)) << entry.path();
  }
  EXPECT_GT(count, 30);
}

TEST(TritonParse, DiagnosticsNameTheLineOfThePythonSource) {
  std::string text = text_at(kFixtures / "3.6" / "masked_add.ttir");
  const std::size_t at = text.find("arith.addf");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "arith.nope");
  const auto kernel = kernel_of(text);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().id, "ttir-unsupported");
  EXPECT_EQ(kernel.error().where.file, "kernels.py");
}

TEST(TritonParse, SyntaxErrorsNameTheLine) {
  expect_refused("", "ttir-syntax", "line 1");
  expect_refused("module {", "ttir-syntax", "the text ends here");
  expect_refused("module {\n}", "ttir-syntax", "a tt.func");
  expect_refused("nonsense", "ttir-syntax", "nonsense");
  expect_refused(function_of("    %y = = tt.nothing"), "ttir-syntax", "line 3");
  expect_refused(function_of("    %y = tt.splat %n : i32 -> tensor<4"), "ttir-syntax", "line 4");
  expect_refused(function_of("    %y = tt.splat %n : i32 -> tensor<0xi32>"), "ttir-syntax",
                 "extent");
  expect_refused(function_of("    %y = arith.constant dense<[1, 2> : tensor<2xi32>"), "ttir-syntax",
                 "line 3");
}

TEST(TritonParse, UnsupportedContentIsNamed) {
  expect_refused(function_of("    %y = tt.descriptor_load %p : !tt.tensordesc<tensor<4xf32>>"),
                 "ttir-unsupported", "tt.tensordesc");
  expect_refused(function_of("    %y = tt.fly %x : f32"), "ttir-unsupported", "tt.fly");
  expect_refused(function_of("    %y = arith.constant 1 : i128"), "ttir-unsupported", "i128");
  expect_refused(function_of("    %y = tt.elementwise_inline_asm \"x\" %x : f32 -> f32"),
                 "ttir-unsupported", "inline assembly");
  expect_refused(function_of("    %y = tt.splat %n : i32 -> tensor<67108864x2xi32>"),
                 "ttir-unsupported", "elements");
}

TEST(TritonParse, StructureThatNoCompilerPrintsIsRefused) {
  expect_refused(function_of("    %y = arith.addf %x, %nowhere : f32"), "ttir-structure",
                 "%nowhere is not defined");
  expect_refused(function_of("    %y = arith.addf %x : f32"), "ttir-structure", "operands");
  expect_refused(function_of("    %y = tt.call @nobody(%x) : (f32) -> f32"), "ttir-structure",
                 "callee");
  expect_refused("module {\n  tt.func @k() {\n    tt.return\n  }\n}\n", "ttir-structure", "public");
}

TEST(TritonParse, ListsOfConstantsMixNumbersAndBits) {
  const auto kernel = kernel_of(
      function_of("    %c = arith.constant dense<[1.5, 0xFF800000, 2.0, 0]> : tensor<4xf32>\n"
                  "    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>\n"
                  "    %q = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>\n"
                  "    %r = tt.addptr %q, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>\n"
                  "    tt.store %r, %c : tensor<4x!tt.ptr<f32>>"));
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  std::array<float, 4> memory = {};
  const std::vector<tile::Argument> arguments = {
      tile::Argument::pointer(DType::F32, memory.data(), sizeof memory),
      tile::Argument::integer(DType::I32, 0), tile::Argument::number(DType::F32, 0)};
  ASSERT_TRUE(tile::interpret(*kernel, arguments, {1, 1, 1}));
  EXPECT_EQ(memory, (std::array{1.5F, -std::numeric_limits<float>::infinity(), 2.0F, 0.0F}));
  expect_refused(function_of("    %y = arith.constant 1.5 : i32"), "ttir-structure", "a float");
}

TEST(TritonParse, RecursionIsRefused) {
  expect_refused(
      "module {\n"
      "  tt.func public @k(%n: i32) {\n    %0 = tt.call @f(%n) : (i32) -> i32\n    tt.return\n  }\n"
      "  tt.func private @f(%n: i32) -> i32 {\n    %0 = tt.call @f(%n) : (i32) -> i32\n"
      "    tt.return %0 : i32\n  }\n}\n",
      "ttir-unsupported", "recursion");
}

TEST(TritonParse, LoopsOfBlocksAreRefused) {
  expect_refused(
      "module {\n  tt.func public @k() {\n    cf.br ^bb1\n  ^bb1:\n    cf.br ^bb1\n  }\n}\n",
      "ttir-unsupported", "a loop");
  expect_refused("module {\n  tt.func public @k() {\n    cf.br ^bb7\n  }\n}\n", "ttir-unsupported",
                 "not in the function");
}

TEST(TritonParse, CopiesOfBlocksAreLimited) {
  // Each pair of branches meets again: 2^60 paths.
  std::string text = "module {\n  tt.func public @k(%c: i1) {\n    cf.br ^a0\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format(
        "  ^a{}:\n    cf.cond_br %c, ^b{}, ^c{}\n  ^b{}:\n    cf.br ^a{}\n  ^c{}:\n    cf.br "
        "^a{}\n",
        i, i, i, i, i + 1, i, i + 1);
  expect_refused(text + "  ^a60:\n    tt.return\n  }\n}\n", "ttir-unsupported", "too large");
}

TEST(TritonParse, DepthIsLimited) {
  std::string deep, types = "    %y = tt.splat %n : i32 -> tensor<2x";
  for (int i = 0; i < 5000; ++i) deep += "scf.if %c {\n";
  expect_refused(function_of(deep), "ttir-unsupported", "nested");
  for (int i = 0; i < 5000; ++i) types += "!tt.ptr<";
  expect_refused(function_of(types), "ttir-unsupported", "nested");
}

}  // namespace
}  // namespace tessera::triton
