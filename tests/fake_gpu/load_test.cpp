#include <gtest/gtest.h>

#include "tessera/runtime/cuda/device.h"
#include "tessera/runtime/cuda/gpu_program.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/runtime/copying_program.h"

// Which form of a kernel a device loads.

namespace tessera::runtime::cuda {
namespace {

constexpr const char* kReallocates = "  setmaxnreg.dec.sync.aligned.u32 64;\n  ret;\n";
constexpr const char* kSpills = "  .local .b8 frame[16];\n  ret;\n";

struct Loaded {
  std::int64_t modules = 0, with_reallocation = 0;
  bool operator==(const Loaded&) const = default;
};
/// What loading a kernel of this text gives to the driver.
Loaded loaded(const std::string& text) {
  const FakeCuda before = *fake_cuda();
  auto device = Device::open();
  EXPECT_TRUE(device) << to_string(device.error());
  const auto function = device->load({.text = text, .entry = "kernel"});
  EXPECT_TRUE(function) << to_string(function.error());
  return {fake_cuda()->loaded - before.loaded,
          fake_cuda()->loaded_with_reallocation - before.loaded_with_reallocation};
}

TEST(LoadKernel, ReallocatesRegistersWhereNothingIsInLocalMemory) {
  EXPECT_EQ(loaded(kReallocates), (Loaded{1, 1}));
}

TEST(LoadKernel, DoesNotReallocateRegistersWhereSomeAreSpilled) {
  EXPECT_EQ(loaded(std::string(kReallocates) + kSpills), (Loaded{2, 1}));
}

TEST(LoadKernel, IsLoadedOnceWhereItOnlySpills) {
  EXPECT_EQ(loaded(kSpills), (Loaded{1, 0}));
}

TEST(LoadKernel, WithoutReallocationEveryOtherInstructionIsKept) {
  EXPECT_EQ(without_reallocation("a;\n setmaxnreg.dec.sync.aligned.u32 64;\n b;\n"
                                 " setmaxnreg.inc.sync.aligned.u32 216; c;"),
            "a;\n \n b;\n  c;");
  EXPECT_EQ(without_reallocation("a; b;"), "a; b;");
  EXPECT_FALSE(reallocates_registers("a; b;"));
  EXPECT_FALSE(
      reallocates_registers("\x7f"
                            "ELF setmaxnreg;"));  // machine code
}

/// Modules that the driver is given when a program of one kernel is loaded.
Loaded loaded_by_program(const std::string& text, bool is_whole) {
  const FakeCuda before = *fake_cuda();
  Program made = testing::copying_program({4});
  made.architecture = "sm_90a";
  made.kernels = {{.threads = 128, .is_whole = is_whole}};
  made.image = Bytes::copy(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  auto program = LoadedProgram::load(std::move(made));
  EXPECT_TRUE(program) << to_string(program.error());
  const auto on_gpu = gpu_program(**program, {});
  EXPECT_TRUE(on_gpu) << to_string(on_gpu.error());
  return {fake_cuda()->loaded - before.loaded,
          fake_cuda()->loaded_with_reallocation - before.loaded_with_reallocation};
}

TEST(LoadProgram, LinksKernelsButThoseThatAreWhole) {
  EXPECT_EQ(loaded_by_program(kReallocates, false), (Loaded{1, 0}));
  EXPECT_EQ(loaded_by_program(kReallocates, true), (Loaded{1, 1}));
}

TEST(LoadProgram, DoesNotReallocateRegistersWhereSomeAreSpilled) {
  EXPECT_EQ(loaded_by_program(std::string(kReallocates) + kSpills, true), (Loaded{2, 1}));
}

}  // namespace
}  // namespace tessera::runtime::cuda
