#include "tessera/runtime/object_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Cache : public ::testing::Test {
 protected:
  Cache() {
    std::string name = (fs::temp_directory_path() / "tessera-cache-XXXXXX").string();
    base_ = mkdtemp(name.data());
  }
  ~Cache() override { fs::remove_all(base_); }

  fs::path folder() const { return base_ / "cache"; }
  ObjectCache cache() const {
    auto opened = ObjectCache::open(folder());
    EXPECT_TRUE(opened.has_value());
    return *std::move(opened);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder())) files.push_back(entry.path());
    return files;
  }
  fs::path only_entry() const {
    const auto files = entries();
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }

  fs::path base_;
};

void expect_unsafe(const fs::path& folder, const std::string& message) {
  const auto opened = ObjectCache::open(folder);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().id, "cache-unsafe");
  EXPECT_EQ(opened.error().message, message);
}

TEST_F(Cache, FindsWhatWasStored) {
  const ObjectCache cache = this->cache();
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.store("key", bytes_of("object"));
  cache.store("other key", bytes_of(""));
  EXPECT_EQ(cache.find("key"), bytes_of("object"));
  EXPECT_EQ(cache.find("other key"), bytes_of(""));
  EXPECT_EQ(cache.find("third key"), std::nullopt);
  EXPECT_EQ(this->cache().find("key"), bytes_of("object"));
}

TEST_F(Cache, ASecondStoreReplacesTheFirst) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("first, which is longer"));
  cache.store("key", bytes_of("second"));
  EXPECT_EQ(cache.find("key"), bytes_of("second"));
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(Cache, TheFolderIsMadeForItsUserAlone) {
  cache().store("key", bytes_of("object"));
  struct stat status {};
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(only_entry().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0u);
}

TEST_F(Cache, MissingParentsAreMade) {
  EXPECT_TRUE(ObjectCache::open(base_ / "a" / "b" / "c").has_value());
}

TEST_F(Cache, AnyDamagedByteIsSeen) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("some object"));
  std::ifstream file(only_entry(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const auto put = [&](const std::string& content) {
    std::ofstream(only_entry(), std::ios::binary | std::ios::trunc) << content;
  };
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const char flip : {char(1), char(0x80), char(0xff)}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      put(damaged);
      EXPECT_EQ(cache.find("key"), std::nullopt) << "byte " << i;
    }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    EXPECT_EQ(cache.find("key"), std::nullopt) << "cut to " << size;
  }
  put(whole + '\0');
  EXPECT_EQ(cache.find("key"), std::nullopt) << "a byte more";
  cache.store("key", bytes_of("some object"));
  EXPECT_EQ(cache.find("key"), bytes_of("some object"));
}

TEST_F(Cache, AnEntryOfAnotherKeyIsNotTaken) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("object"));
  const fs::path first = only_entry();
  cache.store("yek", bytes_of("tcejbo"));
  for (const fs::path& file : entries())
    if (file != first) fs::copy_file(file, first, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

TEST_F(Cache, ObjectsAreAligned) {
  const ObjectCache cache = this->cache();
  for (std::size_t size = 0; size < 100; ++size) {
    const std::string key(size, 'k');
    cache.store(key, bytes_of("object"));
    const std::optional<Bytes> object = cache.find_bytes(key);
    ASSERT_TRUE(object.has_value()) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object->data()) % ObjectCache::kAlignment, 0u);
    EXPECT_EQ(object->size(), 6u);
  }
}

TEST_F(Cache, TheLeastRecentlyUsedEntriesAreRemoved) {
  const ObjectCache cache = this->cache();
  for (const char* key : {"first", "second", "third"}) {
    cache.store(key, bytes_of(std::string(1000, 'o')));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the clock of files is coarse
  }
  cache.trim({.bytes = 10000, .entries = 3});
  EXPECT_EQ(entries().size(), 3u);
  EXPECT_TRUE(cache.find("first").has_value());  // used last now
  cache.trim({.bytes = 2500, .entries = 3});
  EXPECT_TRUE(cache.find("first").has_value());
  EXPECT_FALSE(cache.find("second").has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(cache.find("third").has_value());
  cache.trim({.bytes = 10000, .entries = 1});  // "third" was used last
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_TRUE(cache.find("third").has_value());
  cache.trim({.bytes = 0, .entries = 1});
  EXPECT_TRUE(entries().empty());
}

TEST_F(Cache, AFolderThatIsALinkIsRefused) {
  fs::create_directory(base_ / "real");
  fs::permissions(base_ / "real", fs::perms::owner_all);
  fs::create_directory_symlink(base_ / "real", folder());
  expect_unsafe(folder(), "the folder of the cache is a link");
  expect_unsafe(folder().string() + "/", "the folder of the cache is a link");
  expect_unsafe(folder() / ".", "the folder of the cache is a link");
}

TEST_F(Cache, AFolderThatOthersMayEnterIsRefused) {
  for (const mode_t mode : {0777, 0770, 0755, 01700}) {
    fs::create_directory(folder());
    ASSERT_EQ(chmod(folder().c_str(), mode), 0);
    const auto opened = ObjectCache::open(folder());
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().id, "cache-unsafe");
    fs::remove(folder());
  }
}

TEST_F(Cache, AFolderOfAnotherUserIsRefused) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::owner_all);
  if (chown(folder().c_str(), geteuid() + 1, getegid()) != 0)
    GTEST_SKIP() << "only root can give a folder away";
  expect_unsafe(folder(), "the folder of the cache belongs to another user");
}

TEST_F(Cache, AFolderThatBecomesUnsafeIsNotUsed) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("object"));
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.store("other", bytes_of("object"));
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(Cache, AFileIsNoFolder) {
  std::ofstream(folder()) << "text";
  const auto opened = ObjectCache::open(folder());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().id, "cache-unusable");
  EXPECT_EQ(ObjectCache::open("/proc/no/such").error().id, "cache-unusable");
  EXPECT_EQ(ObjectCache::open("").error().id, "cache-unusable");
}

TEST_F(Cache, AnEntryThatIsALinkIsNotReadAndIsReplaced) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("object"));
  const fs::path entry = only_entry();
  fs::rename(entry, base_ / "elsewhere");
  fs::create_symlink(base_ / "elsewhere", entry);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.store("key", bytes_of("new object"));
  EXPECT_FALSE(fs::is_symlink(entry));
  EXPECT_EQ(cache.find("key"), bytes_of("new object"));
}

TEST_F(Cache, ADraftThatIsALinkIsNotWrittenThrough) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("object"));
  std::ofstream(base_ / "victim") << "precious";
  const fs::path draft = only_entry().string() + ".draft";
  for (const bool hard : {false, true}) {
    if (hard)
      fs::create_hard_link(base_ / "victim", draft);
    else
      fs::create_symlink(base_ / "victim", draft);
    cache.store("key", bytes_of("other"));
    std::string content;
    std::ifstream(base_ / "victim") >> content;
    EXPECT_EQ(content, "precious");
    fs::remove(draft);
  }
}

TEST_F(Cache, AFifoInTheWayDoesNotHang) {
  const ObjectCache cache = this->cache();
  cache.store("key", bytes_of("object"));
  const fs::path entry = only_entry();
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.store("key", bytes_of("object"));
  EXPECT_EQ(cache.find("key"), bytes_of("object"));
}

/// An object that shows whether it is whole: which one, and so many letters of that.
std::string object_of_round(int round) {
  return std::to_string(round) + std::string(20000 + 37 * (round % 100), 'a' + round % 26);
}

bool is_whole(const std::vector<std::byte>& object) {
  const std::string text(reinterpret_cast<const char*>(object.data()), object.size());
  return text == object_of_round(std::atoi(text.c_str()));
}

TEST_F(Cache, ThreadsWriteAndReadTheSameEntry) {
  const ObjectCache cache = this->cache();
  std::atomic<int> torn = 0, found = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 100; ++round) {
        cache.store("key", bytes_of(object_of_round(100 * t + round)));
        if (const auto object = cache.find("key")) {
          ++found;
          if (!is_whole(*object)) ++torn;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(found, 0);
  EXPECT_TRUE(cache.find("key").has_value());
}

TEST_F(Cache, KilledWritersLeaveNothingHalf) {
  const ObjectCache cache = this->cache();
  for (int round = 0; round < 40; ++round) {
    std::vector<pid_t> children;
    for (int c = 0; c < 2; ++c) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0)
        for (int i = 0;; ++i) cache.store("key", bytes_of(object_of_round(1000 * c + i % 1000)));
      children.push_back(child);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 137 * round));
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    const auto left = cache.find("key");
    ASSERT_TRUE(!left || is_whole(*left)) << round;
    cache.store("key", bytes_of(object_of_round(round)));
    ASSERT_EQ(cache.find("key"), bytes_of(object_of_round(round))) << round;
  }
  EXPECT_EQ(entries().size(), 1u);
}

}  // namespace
}  // namespace tessera::runtime
