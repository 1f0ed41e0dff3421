#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <tuple>

#include "tessera/runtime/cuda/pinned_pool.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/runtime/copying_program.h"

// Runs of GPU sessions on host memory, over a driver that executes copies as late as it may, or at
// once.

namespace tessera::runtime {
namespace {

using testing::are_reversed;
using testing::copying_program;
using testing::inputs_of;
using testing::tensors_of;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kMegabyte = 1 << 20;
const Sizes kSizes = {4, 64 << 10, 9 * kMegabyte + 52, 0, (64 << 10) + 4, 1000, kMegabyte + 12};
const std::int64_t kLarge = 3;  // of kSizes

std::shared_ptr<const LoadedProgram> loaded(const Sizes& sizes) {
  auto program = LoadedProgram::load(copying_program(sizes));
  EXPECT_TRUE(program) << to_string(program.error());
  return *std::move(program);
}

std::unique_ptr<Session> session_of(const std::shared_ptr<const LoadedProgram>& program,
                                    int threads = 4) {
  auto session = Session::create(program, {.threads = threads});
  EXPECT_TRUE(session) << to_string(session.error());
  return *std::move(session);
}

/// Arguments of a copying program in memory by some allocator.
class Arguments {
 public:
  template <class Allocate>
  Arguments(const Sizes& sizes, unsigned seed, const Allocate& allocate)
      : inputs_(inputs_of(sizes, seed)) {
    for (const auto& input : inputs_) {
      memory_.push_back(allocate(input.size()));
      std::ranges::copy(input, memory_.back().get());
      from_.push_back(memory_.back().get());
    }
    for (std::size_t i = inputs_.size(); i-- > 0;) {
      memory_.push_back(allocate(inputs_[i].size()));
      std::memset(memory_.back().get(), 0x55, inputs_[i].size());
      to_.push_back(memory_.back().get());
    }
  }

  Expected<Done> run(Session& session) const { return session.run(from_, to_); }
  bool is_right() const {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      const auto& wanted = inputs_[inputs_.size() - 1 - i];
      if (!wanted.empty() && std::memcmp(to_[i], wanted.data(), wanted.size()) != 0) return false;
    }
    return true;
  }

 private:
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
};

std::shared_ptr<std::byte> on_the_heap(std::size_t bytes) {
  return {static_cast<std::byte*>(std::aligned_alloc(64, (bytes / 64 + 1) * 64)), std::free};
}

/// Number of threads, and whether copies are executed at once.
class HostData : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    EXPECT_EQ(fake().locked_bytes, 0);
    EXPECT_EQ(fake().device_bytes, 0);
    fake() = {.is_eager = std::get<1>(GetParam()) ? 1 : 0};
  }
  void TearDown() override {
    EXPECT_EQ(fake().unlocked_in_flight, 0);
    EXPECT_EQ(fake().locked_bytes, 0);
    EXPECT_EQ(fake().device_bytes, 0);
  }
  static int threads() { return std::get<0>(GetParam()); }
  static FakeCuda& fake() { return *fake_cuda(); }
  static std::int64_t pageable() { return fake().sent_pageable + fake().fetched_pageable; }
};

TEST_P(HostData, TensorsGoThroughPinnedMemory) {
  const auto session = session_of(loaded(kSizes), threads());
  std::vector<std::vector<Datum>> kept;
  for (unsigned seed = 0; seed < 4; ++seed) {
    auto outputs = session->run(tensors_of(inputs_of(kSizes, seed), seed));
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    kept.push_back(*std::move(outputs));
  }
  // Results stay what they are while others are made.
  for (unsigned seed = 0; seed < 4; ++seed)
    EXPECT_TRUE(are_reversed(inputs_of(kSizes, seed), kept[seed])) << seed;
  EXPECT_EQ(pageable(), 0);
}

TEST_P(HostData, ResultsOutliveTheSession) {
  std::vector<Datum> outputs;
  {
    const auto session = session_of(loaded(kSizes), threads());
    outputs = *session->run(tensors_of(inputs_of(kSizes, 5)));
    EXPECT_GT(fake().locked_bytes, 0);
  }
  EXPECT_EQ(fake().locked_bytes, 0);
  EXPECT_TRUE(are_reversed(inputs_of(kSizes, 5), outputs));
}

TEST_P(HostData, MemoryOfTheSessionIsNotStaged) {
  const auto session = session_of(loaded(kSizes), threads());
  const Arguments arguments(kSizes, 6,
                            [&](std::size_t bytes) { return session->host_memory(bytes); });
  const auto done = arguments.run(*session);
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_TRUE(arguments.is_right());
  EXPECT_EQ(fake().sent, kLarge + 1);  // the small ones are one
  EXPECT_EQ(fake().fetched, kLarge + 1);
  EXPECT_EQ(pageable(), 0);
}

TEST_P(HostData, OtherMemoryIsStaged) {
  const auto session = session_of(loaded(kSizes), threads());
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Arguments arguments(kSizes, seed, on_the_heap);
    const auto done = arguments.run(*session);
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_TRUE(arguments.is_right()) << seed;
  }
  EXPECT_EQ(pageable(), 0);
  EXPECT_GT(fake().sent, 3 * (kLarge + 1));
}

TEST_P(HostData, MemoryThatOthersHavePinnedIsNotStagedIfAllOfItIs) {
  const Sizes sizes = {4 * kMegabyte};
  const auto session = session_of(loaded(sizes), threads());
  for (const std::int64_t locked : {4 * kMegabyte, 2 * kMegabyte}) {
    std::vector<std::byte*> locked_here;
    const Arguments arguments(sizes, 8, [&](std::size_t bytes) {
      auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
      EXPECT_TRUE(fake_cuda_lock(memory, static_cast<std::size_t>(locked)));
      locked_here.push_back(memory);
      return std::shared_ptr<std::byte>(memory, std::free);
    });
    fake().sent = fake().fetched = 0;
    ASSERT_TRUE(arguments.run(*session));
    EXPECT_TRUE(arguments.is_right());
    EXPECT_EQ(fake().sent == 1, locked == sizes[0]);
    EXPECT_EQ(fake().fetched == 1, locked == sizes[0]);
    for (std::byte* const memory : locked_here) fake_cuda_unlock(memory);
  }
  EXPECT_EQ(pageable(), 0);
}

TEST_P(HostData, WithoutPinnedMemoryTheDriverStages) {
  fake().refuses_to_lock = 1;
  const auto session = session_of(loaded(kSizes), threads());
  for (unsigned seed = 0; seed < 2; ++seed) {
    const auto outputs = session->run(tensors_of(inputs_of(kSizes, seed)));
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    EXPECT_TRUE(are_reversed(inputs_of(kSizes, seed), *outputs));
  }
  EXPECT_EQ(pageable(), 4 * (kLarge + 1));
}

TEST_P(HostData, PinnedMemoryDoesNotGrowWithTheNumberOfRuns) {
  const auto session = session_of(loaded(kSizes), threads());
  const std::vector<Datum> inputs = tensors_of(inputs_of(kSizes, 1));
  ASSERT_TRUE(session->run(inputs));
  const std::int64_t locked = fake().locked_bytes, locks = fake().locks;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(session->run(inputs));
  EXPECT_EQ(fake().locked_bytes, locked);
  EXPECT_EQ(fake().locks, locks);
}

TEST_P(HostData, AFailedRunLeavesNoCopyBehind) {
  const Sizes sizes = {4, 5 * kMegabyte, (64 << 10) + 4, 1000};
  const auto session = session_of(loaded(sizes), threads());
  const auto wanted = inputs_of(sizes, 3);
  const auto tensors = tensors_of(wanted);
  for (int transfers = 0; transfers < 24; ++transfers) {
    const auto pinned = [&](std::size_t bytes) { return session->host_memory(bytes); };
    for (const bool is_pinned : {false, true}) {
      const Arguments arguments =
          is_pinned ? Arguments(sizes, 1, pinned) : Arguments(sizes, 2, on_the_heap);
      fake().fails_after = transfers;
      const auto done = arguments.run(*session);
      fake().fails_after = -1;
      EXPECT_EQ(!done, transfers < (is_pinned ? 6 : 24)) << transfers;
      EXPECT_TRUE(done || done.error().id == "cuda-error");
    }
    const auto outputs = session->run(tensors);
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    EXPECT_TRUE(are_reversed(wanted, *outputs)) << transfers;
  }
}

TEST_P(HostData, SessionsInThreads) {
  const auto program = loaded(kSizes);
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      const auto session = session_of(program, threads());
      for (unsigned i = 0; i < 3; ++i) {
        const auto inputs = inputs_of(kSizes, 10 * caller + i);
        const auto outputs = session->run(tensors_of(inputs));
        EXPECT_TRUE(outputs && are_reversed(inputs, *outputs));
        const Arguments heap(kSizes, 10 * caller + i, on_the_heap);
        EXPECT_TRUE(heap.run(*session) && heap.is_right());
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_P(HostData, AChildOfForkReadsResults) {
  const auto session = session_of(loaded(kSizes), threads());
  const auto inputs = inputs_of(kSizes, 9);
  auto outputs = session->run(tensors_of(inputs));
  ASSERT_TRUE(outputs);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = are_reversed(inputs, *outputs);
    outputs->clear();
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(HostData, OutputsThatAreLargerThanInputs) {
  // The ring has to grow while inputs are read from it.
  constexpr std::int64_t kInput = 100 << 10, kTimes = 100;
  testing::Maker maker;
  maker.program.architecture = "sm_80";
  maker.program.image = {};
  maker.program.kernels = {};
  const auto x = maker.input("x", {kInput}, DType::U8);
  const auto y = maker.output("y", {kTimes * kInput}, DType::U8);
  for (std::int64_t i = 0; i < kTimes; ++i)
    maker.add(step::Copy{.from = {x}, .to = {y, i * kInput}, .bytes = kInput});
  const auto session = session_of(*LoadedProgram::load(maker.program), threads());
  for (unsigned seed = 0; seed < 3; ++seed) {
    const auto input = testing::bytes_of(kInput, seed);
    const auto from = on_the_heap(kInput), to = on_the_heap(kTimes * kInput);
    std::ranges::copy(input, from.get());
    const std::byte* const inputs[] = {from.get()};
    std::byte* const outputs[] = {to.get()};
    const auto done = session->run(inputs, outputs);
    ASSERT_TRUE(done) << to_string(done.error());
    for (std::int64_t i = 0; i < kTimes; ++i)
      ASSERT_EQ(std::memcmp(to.get() + i * kInput, input.data(), kInput), 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, HostData,
                         ::testing::Combine(::testing::Values(1, 4), ::testing::Bool()));

}  // namespace
}  // namespace tessera::runtime
