#include "tessera/support/parallel.h"

#include <gtest/gtest.h>

#include <new>

namespace tessera {
namespace {

TEST(OnThreads, RunsTheWorkOnEach) {
  std::atomic<int> runs = 0;
  on_threads(4, [&] { ++runs; });
  EXPECT_EQ(runs, 4);
}

TEST(OnThreads, ThrowsWhatAnyOfThemThrew) {
  std::atomic<int> runs = 0;
  const auto work = [&] {
    if (++runs == 3) throw std::bad_alloc();
  };
  EXPECT_THROW(on_threads(4, work), std::bad_alloc);
  EXPECT_EQ(runs, 4);  // all have ended
}

TEST(InParallel, BeginsNothingAfterAnException) {
  std::atomic<std::size_t> begun = 0;
  const std::function<Expected<int>(std::size_t)> make = [&](std::size_t i) -> Expected<int> {
    ++begun;
    if (i == 2) throw std::bad_alloc();
    return static_cast<int>(i);
  };
  EXPECT_THROW((void)in_parallel<int>(1000, make, {.threads = 2}), std::bad_alloc);
  // With two threads, one may begin all other items before the exception of the first is thrown.
  begun = 0;
  EXPECT_THROW((void)in_parallel<int>(1000, make, {.threads = 1}), std::bad_alloc);
  EXPECT_EQ(begun, 3U);
}

TEST(InParallel, KeepsTheOrder) {
  const std::function<Expected<int>(std::size_t)> make = [](std::size_t i) -> Expected<int> {
    return static_cast<int>(i);
  };
  const auto made = in_parallel<int>(100, make, {.threads = 3});
  ASSERT_TRUE(made);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*made)[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace tessera
