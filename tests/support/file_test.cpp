#include "tessera/support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
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

TEST_F(File, IntoAMissingFolderIsADiagnostic) {
  const auto done = write_file(folder_ / "missing" / "file", [](std::ostream&) {});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().id, "file-unwritable");
}

}  // namespace
}  // namespace tessera
