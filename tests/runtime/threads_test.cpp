#include "tessera/runtime/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tessera/support/cpu_time.h"

namespace tessera::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

/// Counts how often each index was run, and by whom.
struct Tally {
  explicit Tally(std::int64_t count) : times(static_cast<std::size_t>(count)) {}
  std::vector<std::atomic<int>> times;
  std::int64_t chunk = 1;
  std::atomic<bool> whole_chunks = true;

  static int run(const void* context, std::int64_t first, std::int64_t last, std::byte*) {
    auto& tally = *static_cast<Tally*>(const_cast<void*>(context));
    const auto end = static_cast<std::int64_t>(tally.times.size());
    if (first % tally.chunk != 0 || (last % tally.chunk != 0 && last != end))
      tally.whole_chunks = false;
    for (std::int64_t i = first; i < last; ++i) ++tally.times[static_cast<std::size_t>(i)];
    return 0;
  }
  bool each_once() const {
    for (const auto& time : times)
      if (time != 1) return false;
    return true;
  }
};

TEST(Threads, RunEveryIndexOnce) {
  Threads threads(4);
  EXPECT_EQ(threads.count(), 4);
  for (const int limit : {1, 2, 3, 4, 9})
    for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000, 12345})
      for (const std::int64_t chunk : {1, 3, 8, 100000}) {
        Tally tally(count);
        tally.chunk = chunk;
        EXPECT_EQ(
            threads.run({.run = Tally::run, .context = &tally, .count = count, .chunk = chunk},
                        limit),
            0);
        EXPECT_TRUE(tally.each_once()) << limit << " threads, " << count << " by " << chunk;
        EXPECT_TRUE(tally.whole_chunks) << limit << " threads, " << count << " by " << chunk;
      }
}

TEST(Threads, RunStepsOfABurstWithGapsBetweenThem) {
  Threads threads(3);
  for (const auto gap : {microseconds(0), microseconds(20), microseconds(300)}) {
    const Threads::Burst burst(threads);
    for (int step = 0; step < 50; ++step) {
      Tally tally(64);
      EXPECT_EQ(threads.run({.run = Tally::run, .context = &tally, .count = 64}, 3), 0);
      EXPECT_TRUE(tally.each_once()) << "step " << step;
      for (const auto start = steady_clock::now(); steady_clock::now() - start < gap;) continue;
    }
  }
}

TEST(Threads, RunAgainAndAgain) {
  Threads threads(3);
  for (int round = 0; round < 5000; ++round) {
    Tally tally(8);
    threads.run({.run = Tally::run, .context = &tally, .count = 8}, 3);
    ASSERT_TRUE(tally.each_once()) << round;
  }
}

TEST(Threads, AnyNumberIsAtLeastOne) {
  for (const int count : {-3, 0, 1}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), 1);
    Tally tally(10);
    threads.run({.run = Tally::run, .context = &tally, .count = 10}, 4);
    EXPECT_TRUE(tally.each_once());
  }
}

TEST(Threads, AFailedPartEndsTheWork) {
  struct Context {
    std::atomic<std::int64_t> run = 0;
  } context;
  const auto fail_late = [](const void* data, std::int64_t first, std::int64_t last, std::byte*) {
    static_cast<Context*>(const_cast<void*>(data))->run += last - first;
    std::this_thread::sleep_for(microseconds(10));
    return first <= 500 && 500 < last ? 7 : 0;
  };
  const Threads::Work work{.run = fail_late, .context = &context, .count = 1'000'000};
  Threads threads(3);
  for (const int limit : {1, 3}) EXPECT_EQ(threads.run(work, limit), 7);
  // The caller takes parts for three threads, and there are no others that could take the rest
  // before the first part fails.
  Threads caller(1);
  context.run = 0;
  EXPECT_EQ(caller.run(work, 3), 7);
  EXPECT_LT(context.run, 1'000'000);
}

TEST(Threads, EachHasScratchOfItsOwn) {
  const auto use = [](const void*, std::int64_t first, std::int64_t, std::byte* scratch) {
    if (reinterpret_cast<std::uintptr_t>(scratch) % 128 != 0) return 1;
    const auto mark = static_cast<int>(first % 251);
    std::memset(scratch, mark, 5000);
    std::this_thread::sleep_for(microseconds(20));
    for (int i = 0; i < 5000; ++i)
      if (scratch[i] != std::byte(mark)) return 2;
    return 0;
  };
  Threads threads(4);
  EXPECT_EQ(threads.run({.run = use, .count = 500, .scratch_bytes = 5000}, 4), 0);
}

TEST(Threads, ScratchIsKeptAndGrows) {
  std::byte* small = Threads::scratch(1000);
  EXPECT_EQ(Threads::scratch(500), small);
  std::byte* large = Threads::scratch(5 << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 128, 0u);
  std::memset(large, 1, 5 << 20);
  EXPECT_EQ(Threads::scratch(1000), large);
}

TEST(Threads, ScratchThatCannotBeIsSaid) {
  Threads threads(2);
  Tally tally(4);
  EXPECT_THROW(threads.run({.run = Tally::run,
                            .context = &tally,
                            .count = 4,
                            .scratch_bytes = std::int64_t{1} << 60},
                           2),
               std::bad_alloc);
  EXPECT_EQ(threads.run({.run = Tally::run, .context = &tally, .count = 4}, 2), 0);
  EXPECT_TRUE(tally.each_once());
}

TEST(Threads, SeveralMayAskAtTheSameTime) {
  Threads threads(3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        Tally tally(20);
        threads.run({.run = Tally::run, .context = &tally, .count = 20}, 3);
        if (!tally.each_once()) ++wrong;
      }
    });
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, WorkMayAskForWork) {
  static Threads threads(3);
  const auto outer = [](const void*, std::int64_t first, std::int64_t last, std::byte*) {
    for (std::int64_t i = first; i < last; ++i) {
      Tally tally(10);
      threads.run({.run = Tally::run, .context = &tally, .count = 10}, 3);
      if (!tally.each_once()) return 1;
    }
    return 0;
  };
  EXPECT_EQ(threads.run({.run = outer, .count = 50}, 3), 0);
}

TEST(Threads, TheChildOfAForkWorksAlone) {
  Threads& threads = process_threads();
  Tally before(100);
  threads.run({.run = Tally::run, .context = &before, .count = 100}, threads.count());
  EXPECT_TRUE(before.each_once());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Tally tally(100);
    threads.run({.run = Tally::run, .context = &tally, .count = 100}, threads.count());
    _exit(tally.each_once() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Threads, SleepWhenIdle) {
  Threads threads(4);
  Tally tally(100);
  threads.run({.run = Tally::run, .context = &tally, .count = 100}, 4);
  const CpuStopwatch watch(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(watch.seconds(), 0.02);
}

}  // namespace
}  // namespace tessera::runtime
