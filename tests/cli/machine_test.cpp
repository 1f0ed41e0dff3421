/// `tessera machine` as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;

Outcome tessera(const std::vector<std::string>& arguments) {
  const testing::TemporaryFolder folder;
  return testing::run_command(TESSERA_BINARY, arguments, folder.path());
}

TEST(MachineCommand, PrintsThisComputer) {
  const Outcome outcome = tessera({"machine"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* property : {"cpu ", "cores ", "l1d ", "l2 ", "l3 ", "vectors ", "features "})
    EXPECT_THAT(outcome.out, HasSubstr("\n" + std::string(property)));
}

TEST(MachineCommand, PrintsAProcessorAsJson) {
  const auto machine = nlohmann::json::parse(tessera({"machine", "znver4", "--json"}).out);
  EXPECT_EQ(machine["architecture"], "x86_64");
  EXPECT_EQ(machine["cpu"], "znver4");
  EXPECT_EQ(machine["caches"]["l2"], 1 << 20);
  EXPECT_EQ(machine["vectors"]["bytes"], 64);
  EXPECT_THAT(machine["features"].get<std::vector<std::string>>(),
              ::testing::Contains("avx512bf16"));
}

TEST(MachineCommand, HelpShowsAnExample) {
  EXPECT_THAT(tessera({"machine", "--help"}).out, HasSubstr("Example:\n  tessera machine"));
}

}  // namespace
}  // namespace tessera
