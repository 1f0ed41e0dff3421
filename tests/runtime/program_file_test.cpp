#include "tessera/runtime/program_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tessera/runtime/plan.h"
#include "tests/runtime/hand_made.h"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;
using testing::elements_of;
using testing::Maker;
using testing::numbers;

class ProgramFile : public ::testing::Test {
 protected:
  ProgramFile() { fs::create_directory(folder_); }
  ~ProgramFile() override { fs::remove_all(folder_); }

  std::string content() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(file_, std::ios::binary) << content;
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("tessera-program-" + std::to_string(::getpid()));
  const fs::path file_ = folder_ / "model.tsr";
};

/// Every kind of step, and something in every list.
Program complete_program() {
  Maker maker;
  maker.program.features =
      machine::features_of(machine::host_architecture(), machine::host_words());
  const auto x = maker.input("x", {4}), w = maker.weights("w", {1, 2}), a = maker.arena("a", {4}),
             y = maker.output("y", {4}), box = maker.boxed("box"),
             yes = maker.arena("yes", {}, DType::Bool);
  maker.program.swap_bytes = 16;
  maker.program.kernels.push_back({.name = "mapped",
                                   .programs = 2,
                                   .persistent = true,
                                   .maps = {{.word = 1,
                                             .column = 1,
                                             .width = 4,
                                             .box = {8, 32},
                                             .offset = 3,
                                             .extents = {5, 64},
                                             .strides = {64, 1}}}});
  maker.twice({x}, {a}, 2, 2);
  maker.add(step::Copy{.from = {w}, .to = {a, 8}, .bytes = 8}, {"copy", 1.5, 8});
  maker.host("graph() { return }", {x, box}, {box});
  maker.add(step::Loop{.rounds = 2, .end = 7, .backwards = true});
  maker.add(step::Branch{.condition = yes, .otherwise = 6});
  maker.add(step::Jump{.target = 6});
  maker.add(step::Swap{.memory = {a}, .bytes = 16});
  maker.add(step::CheckIndices{
      .at = {x, 4}, .count = 3, .low = -5, .high = 4, .stride = 1, .period = 3, .phase = 2});
  maker.twice({a}, {y}, 1, 4);
  return maker.program;
}

TEST_F(ProgramFile, ComesBackAsItWasSaved) {
  const Program program = complete_program();
  ASSERT_TRUE(save(program, file_));
  const auto loaded = load(file_);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->name, program.name);
  EXPECT_EQ(loaded->architecture, program.architecture);
  EXPECT_EQ(loaded->features, program.features);
  EXPECT_EQ(loaded->values, program.values);
  EXPECT_EQ(loaded->inputs, program.inputs);
  EXPECT_EQ(loaded->outputs, program.outputs);
  EXPECT_EQ(loaded->kernels, program.kernels);
  EXPECT_EQ(loaded->texts, program.texts);
  EXPECT_EQ(loaded->steps, program.steps);
  EXPECT_EQ(loaded->notes, program.notes);
  EXPECT_EQ(loaded->arena_bytes, program.arena_bytes);
  EXPECT_EQ(loaded->swap_bytes, program.swap_bytes);
  EXPECT_TRUE(std::ranges::equal(loaded->image.view(), program.image.view()));
  EXPECT_TRUE(std::ranges::equal(loaded->weights.view(), program.weights.view()));
  EXPECT_TRUE(verify(file_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing lies beside it";
}

TEST_F(ProgramFile, RunsAsBefore) {
  Maker maker;
  const auto w = maker.weights("w", {1, 2, 3}), y = maker.output("y", {3});
  maker.twice({w}, {y}, 3, 1);
  ASSERT_TRUE(save(maker.program, file_));
  const auto loaded = LoadedProgram::load(*load(file_));
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  fs::remove(file_);
  const auto session = Session::create(*loaded);
  const auto outputs = (*session)->run(std::span<const Datum>{});
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  EXPECT_EQ(elements_of(outputs->front()), (std::vector<std::int32_t>{3, 5, 7}));
}

TEST_F(ProgramFile, FindsAnyDamagedByte) {
  ASSERT_TRUE(save(complete_program(), file_));
  const std::string whole = content();
  const auto parses = [](const std::string& content) {
    const auto parsed =
        parse_program(Bytes::copy(std::as_bytes(std::span(content))), "damaged.tsr");
    EXPECT_TRUE(parsed || parsed.error().id == "program-malformed") << to_string(parsed.error());
    return parsed.has_value();
  };
  // The weights are left alone, and what lies between the sections means nothing.
  std::size_t harmless = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    harmless += parses(damaged) ? 1 : 0;
  }
  EXPECT_LT(harmless, 8 + 3 * 64u);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parses(whole.substr(0, size))) << size;
}

TEST_F(ProgramFile, SaysWhatIsWrong) {
  ASSERT_TRUE(save(complete_program(), file_));
  const std::string whole = content();
  const auto message = [&](const std::string& content) {
    write(content);
    const auto verified = verify(file_);
    return verified ? "" : verified.error().message;
  };
  EXPECT_EQ(message("a cat"), "this is no saved program");
  std::string other = whole;
  other[8] = 9;
  EXPECT_EQ(message(other), "version 9 of the format is not read");
  other = whole;
  other.back() ^= 1;
  EXPECT_EQ(message(other), "damaged weights");
  EXPECT_TRUE(load(file_)) << "loading leaves the weights alone";
}

TEST(Plan, ReadsNotesWithoutNamesOfOlderVersions) {
  const Program program{.notes = {{.what = "copy", .flops = 1, .bytes = 2}}, .arena_bytes = 64};
  std::string plan = encode_plan(program);
  // Behind the last note are the sizes of the arena and of the swap file.
  plan.erase(plan.size() - 32, 16);
  const auto bytes = std::as_bytes(std::span(plan));
  const auto read = decode_plan(bytes, 4);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->notes, program.notes);
  EXPECT_EQ(read->arena_bytes, 64);
  EXPECT_FALSE(decode_plan(bytes));
}

TEST(Plan, ReadsNoPartOfItself) {
  const std::string plan = encode_plan(complete_program());
  const auto bytes = std::as_bytes(std::span(plan));
  ASSERT_TRUE(decode_plan(bytes));
  EXPECT_EQ(encode_plan(*decode_plan(bytes)), plan);
  for (std::size_t size = 0; size < plan.size(); ++size)
    EXPECT_FALSE(decode_plan(bytes.first(size))) << size;
  const std::string longer = plan + '\0';
  EXPECT_FALSE(decode_plan(std::as_bytes(std::span(longer))));
}

}  // namespace
}  // namespace tessera::runtime
