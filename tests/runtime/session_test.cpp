#include "tessera/runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "tessera/runtime/indices.h"
#include "tests/runtime/hand_made.h"

// Counts what is allocated anywhere in this executable.
namespace {
std::atomic<std::size_t> allocations = 0;  // NOLINT: a count for the whole process
}
// Not inlined: the compiler would take malloc and delete for a pair that does not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tessera::runtime {
namespace {

using testing::elements_of;
using testing::Maker;
using testing::numbers;
using Numbers = std::vector<std::int32_t>;

std::unique_ptr<Session> session_of(Program program, const SessionOptions& options = {}) {
  auto loaded = LoadedProgram::load(std::move(program));
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  auto session = Session::create(*loaded, options);
  EXPECT_TRUE(session) << to_string(session.error());
  return *std::move(session);
}

Numbers run(Session& session, const Numbers& input) {
  const std::vector<Datum> inputs = {numbers(input)};
  auto outputs = session.run(inputs);
  EXPECT_TRUE(outputs) << to_string(outputs.error());
  return outputs ? elements_of(outputs->front()) : Numbers{};
}

std::string error_of(Session& session, const std::vector<Datum>& inputs) {
  const auto outputs = session.run(inputs);
  return outputs ? "" : to_string(outputs.error());
}

TEST(Session, RunsKernelsThroughTheArenaAndWeights) {
  Maker maker;
  const auto x = maker.input("x", {4}), w = maker.weights("w", {10, 20}), a = maker.arena("a", {4}),
             y = maker.output("y", {4});
  maker.twice({x}, {a}, 2, 2);
  maker.add(step::Copy{.from = {w, 4}, .to = {a, 8}, .bytes = 4});
  maker.twice({a}, {y}, 1, 4, -3);
  const auto session = session_of(maker.program);
  EXPECT_EQ(run(*session, {1, 2, 3, 4}), (Numbers{3, 7, 37, 15}));
  EXPECT_EQ(run(*session, {0, 0, 0, 0}), (Numbers{-1, -1, 37, -1}));
}

TEST(Session, MovesAddressesWithTheRoundsOfTheInnermostLoop) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  maker.add(step::Loop{.rounds = 4, .end = 3});
  maker.twice({x, 0, 4}, {y, 12, -4}, 1, 1);
  maker.add(step::Loop{.rounds = 0, .end = 3});
  EXPECT_EQ(run(*session_of(maker.program), {1, 2, 3, 4}), (Numbers{9, 7, 5, 3}));
}

TEST(Session, RunsLoopsBackwards) {
  // y[i] = 2 * y[i + 1] + 1, from the last to the first.
  Maker maker;
  const auto x = maker.input("x", {1}), y = maker.output("y", {4});
  maker.add(step::Copy{.from = {x}, .to = {y, 12}, .bytes = 4});
  maker.add(step::Loop{.rounds = 3, .end = 3, .backwards = true});
  maker.twice({y, 4, 4}, {y, 0, 4}, 1, 1);
  EXPECT_EQ(run(*session_of(maker.program), {5}), (Numbers{47, 23, 11, 5}));
}

TEST(Session, NestsLoopsThatEndTogether) {
  Maker maker;
  const auto x = maker.input("x", {1}), y = maker.output("y", {1});
  maker.add(step::Copy{.from = {x}, .to = {y}, .bytes = 4});
  maker.add(step::Loop{.rounds = 3, .end = 5});
  maker.add(step::Jump{.target = 3});
  maker.add(step::Loop{.rounds = 2, .end = 5});
  maker.twice({y}, {y}, 1, 1, 0);
  EXPECT_EQ(run(*session_of(maker.program), {1}), Numbers{64});
}

TEST(Session, TakesABranchByACondition) {
  Maker maker;
  const auto x = maker.input("x", {1}), flag = maker.input("flag", {}, DType::Bool),
             y = maker.output("y", {1});
  maker.add(step::Branch{.condition = flag, .otherwise = 3});
  maker.twice({x}, {y}, 1, 1, 0);
  maker.add(step::Jump{.target = 4});
  maker.twice({x}, {y}, 1, 1, 100);
  const auto session = session_of(maker.program);
  for (const bool taken : {true, false}) {
    const std::vector<Datum> inputs = {numbers({1}),
                                       Tensor::of<bool>(DType::Bool, {}, std::span(&taken, 1))};
    EXPECT_EQ(elements_of(session->run(inputs)->front()), Numbers{taken ? 2 : 102});
  }
}

TEST(Session, SwapsToAFileWithoutAName) {
  Maker maker;
  const auto x = maker.input("x", {4}), a = maker.arena("a", {4}), y = maker.output("y", {4});
  maker.program.swap_bytes = 116;
  maker.twice({x}, {a}, 1, 4);
  maker.add(step::Swap{.memory = {a}, .bytes = 16, .file_offset = 100});
  maker.add(step::Copy{.from = {x}, .to = {a}, .bytes = 16});
  maker.add(step::Swap{.memory = {a}, .bytes = 16, .file_offset = 100, .out = false});
  maker.add(step::Copy{.from = {a}, .to = {y}, .bytes = 16});
  EXPECT_EQ(run(*session_of(maker.program), {1, 2, 3, 4}), (Numbers{3, 5, 7, 9}));
  const auto loaded = LoadedProgram::load(maker.program);
  const auto nowhere = Session::create(*loaded, {.swap_folder = "no_such_folder"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().id, "program-swap");
}

TEST(Session, SwapsNothingWithoutAFile) {
  Maker maker;
  const auto x = maker.input("x", {1}), a = maker.arena("a", {0}), y = maker.output("y", {1});
  const auto f = maker.value("f", Value::Home::File, {0}, DType::I32, 0);
  maker.add(step::Swap{.memory = {a}, .bytes = 0});
  maker.add(step::Copy{.from = {f}, .to = {a}, .bytes = 0});
  maker.twice({x}, {y}, 1, 1);
  EXPECT_EQ(run(*session_of(maker.program), {1}), Numbers{3});
}

TEST(Session, ChecksIndices) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  maker.add(step::CheckIndices{.at = {x}, .count = 4, .low = -5, .high = 4}, {.what = "gather"});
  maker.twice({x}, {y}, 1, 4);
  const auto session = session_of(maker.program);
  EXPECT_EQ(run(*session, {-5, 0, 3, 4}), (Numbers{-9, 1, 7, 9}));
  EXPECT_EQ(error_of(*session, {numbers({0, 1, 5, 7})}),
            "gather: error[eval-index]: index 5 of x is out of range\n"
            "  note: the axis has size 5");
  EXPECT_EQ(error_of(*session, {numbers({0, 1, 2, -6})}).substr(0, 36),
            "gather: error[eval-index]: index -6 ");
}

TEST(Session, ChecksEachIndexOfAPositionByItsOwnAxis) {
  Maker maker;
  const auto x = maker.input("x", {3, 2}), y = maker.output("y", {3, 2});
  maker.add(step::CheckIndices{.at = {x}, .count = 6, .high = 9, .period = 2, .phase = 1});
  maker.twice({x}, {y}, 1, 6);
  const auto session = session_of(maker.program);
  const auto data = [](const Numbers& elements) {
    return Tensor::of<std::int32_t>(DType::I32, {3, 2}, elements);
  };
  EXPECT_EQ(error_of(*session, {data({99, 1, 99, 2, 99, 9})}), "");
  EXPECT_NE(error_of(*session, {data({0, 1, 0, 10, 0, 9})}), "");

  maker.step<step::CheckIndices>(0).stride = 3;  // the columns lie one after the other
  const auto columns = session_of(maker.program);
  EXPECT_EQ(error_of(*columns, {data({99, 99, 99, 1, 2, 9})}), "");
  EXPECT_NE(error_of(*columns, {data({0, 0, 0, 10, 2, 9})}), "");
}

TEST(Session, ChecksIndicesInEveryRoundOfALoop) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  maker.add(step::Loop{.rounds = 4, .end = 3});
  maker.add(step::CheckIndices{.at = {x, 0, 4}, .count = 1, .high = 4});
  maker.twice({x, 0, 4}, {y, 0, 4}, 1, 1);
  const auto session = session_of(maker.program);
  EXPECT_EQ(error_of(*session, {numbers({0, 1, 2, 4})}), "");
  EXPECT_NE(error_of(*session, {numbers({0, 1, 2, 5})}), "");
}

/// The one index of many that is wrong, at any position, by any number of threads.
template <class T>
void expect_found(DType dtype, std::int64_t low, std::int64_t high, T wrong) {
  for (const std::int64_t count : {1, 3, 63, 64, 65, 1000, 300'000}) {
    std::vector<T> elements(static_cast<std::size_t>(count), static_cast<T>(high));
    const step::CheckIndices check{.count = count, .low = low, .high = high};
    const auto found = [&](int threads) {
      return index_outside(check, dtype, reinterpret_cast<const std::byte*>(elements.data()),
                           threads);
    };
    for (const int threads : {1, 2}) {
      EXPECT_EQ(found(threads), std::nullopt);
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
        elements[static_cast<std::size_t>(at)] = wrong;
        EXPECT_EQ(found(threads), static_cast<std::int64_t>(wrong)) << count << " " << at;
        elements[static_cast<std::size_t>(at)] = static_cast<T>(high);
      }
    }
  }
}

TEST(IndexOutside, LooksAtEveryElementOfEveryType) {
  expect_found<std::int8_t>(DType::I8, -5, 4, -128);
  expect_found<std::int16_t>(DType::I16, -5, 4, 5);
  expect_found<std::int32_t>(DType::I32, -5, 4, -6);
  expect_found<std::int64_t>(DType::I64, -5, 4, std::int64_t{1} << 32);
  expect_found<std::int64_t>(DType::I64, -5, 4, INT64_MIN);
  expect_found<std::uint8_t>(DType::U8, -5, 4, 255);
  expect_found<std::uint16_t>(DType::U16, 0, 300, 301);
  expect_found<std::uint32_t>(DType::U32, -5, 4, 0xFFFFFFFF);
  expect_found<std::uint64_t>(DType::U64, -5, 4, UINT64_MAX);
}

TEST(IndexOutside, TakesBoundsThatTheTypeCannotHold) {
  const std::vector<std::int8_t> elements = {-128, 0, 127};
  const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
  EXPECT_EQ(index_outside({.count = 3, .low = -1000, .high = 999}, DType::I8, bytes, 1),
            std::nullopt);
  EXPECT_EQ(index_outside({.count = 3, .low = 0, .high = -1}, DType::I8, bytes, 1), -128);
}

TEST(Session, AsksTheHostAndKeepsBoxes) {
  Maker maker;
  const auto x = maker.input("x", {3}), a = maker.arena("a", {3}), box = maker.boxed("box"),
             y = maker.output("y", {3});
  maker.program.outputs.push_back(box);
  maker.twice({x}, {a}, 1, 3);
  maker.host("keep", {a}, {box});
  maker.twice({x}, {a}, 1, 3, 50);  // the box keeps what it was given
  maker.host("reverse", {box}, {y});
  const Host host = [](const std::string& text, std::span<const Datum> inputs) {
    std::vector<Datum> outputs(inputs.begin(), inputs.end());
    if (text == "reverse") {
      Numbers elements = elements_of(inputs[0]);
      std::ranges::reverse(elements);
      outputs = {numbers(elements)};
    }
    return Expected<std::vector<Datum>>(std::move(outputs));
  };
  const auto session = session_of(maker.program, {.host = host});
  const std::vector<Datum> inputs = {numbers({1, 2, 3})};
  const auto outputs = session->run(inputs);
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  EXPECT_EQ(elements_of((*outputs)[0]), (Numbers{7, 5, 3}));
  EXPECT_EQ(elements_of((*outputs)[1]), (Numbers{3, 5, 7}));

  const auto none = Session::create(*LoadedProgram::load(maker.program), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().id, "program-host");
  const auto bad = session_of(maker.program, {.host = [](const auto&, auto) {
                                return Expected<std::vector<Datum>>(std::vector<Datum>{});
                              }});
  EXPECT_NE(error_of(*bad, {numbers({1, 2, 3})}).find("program-host"), std::string::npos);
}

TEST(Session, RefusesOtherArguments) {
  Maker maker;
  const auto x = maker.input("x", {2}), y = maker.output("y", {2});
  maker.twice({x}, {y}, 1, 2);
  const auto session = session_of(maker.program);
  EXPECT_EQ(error_of(*session, {numbers({1, 2, 3})}),
            "x: error[program-argument]: it is i32[3]\n  note: the program has i32[2]");
  EXPECT_EQ(error_of(*session, {Datum()}),
            "x: error[program-argument]: it is no tensor\n  note: the program has i32[2]");
  EXPECT_EQ(error_of(*session, {}),
            "error[program-argument]: 0 values are given\n  note: the program has 1");
  alignas(64) std::array<std::byte, 128> memory{};
  const std::array<const std::byte*, 1> from = {memory.data()};
  const std::array<std::byte*, 1> odd = {memory.data() + 4}, none = {nullptr};
  for (const auto& to : {odd, none}) {
    const auto ran = session->run(from, to);
    ASSERT_FALSE(ran);
    EXPECT_EQ(to_string(ran.error()),
              "y: error[program-argument]: the memory is not aligned\n  note: to 64 bytes");
  }
}

TEST(Session, SaysThatAnAssertionOfAKernelFails) {
  Maker maker;
  const auto x = maker.input("x", {2}), y = maker.output("y", {2});
  maker.step<step::Launch>(maker.twice({x}, {y}, 1, 2)).words[2] = static_cast<std::uint64_t>(-1);
  EXPECT_EQ(error_of(*session_of(maker.program), {numbers({1, 2})}),
            "twice_plus: error[program-kernel]: an assertion of the kernel does not hold");
}

/// A chain of launches over many programs, with steps in a loop.
Maker long_chain(std::int64_t programs, std::int64_t n) {
  Maker maker;
  const auto x = maker.input("x", {programs * n}), a = maker.arena("a", {programs * n}),
             y = maker.output("y", {programs * n});
  maker.twice({x}, {a}, programs, n);
  maker.add(step::Loop{.rounds = 5, .end = 4});
  maker.twice({a}, {y}, programs, n, 3);
  maker.twice({y}, {a}, programs, n, -1);
  maker.twice({a}, {y}, programs, n);
  return maker;
}

Numbers iota(std::int64_t count) {
  Numbers elements(static_cast<std::size_t>(count));
  std::iota(elements.begin(), elements.end(), -7);
  return elements;
}

TEST(Session, ComputesTheSameOnAnyNumberOfThreads) {
  const Maker maker = long_chain(97, 333);
  const Numbers expected = run(*session_of(maker.program), iota(97 * 333));
  for (const int threads : {0, 2, 3, 64})
    EXPECT_EQ(run(*session_of(maker.program, {.threads = threads}), iota(97 * 333)), expected);
}

TEST(Session, TwoThreadsShareOneProgram) {
  const auto loaded = LoadedProgram::load(long_chain(64, 100).program);
  ASSERT_TRUE(loaded);
  const Numbers expected = run(**Session::create(*loaded), iota(6400));
  const auto use = [&] {
    const auto session = Session::create(*loaded, {.threads = 2});
    for (int i = 0; i < 50; ++i) EXPECT_EQ(run(**session, iota(6400)), expected);
  };
  std::thread other(use);
  use();
  other.join();
}

TEST(Session, AllocatesNothingWhenItRunsIntoMemoryOfTheCaller) {
  const Maker maker = long_chain(64, 100);
  const auto session = session_of(maker.program, {.threads = 2});
  const Numbers elements = iota(6400);
  const Bytes input = Bytes::copy(std::as_bytes(std::span(elements)));
  Buffer output(input.size());
  const std::array<const std::byte*, 1> from = {input.data()};
  const std::array<std::byte*, 1> to = {output.data()};
  ASSERT_TRUE(session->run(from, to));
  const std::size_t before = allocations;
  const bool again = session->run(from, to).has_value();
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(again);
  const Tensor result{DType::I32, {6400}, std::move(output).freeze()};
  EXPECT_EQ(elements_of(result), run(*session, elements));
}

TEST(Session, ShowsHowLongEachStepTook) {
  std::vector<std::size_t> seen;
  std::int64_t last = 0;
  bool ordered = true;
  const auto session =
      session_of(long_chain(2, 2).program,
                 {.observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
                   ordered = ordered && last <= start && start <= end;
                   last = end;
                   seen.push_back(step);
                 }});
  run(*session, iota(4));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 4}));
  EXPECT_TRUE(ordered);
}

TEST(LoadedProgram, RefusesAnotherCpu) {
  const auto refusal = [](Program program) {
    const auto loaded = LoadedProgram::load(std::move(program));
    return loaded ? "" : to_string(loaded.error());
  };
  Maker maker;
  maker.program.features = {"quantum"};
  EXPECT_EQ(refusal(maker.program),
            "error[program-cpu]: the program needs quantum, which this CPU does not have\n"
            "  help: compile the model for this computer");
  maker.program.architecture = "pdp-11";
  EXPECT_NE(refusal(maker.program).find("the program is for pdp-11, this computer is "),
            std::string::npos);
  maker.program.kernels.clear();  // what has no machine code runs anywhere
  EXPECT_EQ(refusal(maker.program), "");
}

}  // namespace
}  // namespace tessera::runtime
