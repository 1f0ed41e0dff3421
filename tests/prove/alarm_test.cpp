#include "tessera/prove/alarm.h"

#include <gtest/gtest.h>

namespace tessera::prove {
namespace {

constexpr double kEnough = 60;  // seconds of CPU time in which the flag is surely raised

/// Uses CPU time until the flag is raised, and returns how much.
double used_until(const std::atomic<bool>& flag) {
  const CpuStopwatch watch;
  while (!flag && watch.seconds() < kEnough) continue;
  return watch.seconds();
}

TEST(Alarm, CountsTheTimeThatItsThreadUses) {
  Alarm alarm(nullptr);
  alarm.set(0.05);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // as long as another process runs
  EXPECT_FALSE(*alarm.flag());
  const double used = used_until(*alarm.flag());
  EXPECT_GT(used, 0.04);
  EXPECT_LT(used, kEnough);
}

TEST(Alarm, IsQuietAgainWhenItIsSet) {
  Alarm alarm(nullptr);
  for (int round = 0; round < 3; ++round) {
    alarm.set(0);
    EXPECT_LT(used_until(*alarm.flag()), kEnough);
    alarm.set(1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it looks twice meanwhile
    EXPECT_FALSE(*alarm.flag());
  }
}

TEST(Alarm, IsRaisedByTheOuterFlag) {
  std::atomic<bool> outer = false;
  Alarm alarm(&outer);
  EXPECT_FALSE(alarm.over());
  outer = true;
  EXPECT_TRUE(alarm.over());
  EXPECT_LT(used_until(*alarm.flag()), kEnough);
}

}  // namespace
}  // namespace tessera::prove
