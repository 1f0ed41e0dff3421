/// Where the command line writes to, and what becomes of it where that is impossible.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Outcome;

class Files : public testing::TesseraCommand {
 protected:
  Files() { folder.write("m.tessera", "graph(x: f32[2]) { y = relu(x)  return y }"); }

  /// A command line of the shell, where $TESSERA is the binary.
  Outcome shell(const std::string& line) const {
    return testing::run_command("/bin/sh", {"-c", "TESSERA='" TESSERA_BINARY "'; " + line},
                                folder.path());
  }
};

TEST_F(Files, ADeviceIsWrittenIntoAndNotReplaced) {
  EXPECT_EQ(tessera({"compile", "m.tessera", "-o", "/dev/null"}).exit_code, kSuccess);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const Outcome full = tessera({"compile", "m.tessera", "-o", "/dev/full"});
  EXPECT_EQ(full.exit_code, kBadInput);
  EXPECT_THAT(full.err, HasSubstr("/dev/full: error[file-unwritable]: No space left on device"));
}

TEST_F(Files, ALinkIsWrittenThrough) {
  std::filesystem::create_symlink("target.onnx", folder.path() / "link.onnx");
  ASSERT_EQ(tessera({"convert", "m.tessera", "link.onnx"}).exit_code, kSuccess);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link.onnx"));
  EXPECT_EQ(tessera({"inspect", "target.onnx"}).exit_code, kSuccess);
}

TEST_F(Files, AFullStandardOutputIsAnError) {
  for (const char* command :
       {"--help", "--version", "run --help", "inspect m.tessera", "inspect m.tessera --json",
        "inspect missing.onnx --json", "run m.tessera --fill sin",
        "run m.tessera --fill sin --json", "compile m.tessera -o m.tsr", "operators", "machine",
        "rules list", "kernel list"}) {
    const Outcome full = shell("$TESSERA " + std::string(command) + " >/dev/full");
    EXPECT_EQ(full.exit_code, kBadInput) << command;
    EXPECT_THAT(full.err,
                HasSubstr("standard output: error[output-unwritable]: No space left on device\n"))
        << command;
  }
}

TEST_F(Files, AClosedStandardOutputIsAnErrorAndNoFile) {
  for (const char* command :
       {"--help", "run m.tessera --fill sin --save out", "operators --json"}) {
    const Outcome closed = shell("$TESSERA " + std::string(command) + " >&-");
    EXPECT_EQ(closed.exit_code, kBadInput) << command;
    EXPECT_THAT(closed.err,
                HasSubstr("standard output: error[output-unwritable]: Bad file descriptor\n"));
  }
  EXPECT_EQ(shell("$TESSERA convert m.tessera m.onnx <&- >&- 2>&-").exit_code, kBadInput);
  EXPECT_EQ(tessera({"inspect", "m.onnx"}).exit_code, kSuccess);
}

TEST_F(Files, AStandardErrorThatIsLostChangesNoExitCode) {
  for (const char* redirection : {"2>&-", "2>/dev/full"}) {
    const Outcome lost = shell("$TESSERA inspect missing.onnx " + std::string(redirection));
    EXPECT_EQ(lost.exit_code, kBadInput) << redirection;
  }
}

TEST_F(Files, ADefaultCacheThatCannotBeUsedIsAWarning) {
  folder.write("taken", "");
  std::filesystem::create_directory(folder.path() / "open");
  std::filesystem::create_directory(folder.path() / "open" / "tessera");
  const struct {
    const char *environment, *warning;
  } cases[] = {
      {"unset HOME XDG_CACHE_HOME;", "neither XDG_CACHE_HOME nor HOME is an absolute path\n"},
      {"export XDG_CACHE_HOME=$PWD/taken;", "Not a directory\n"},
      {"export XDG_CACHE_HOME=$PWD/open; chmod 755 open/tessera;", "has mode 0755, not 0700\n"},
      {"export XDG_CACHE_HOME=/proc/none;", "No such file or directory\n"},
  };
  for (const auto& [environment, warning] : cases) {
    for (const char* command : {"run m.tessera --fill sin", "profile m.tessera --fill sin"}) {
      const Outcome ran = shell(environment + (" $TESSERA " + std::string(command)));
      EXPECT_EQ(ran.exit_code, kSuccess) << environment << ran.err;
      EXPECT_THAT(ran.err, ::testing::StartsWith("warning: object code is not cached: "));
      EXPECT_THAT(ran.err, ::testing::EndsWith(warning));
      EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    }
    EXPECT_THAT(shell(environment + std::string(" $TESSERA inspect m.tessera")).err, IsEmpty());
  }
}

TEST_F(Files, AnUnusableCacheThatWasAskedForIsAnError) {
  folder.write("taken", "");
  const Outcome outcome = tessera({"run", "m.tessera", "--fill", "sin", "--cache", "taken"});
  EXPECT_EQ(outcome.exit_code, kBadInput);
  EXPECT_THAT(outcome.err, HasSubstr("error[cache-unusable]"));
}

}  // namespace
}  // namespace tessera
