#include <gtest/gtest.h>

#include "tests/codegen/launch_lines.h"

namespace tessera::codegen {
namespace {

void expect_file_as_interpreted(const std::string& file) {
  const std::string path = std::string(TESSERA_SOURCE_DIR "/tests/codegen/kernels/") + file;
  for (const std::string& kernel : launch_line::paragraphs(path)) {
    EXPECT_EQ(launch_line::try_kernel(kernel), "") << kernel;
  }
}

TEST(MoreKernels, OfTheKindsThatLibrariesHave) {
  expect_file_as_interpreted("libraries.tile");
}

TEST(MoreKernels, ThatUsersWriteForGpus) {
  expect_file_as_interpreted("users.tile");
}

TEST(MoreKernels, WithBoundsThatFewThinkOf) {
  expect_file_as_interpreted("edges.tile");
}

TEST(MoreKernels, WithLoopsBranchesAndMemoryInOrder) {
  expect_file_as_interpreted("control.tile");
}

TEST(MoreKernels, WithAccessesThatMeet) {
  expect_file_as_interpreted("order.tile");
}

TEST(MoreKernels, WithSumsThatAreStoredAsTheyAre) {
  expect_file_as_interpreted("sums.tile");
}

TEST(MoreKernels, WithTilesThatAreReadAcrossTheirVectors) {
  expect_file_as_interpreted("turned.tile");
}

TEST(MoreKernels, OfEveryShapeAndView) {
  expect_file_as_interpreted("shapes.tile");
}

TEST(SlowMoreKernels, WithEveryFunctionOfEveryType) {
  expect_file_as_interpreted("numbers.tile");
}

}  // namespace
}  // namespace tessera::codegen
