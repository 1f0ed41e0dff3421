/// `tessera verify` and `tessera inspect` of saved programs, as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class ProgramCommand : public testing::TesseraCommand {
 protected:
  ProgramCommand() {
    std::filesystem::copy(
        std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/fuzz/corpus/program_fuzz/kernels.tsr",
        folder.path() / "model.tsr");
  }
};

TEST_F(ProgramCommand, SaysThatAProgramIsWhole) {
  const auto outcome = tessera({"verify", "model.tsr"});
  EXPECT_EQ(outcome.out, "model.tsr: checksums OK\n");
  EXPECT_EQ(outcome.exit_code, kSuccess) << outcome.err;
}

TEST_F(ProgramCommand, FindsDamagedWeights) {
  std::string content = folder.read("model.tsr");
  content.back() = '!';
  folder.write("model.tsr", content);
  const auto outcome = tessera({"verify", "model.tsr"});
  EXPECT_EQ(outcome.err,
            "model.tsr: error[program-malformed]: damaged weights\n  help: copy the file again\n");
  EXPECT_EQ(outcome.exit_code, kBadInput);
}

TEST_F(ProgramCommand, ShowsWhatIsInAProgram) {
  const auto outcome = tessera({"inspect", "model.tsr"});
  EXPECT_THAT(outcome.out, HasSubstr("input   x: i32[4]\noutput  y: i32[4]\n"));
  EXPECT_THAT(outcome.out, HasSubstr("weights         16 B\nmemory          64 B\n"));
  const auto object = json({"inspect", "model.tsr", "--json"});
  EXPECT_EQ(object["steps"]["launch"], 2);
  EXPECT_EQ(object["kernels"], 1);
}

TEST_F(ProgramCommand, ShowsTheStepsOfAProgram) {
  EXPECT_EQ(tessera({"inspect", "model.tsr", "--text"}).out,
            "    0  launch  twice_plus on 2x1x1\n"
            "    1  copy    w -> a, 4 B  # copy\n"
            "    2  launch  twice_plus on 1x1x1\n");
}

}  // namespace
}  // namespace tessera
