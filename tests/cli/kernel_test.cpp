/// `tessera kernel` as a user meets it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace tessera {
namespace {

TEST(KernelCommand, EveryLaunchOfABenchmarkFindsTheSameMemory) {
  // What the first launch leaves would lead the second one out of the memory.
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "k.tile") << "kernel k(x: *i64) {\n"
                                             "  a = load(x)\n"
                                             "  big = gt(a, 1000)\n"
                                             "  if (big) { store(offset(x, a), 7) }\n"
                                             "  store(x, add(mul(a, 1000), 100000000))\n"
                                             "}\n";
  const testing::Outcome outcome = testing::run_command(
      TESSERA_BINARY,
      {"kernel", "bench", "k.tile", "--arg", "x=i64[16] below 7", "--grid", "1", "--json"},
      folder.path());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(nlohmann::json::parse(outcome.out)["launches"], 10);
}

}  // namespace
}  // namespace tessera
