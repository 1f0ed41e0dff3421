#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/runtime/hand_made.h"

namespace tessera::runtime {
namespace {

using testing::Maker;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
constexpr ValueIndex kX = 0, kW = 1, kA = 2, kY = 3, kBox = 4, kFlag = 5;

/// One step of each kind, all of them right.
Program example() {
  Maker maker;
  const auto x = maker.input("x", {4}), w = maker.weights("w", {1, 2}), a = maker.arena("a", {4}),
             y = maker.output("y", {4}), box = maker.boxed("box"),
             flag = maker.arena("flag", {}, DType::Bool);
  maker.program.swap_bytes = 16;
  maker.twice({x}, {a}, 2, 2);                                                    // 0
  maker.add(step::Loop{.rounds = 3, .end = 5});                                   // 1
  maker.add(step::Copy{.from = {w, 0, 2}, .to = {a, 12, -4}, .bytes = 4});        // 2
  maker.add(step::Branch{.condition = flag, .otherwise = 5});                     // 3
  maker.add(step::Jump{.target = 2});                                             // 4
  maker.host("graph", {x, box}, {a, box, flag});                                  // 5
  maker.add(step::Swap{.memory = {a}, .bytes = 16});                              // 6
  maker.twice({a}, {y}, 1, 4);                                                    // 7
  maker.add(step::CheckIndices{.at = {x}, .count = 4, .period = 2, .phase = 1});  // 8
  return maker.program;
}

struct Wrong {
  const char* what;
  std::function<void(Program&)> make;
};

template <class T>
std::function<void(Program&)> with(std::size_t index, std::function<void(T&)> change) {
  return [=](Program& program) { change(std::get<T>(program.steps[index])); };
}
std::function<void(Program&)> with(ValueIndex index, std::function<void(Value&)> change) {
  return [=](Program& program) { change(program.values[index]); };
}

using step::Branch, step::CheckIndices, step::Copy, step::Jump, step::Launch, step::Loop,
    step::Swap;

// clang-format off
const Wrong kWrong[] = {
    {"arena of negative size", [](Program& p) { p.arena_bytes = -1; }},
    {"arena too small", [](Program& p) { p.arena_bytes = 15; }},
    {"arena beyond any computer", [](Program& p) { p.arena_bytes = kHuge; }},
    {"swap of negative size", [](Program& p) { p.swap_bytes = -1; }},
    {"fewer notes than steps", [](Program& p) { p.notes.pop_back(); }},
    {"input that is not there", [](Program& p) { p.inputs[0] = 77; }},
    {"input listed twice", [](Program& p) { p.inputs.push_back(kX); }},
    {"output that is an input", [](Program& p) { p.outputs[0] = kX; }},
    {"no weights", [](Program& p) { p.weights = {}; }},
    {"no code", [](Program& p) { p.image = {}; }},
    {"entry behind the code", [](Program& p) { p.kernels[0].entry = 88; }},
    {"entry before the code", [](Program& p) { p.kernels[0].entry = -4; }},
    {"negative scratch", [](Program& p) { p.kernels[0].scratch_bytes = -1; }},
    {"scratch beyond reason", [](Program& p) { p.kernels[0].scratch_bytes = kHuge; }},
    {"negative size", with(kA, [](Value& v) { v.shape = {-4}; })},
    {"size that overflows", with(kA, [](Value& v) { v.shape = {1 << 30, 1 << 30, 1 << 30}; })},
    {"bytes that overflow", with(kA, [](Value& v) { v.bytes = kHuge; })},
    {"fewer bytes than elements", with(kA, [](Value& v) { v.bytes = 15; })},
    {"odd place", with(kA, [](Value& v) { v.offset = 2; })},
    {"negative place", with(kA, [](Value& v) { v.offset = -4; })},
    {"place that overflows", with(kA, [](Value& v) { v.offset = kHuge - 3; })},
    {"weight behind the weights", with(kW, [](Value& v) { v.offset = 4; })},
    {"input of another number", with(kX, [](Value& v) { v.offset = 1; })},
    {"input of a negative number", with(kX, [](Value& v) { v.offset = -1; })},
    {"input with padding", with(kX, [](Value& v) { v.bytes = 20; })},
    {"text in memory", with(kA, [](Value& v) { v.dtype = DType::String; })},
    {"kernel that is not there", with<Launch>(0, [](Launch& s) { s.kernel = 1; })},
    {"negative grid", with<Launch>(0, [](Launch& s) { s.grid[1] = -1; })},
    {"grid that overflows", with<Launch>(0, [](Launch& s) { s.grid.fill(std::int64_t{1} << 31); })},
    {"word that is not there", with<Launch>(0, [](Launch& s) { s.patches[0].word = 4; })},
    {"address of no value", with<Launch>(0, [](Launch& s) { s.patches[0].at.value = 6; })},
    {"address of a box", with<Launch>(0, [](Launch& s) { s.patches[0].at.value = kBox; })},
    {"address before its value", with<Launch>(0, [](Launch& s) { s.patches[0].at.offset = -1; })},
    {"address behind its value", with<Launch>(0, [](Launch& s) { s.patches[0].at.offset = 4; })},
    {"negative bytes", with<Launch>(0, [](Launch& s) { s.patches[0].bytes = -1; })},
    {"bytes that overflow", with<Launch>(0, [](Launch& s) { s.patches[0].bytes = kHuge; })},
    {"loop that ends before it begins", with<Loop>(1, [](Loop& s) { s.end = 1; })},
    {"loop that ends behind the steps", with<Loop>(1, [](Loop& s) { s.end = 10; })},
    {"negative rounds", with<Loop>(1, [](Loop& s) { s.rounds = -1; })},
    {"one round too many", with<Loop>(1, [](Loop& s) { s.rounds = 4; })},
    {"rounds that overflow", with<Loop>(1, [](Loop& s) { s.rounds = kHuge; })},
    {"step that overflows", with<Copy>(2, [](Copy& s) { s.from.per_round = kHuge / 2 + 1; })},
    {"write to an input", with<Copy>(2, [](Copy& s) { s.to = {kX}; })},
    {"write to a weight", with<Copy>(2, [](Copy& s) { s.to = {kW}; })},
    {"branch out of its loop", with<Branch>(3, [](Branch& s) { s.otherwise = 6; })},
    {"branch on numbers", with<Branch>(3, [](Branch& s) { s.condition = kA; })},
    {"branch on nothing", with<Branch>(3, [](Branch& s) { s.condition = 99; })},
    {"jump before its loop", with<Jump>(4, [](Jump& s) { s.target = 1; })},
    {"jump into a loop", [](Program& p) { p.steps[0] = Jump{.target = 2}; }},
    {"jump behind the steps", [](Program& p) { p.steps[7] = Jump{.target = 10}; }},
    {"loops that cross", [](Program& p) { p.steps[2] = Loop{.rounds = 1, .end = 6}; }},
    {"text that is not there", with<step::Host>(5, [](step::Host& s) { s.text = 1; })},
    {"host input that is not there", with<step::Host>(5, [](step::Host& s) { s.inputs[0] = 9; })},
    {"host output that is not there", with<step::Host>(5, [](step::Host& s) { s.outputs[0] = 9; })},
    {"host output to a weight", with<step::Host>(5, [](step::Host& s) { s.outputs[0] = kW; })},
    {"host step in place", with<step::Host>(5, [](step::Host& s) { s.inputs[0] = kA; })},
    {"host output given twice", with<step::Host>(5, [](step::Host& s) { s.outputs[2] = kA; })},
    {"swap of an output", with<Swap>(6, [](Swap& s) { s.memory.value = kY; })},
    {"swap behind the file", with<Swap>(6, [](Swap& s) { s.file_offset = 1; })},
    {"swap before the file", with<Swap>(6, [](Swap& s) { s.file_offset = -1; })},
    {"indices of no value", with<CheckIndices>(8, [](CheckIndices& s) { s.at.value = 99; })},
    {"indices in a box", with<CheckIndices>(8, [](CheckIndices& s) { s.at.value = kBox; })},
    {"indices that are bools", with<CheckIndices>(8, [](CheckIndices& s) { s.at.value = kFlag; })},
    {"indices behind their value", with<CheckIndices>(8, [](CheckIndices& s) { s.count = 6; })},
    {"a negative number of indices", with<CheckIndices>(8, [](CheckIndices& s) { s.count = -2; })},
    {"a part of a period of indices", with<CheckIndices>(8, [](CheckIndices& s) { s.count = 3; })},
    {"indices of no period", with<CheckIndices>(8, [](CheckIndices& s) { s.period = 0; })},
    {"indices beyond their period", with<CheckIndices>(8, [](CheckIndices& s) { s.phase = 2; })},
    {"indices without a stride", with<CheckIndices>(8, [](CheckIndices& s) { s.stride = 0; })},
    {"a stride of indices that overflows", with<CheckIndices>(8, [](CheckIndices& s) { s.stride = kHuge; })},
};
// clang-format on

TEST(ProgramCheck, AcceptsWhatIsRight) {
  const auto checked = check(example());
  EXPECT_TRUE(checked) << to_string(checked.error());
}

TEST(ProgramCheck, FindsEveryIndexAndSizeThatIsWrong) {
  for (const Wrong& wrong : kWrong) {
    Program program = example();
    wrong.make(program);
    const auto checked = check(program);
    ASSERT_FALSE(checked) << wrong.what;
    EXPECT_EQ(checked.error().id, "program-invalid") << wrong.what;
  }
}

/// A kernel of a GPU, whose first argument is a view of two axes that has a tensor map.
Program with_a_map() {
  Maker maker;
  const auto x = maker.input("x", {64, 64}, DType::F16);
  const auto y = maker.output("y", {64, 64}, DType::F16);
  maker.program.architecture = "sm_90a";
  maker.program.image = Bytes::copy(std::as_bytes(std::span("text")));
  maker.program.kernels = {
      {.name = "copy",
       .threads = 256,
       .persistent = true,
       .maps = {
           {.word = 0, .column = 1, .width = 2, .box = {64, 64}},
           {.word = 5, .width = 2, .box = {64}, .offset = 8, .extents = {64}, .strides = {1}}}}};
  maker.add(step::Launch{.words = {0, 64, 64, 64, 1, 0},
                         .patches = {{0, {x}, 64 * 64 * 2}, {5, {y}, 64 * 64 * 2}}});
  return maker.program;
}

TEST(ProgramCheck, FindsGridsThatNoGpuRuns) {
  for (const std::size_t axis : {1, 2}) {
    Program program = with_a_map();
    std::get<Launch>(program.steps[0]).grid[axis] = 65535;
    EXPECT_TRUE(check(program));
    std::get<Launch>(program.steps[0]).grid[axis] = 65536;
    const auto checked = check(program);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().id, "program-invalid");
  }
}

TEST(ProgramCheck, FindsTensorMapsThatNoGpuHas) {
  ASSERT_TRUE(check(with_a_map())) << to_string(check(with_a_map()).error());
  using Map = cuda::TensorMap;
  const auto refused = [](const std::function<void(Map&)>& change, std::size_t which = 0) {
    Program program = with_a_map();
    change(program.kernels[0].maps[which]);
    const auto checked = check(program);
    return !checked && checked.error().id == "program-invalid";
  };
  EXPECT_TRUE(refused([](Map& map) { map.word = -1; }));
  EXPECT_TRUE(refused([](Map& map) { map.word = 2; }));
  EXPECT_TRUE(refused([](Map& map) { map.word = std::numeric_limits<int>::max(); }));
  EXPECT_TRUE(refused([](Map& map) { map.word = 6; }, 1));
  EXPECT_TRUE(refused([](Map& map) { map.column = 2; }));
  EXPECT_TRUE(refused([](Map& map) { map.column = -1; }));
  EXPECT_TRUE(refused([](Map& map) { map.width = 8; }));
  EXPECT_TRUE(refused([](Map& map) { map.box = {}; }));
  EXPECT_TRUE(refused([](Map& map) { map.box = {64, 1, 1, 1, 1, 64}; }));
  EXPECT_TRUE(refused([](Map& map) { map.box[0] = 257; }));
  EXPECT_TRUE(refused([](Map& map) { map.box[0] = 0; }));
  EXPECT_TRUE(refused([](Map& map) { map.box[1] = 48; }));
  EXPECT_TRUE(refused([](Map& map) { map.strides = {}; }, 1));
  EXPECT_TRUE(refused([](Map& map) { map.extents = map.strides = {64, 64}; }, 1));
  Program program = with_a_map();
  program.kernels[0].persistent = false;
  EXPECT_FALSE(check(program)) << "one block for each program is not told how many there are";
  program = with_a_map();
  program.kernels[0].maps.resize(9, program.kernels[0].maps[0]);
  EXPECT_FALSE(check(program));
}

TEST(ProgramCheck, SaysWhichStepIsWrong) {
  Program program = example();
  std::get<Copy>(program.steps[2]).bytes = 8;
  EXPECT_EQ(to_string(check(program).error()),
            "step 2: error[program-invalid]: 8 bytes at 0 leave w in one of the rounds\n"
            "  help: compile the model again");
  (void)kFlag;
}

TEST(ProgramCheck, AcceptsAPartOfAnInputAndALoopThatNeverRuns) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  const auto half = maker.value("half", Value::Home::Input, {2}, DType::I32, 0);
  maker.twice({half}, {y}, 1, 2);
  maker.add(step::Loop{.rounds = 0, .end = 3});
  maker.twice({x, 1000}, {y}, 1, 4);
  EXPECT_TRUE(check(maker.program));
}

}  // namespace
}  // namespace tessera::runtime
