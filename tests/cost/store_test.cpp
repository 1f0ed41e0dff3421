#include "tessera/cost/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tessera/support/digest.h"
#include "tests/support/command.h"

namespace tessera::cost {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

class StoreTest : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "deep" / "costs.sqlite"; }

  const testing::TemporaryFolder folder_;
};

Target target() {
  return target_of(*machine::named("neoverse-v1"), 2);
}

Measurement measurement(int i) {
  return {.key = digest(std::to_string(i)),
          .code = digest("code"),
          .what = "conv+relu",
          .strategy = "dot 8x8x8",
          .operations = 1e6 + i,
          .bytes = 1e5,
          .launches = 1,
          .seconds = 1e-4 * (i + 1),
          .best = 0.9e-4 * (i + 1),
          .samples = 12,
          .when = 1'700'000'000 + i};
}

/// The id of the diagnostic that opening gives.
std::string opening_error(const fs::path& file) {
  const auto store = Store::open(file);
  return store ? "" : store.error().id;
}

TEST_F(StoreTest, KeepsWhatWasPut) {
  const Target kept = target();
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store) << to_string(store.error());
    ASSERT_TRUE(store->put(kept));
    ASSERT_TRUE(store->put(kept.name, std::vector{measurement(1), measurement(2)}));
  }
  auto store = Store::open(file());
  ASSERT_TRUE(store);
  EXPECT_EQ(**store->find(kept.name), kept);
  const auto found = store->measurements(kept.name);
  ASSERT_TRUE(found);
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_THAT(*found, ::testing::UnorderedElementsAre(measurement(1), measurement(2)));
}

TEST_F(StoreTest, ANewMeasurementReplacesTheOldOne) {
  auto store = Store::open({});
  ASSERT_TRUE(store && store->put(target()));
  Measurement one = measurement(1);
  ASSERT_TRUE(store->put(target().name, std::vector{one}));
  one.seconds = 7;
  ASSERT_TRUE(store->put(target().name, std::vector{one}));
  EXPECT_THAT(*store->measurements(target().name), ::testing::ElementsAre(one));
}

TEST_F(StoreTest, TargetsDoNotSeeEachOthersMeasurements) {
  auto store = Store::open({});
  const Target other = target_of(*machine::named("sapphirerapids"), 2);
  EXPECT_NE(other.name, target().name);
  EXPECT_NE(target_of(*machine::named("neoverse-v1"), 1).name, target().name);
  ASSERT_TRUE(store->put(target()) && store->put(other));
  ASSERT_TRUE(store->put(other.name, std::vector{measurement(1)}));
  EXPECT_THAT(*store->measurements(target().name), SizeIs(0));
  EXPECT_THAT(*store->targets(), SizeIs(2));
}

TEST_F(StoreTest, BelongsToItsOwnerAlone) {
  ASSERT_EQ(opening_error(file()), "");
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(file().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(StoreTest, AnythingElseIsADiagnostic) {
  const fs::path text = folder_.path() / "text", folder = folder_.path() / "folder";
  std::ofstream(text) << std::string(5000, 'x');
  fs::create_directory(folder);
  EXPECT_EQ(opening_error(text), "store-foreign");
  EXPECT_EQ(opening_error(folder), "store-unusable");
  EXPECT_EQ(opening_error("/proc/no/such"), "store-unusable");
  EXPECT_EQ(Store::open_existing(folder_.path() / "none").error().id, "store-missing");
  EXPECT_FALSE(fs::exists(folder_.path() / "none"));
}

TEST_F(StoreTest, AnotherVersionIsADiagnostic) {
  ASSERT_EQ(opening_error(file()), "");
  constexpr int kUserVersion = 63;  // of SQLite's header: the last byte of the user's version
  std::fstream bytes(file(), std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(kUserVersion).put(9);
  bytes.close();
  EXPECT_EQ(opening_error(file()), "store-version");
}

TEST_F(StoreTest, DamageIsADiagnosticWhereverItIs) {
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store && store->put(target()));
    std::vector<Measurement> many;
    for (int i = 0; i < 200; ++i) many.push_back(measurement(i));
    ASSERT_TRUE(store->put(target().name, many));
  }
  std::ifstream in(file(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 10'000U);
  int complaints = 0;
  const auto look = [&](const std::string& bytes) {
    const fs::path damaged = folder_.path() / "damaged";
    std::ofstream(damaged, std::ios::binary) << bytes;
    const auto store = Store::open(damaged);
    if (!store) {
      EXPECT_THAT(store.error().id, ::testing::StartsWith("store-"));
      ++complaints;
      return;
    }
    // What SQLite cannot see, because it is a value, must still make sense.
    const auto found = store->measurements(target().name);
    const auto targets = store->targets();
    if (!found || !targets) ++complaints;
  };
  for (std::size_t at = 0; at < whole.size(); at += 397) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5a);
    look(bytes);
  }
  for (std::size_t size = 1; size < whole.size(); size += 1511) look(whole.substr(0, size));
  EXPECT_GT(complaints, 10);
}

TEST_F(StoreTest, ManyProcessesWriteAtTheSameTime) {
  constexpr int kProcesses = 4, kEach = 10;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = Store::open(file());
      bool good = store && store->put(target());
      for (int i = 0; good && i < kEach; ++i)
        good = store->put(target().name, std::vector{measurement(p * kEach + i)}).has_value();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(*Store::open(file())->measurements(target().name), SizeIs(kProcesses * kEach));
}

TEST_F(StoreTest, AProcessThatIsKilledLeavesAWholeStore) {
  int written[2];
  ASSERT_EQ(::pipe(written), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = Store::open(file());
    (void)store->put(target());
    for (int i = 0;; ++i) {
      (void)store->put(target().name, std::vector{measurement(2 * i), measurement(2 * i + 1)});
      if (::write(written[1], "", 1) != 1) ::_exit(1);
    }
  }
  ::close(written[1]);
  for (int i = 0; i < 20; ++i) {
    char one = 0;
    EXPECT_EQ(::read(written[0], &one, 1), 1);
  }
  ::kill(child, SIGKILL);  // while it writes more, or between two writes
  ::close(written[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  auto store = Store::open(file());
  ASSERT_TRUE(store) << to_string(store.error());
  const auto found = store->measurements(target().name);
  ASSERT_TRUE(found);
  EXPECT_GE(found->size(), 40U);
  EXPECT_EQ(found->size() % 2, 0U);  // both of a pair or none
  EXPECT_TRUE(store->put(target().name, std::vector{measurement(1'000'000)}));
}

ScheduleMeasurement schedule_measurement(int i) {
  return {.key = digest("group"),
          .schedule = "attention_tile rows=" + std::to_string(i) + " keys=0",
          .seconds = 1e-4,
          .ratio = 0.9,
          .low = 0.8,
          .high = 0.95,
          .samples = 9,
          .when = 1'700'000'000,
          .features = "1 2.5"};
}

TEST_F(StoreTest, KeepsSchedulesAndOneChoiceOfEachGroup) {
  const std::string name = target().name;
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->put(target()));
    ASSERT_TRUE(store->put(name, std::vector{schedule_measurement(1), schedule_measurement(2)}));
    ASSERT_TRUE(store->choose(name, digest("group"), schedule_measurement(1).schedule));
    ASSERT_TRUE(store->choose(name, digest("group"), schedule_measurement(2).schedule));
  }
  auto store = Store::open(file());
  ASSERT_TRUE(store);
  ScheduleMeasurement chosen = schedule_measurement(2);
  chosen.chosen = true;
  EXPECT_EQ(*store->schedules(name), (std::vector{schedule_measurement(1), chosen}));
  EXPECT_EQ(*store->schedules(name, true), std::vector{chosen});
  ASSERT_TRUE(store->choose(name, digest("group"), ""));
  EXPECT_THAT(*store->schedules(name, true), SizeIs(0));
}

}  // namespace
}  // namespace tessera::cost
