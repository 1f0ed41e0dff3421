#include "tessera/support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <new>
#include <string>

namespace tessera {
namespace {

/// A fresh folder per test, removed afterwards.
class File : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(::testing::TempDir()) / (std::string("tessera_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path written(const std::string& text) const {
    const auto path = folder_ / "file.txt";
    EXPECT_TRUE(write_file(path, [&](std::ostream& out) { out << text; }).has_value());
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(File, ComesBackAsWritten) {
  const auto text = read_text(written("two\nlines"));
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text, "two\nlines");
}

TEST_F(File, IsReplacedAsAWhole) {
  written("a longer first text");
  EXPECT_EQ(*read_text(written("second")), "second");
}

TEST_F(File, LeavesNothingElseBehind) {
  written("text");
  const auto entries = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(File, IsNotThereBeforeItIsWhole) {
  const int unnamed = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed >= 0) ::close(unnamed);
  const auto done = write_file(folder_ / "file.txt", [&](std::ostream& out) {
    out << "half" << std::flush;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "file.txt"));
    EXPECT_TRUE(unnamed < 0 || std::filesystem::is_empty(folder_));
  });
  EXPECT_TRUE(done.has_value());
}

TEST_F(File, ThatIsEmptyMapsToNoBytes) {
  const auto bytes = map_file(written(""));
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->size(), 0U);
}

TEST_F(File, StaysMappedWhileASliceLives) {
  Bytes slice;
  {
    const auto bytes = map_file(written("0123456789"));
    ASSERT_TRUE(bytes.has_value());
    slice = bytes->slice(3, 4);
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slice.data()), slice.size()), "3456");
}

TEST_F(File, ThatIsMissingIsADiagnostic) {
  const auto bytes = map_file(folder_ / "missing");
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().id, "file-unreadable");
  EXPECT_EQ(bytes.error().where.file, (folder_ / "missing").string());
}

TEST_F(File, ThatIsAFolderIsADiagnostic) {
  const auto bytes = map_file(folder_);
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().message, "not a regular file");
}

TEST_F(File, LargerThanTheLimitIsADiagnostic) {
  const auto text = read_text(written("0123456789"), 4);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().message, "10 bytes are more than the 4 read here");
}

TEST_F(File, BehindALinkIsReplacedAndTheLinkKept) {
  std::filesystem::create_directories(folder_ / "store");
  const auto link = folder_ / "file.txt", target = folder_ / "store" / "content";
  std::filesystem::create_symlink("store/content", link);
  written("made through a link that led nowhere");
  EXPECT_EQ(*read_text(target), "made through a link that led nowhere");
  written("again");
  EXPECT_EQ(*read_text(target), "again");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(File, KeepsItsPermissions) {
  ::chmod(written("first").c_str(), 0640);
  EXPECT_EQ(std::filesystem::status(written("second")).permissions(),
            static_cast<std::filesystem::perms>(0640));
}

TEST_F(File, MayHaveTheLongestName) {
  const auto path = folder_ / std::string(255, 'n');
  EXPECT_TRUE(write_file(path, [](std::ostream& out) { out << "text"; }).has_value());
  EXPECT_EQ(*read_text(path), "text");
}

TEST_F(File, ThatIsAPipeIsWrittenInto) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(write_file(pipe, [](std::ostream& out) { out << "text"; }).has_value());
  char content[8] = {};
  EXPECT_EQ(::read(reader, content, sizeof content), 4);
  EXPECT_STREQ(content, "text");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(File, OnAFullDeviceIsADiagnostic) {
  const auto done = write_file("/dev/full", [](std::ostream& out) { out << "text"; });
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(File, InPlaceOfASocketOrAFolderIsADiagnostic) {
  const auto path = folder_ / "socket";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  std::ranges::copy(path.string(), address.sun_path);
  const int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(made);
  const auto content = [](std::ostream& out) { out << "text"; };
  EXPECT_EQ(write_file(path, content).error().message, "not a regular file");
  EXPECT_TRUE(std::filesystem::is_socket(path));
  EXPECT_EQ(write_file(folder_, content).error().message, "Is a directory");
}

TEST_F(File, ThatGrowsBeyondALimitLeavesTheOldContent) {
  const auto path = written("old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto done = write_file(path, [](std::ostream& out) { out << std::string(1000, 'x'); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "File too large");
  EXPECT_EQ(*read_text(path), "old");
  const auto entries = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(File, OfAContentThatThrowsLeavesNothingBehind) {
  EXPECT_THROW(
      (void)write_file(folder_ / "file.txt", [](std::ostream&) { throw std::bad_alloc(); }),
      std::bad_alloc);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(File, IntoAMissingFolderIsADiagnostic) {
  const auto done = write_file(folder_ / "missing" / "file", [](std::ostream&) {});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().id, "file-unwritable");
}

}  // namespace
}  // namespace tessera
