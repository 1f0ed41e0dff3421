#include <gtest/gtest.h>

#include "tessera/codegen/ptx/ptx.h"
#include "tests/codegen/launch_lines.h"
#include "tests/codegen/ptx_emulator.h"

// The kernels of the files, with every thread of a GPU emulated.

namespace tessera::codegen {
namespace {

/// What who launches may allow, and other GPUs.
const std::vector<PtxOptions>& ways() {
  static const std::vector<PtxOptions> ways = {
      {.persistent = true, .maps = true}, {}, {.target = PtxTarget::Sm80}};
  return ways;
}

/// Tries a paragraph; what went wrong, or nothing.
std::string try_emulated(const std::string& paragraph) {
  const auto kernel = tile::parse_kernel(paragraph);
  if (!kernel) return to_string(kernel.error());
  for (const PtxOptions& way : ways()) {
    const auto compiled = ptx_of(*kernel, way);  // LLVM may not know what to do
    if (!compiled) return to_string(compiled.error());
  }
  const std::string mark = "// launch ";
  for (const std::string& text : launch_line::split(paragraph, "\n")) {
    if (text.rfind(mark, 0) != 0) continue;
    const LaunchLine line = launch_line::parse(text.substr(mark.size()), *kernel);
    std::vector<std::vector<std::byte>> expected, found;
    const auto interpreted = tile::interpret(*kernel, line.place(expected), line.grid);
    if (!interpreted) return text + ": interpreted: " + to_string(interpreted.error());
    for (std::size_t i = 0; i < ways().size(); ++i) {
      const auto emulated = emulate(*kernel, line.place(found), line.grid,
                                    {.ptx = ways()[i], .backwards = i % 2 == 1});
      if (!emulated) return fmt::format("{}: way {}: {}", text, i, to_string(emulated.error()));
      const std::string differs = launch_line::difference(line, expected, found);
      if (!differs.empty()) return fmt::format("{}: way {}: {}", text, i, differs);
    }
  }
  return {};
}

void expect_file_emulated_as_interpreted(const std::string& file) {
  const std::string path = std::string(TESSERA_SOURCE_DIR "/tests/codegen/kernels/") + file;
  for (const std::string& kernel : launch_line::paragraphs(path)) {
    if (kernel.find("// not on a GPU") != std::string::npos) continue;
    EXPECT_EQ(try_emulated(kernel), "") << kernel;
  }
}

TEST(PtxKernels, OfTheKindsThatLibrariesHave) {
  expect_file_emulated_as_interpreted("libraries.tile");
}

TEST(SlowPtxKernels, ThatUsersWrite) {
  expect_file_emulated_as_interpreted("users.tile");
}

TEST(SlowPtxKernels, WithBoundsThatFewThinkOf) {
  expect_file_emulated_as_interpreted("edges.tile");
}

TEST(SlowPtxKernels, WithLoopsBranchesAndMemoryInOrder) {
  expect_file_emulated_as_interpreted("control.tile");
}

TEST(PtxKernels, WithAccessesThatMeet) {
  expect_file_emulated_as_interpreted("order.tile");
}

TEST(SlowPtxKernels, WithSumsThatAreStoredAsTheyAre) {
  expect_file_emulated_as_interpreted("sums.tile");
}

TEST(SlowPtxKernels, WithTilesThatAreReadAcrossTheirVectors) {
  expect_file_emulated_as_interpreted("turned.tile");
}

TEST(SlowPtxKernels, OfEveryShapeAndView) {
  expect_file_emulated_as_interpreted("shapes.tile");
}

}  // namespace
}  // namespace tessera::codegen
