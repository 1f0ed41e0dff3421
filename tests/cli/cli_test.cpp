/// The command line as a user meets it: help, exit codes, JSON, files, limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/support/npy.h"
#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using Cli = testing::TesseraCommand;

constexpr const char* kScaled = "graph(x: f32[n, 3]) { y = mul(x, 2.0)  return y }";
constexpr const char* kExpandBomb =
    "graph(x: f32[1]) { s = const i64[2] [1048576, 1048576]  y = expand(x, s)  return y }";
constexpr const char* kLoopBomb =
    "graph(x: f32[2]) {"
    "  y = loop(_, _, x) {states=1} { body(i: i64[], c: bool[], v: f32[2]) { return c, relu(v) } }"
    "  return y }";

TEST_F(Cli, HelpOfEveryCommandShowsAnExample) {
  for (const char* command : {"inspect", "run", "convert", "conformance", "operators"}) {
    const Outcome help = tessera({command, "--help"});
    EXPECT_EQ(help.exit_code, kSuccess) << command;
    EXPECT_THAT(help.out, ContainsRegex("Examples?:\n  tessera " + std::string(command)));
    EXPECT_THAT(help.out, HasSubstr("--memory-limit"));
    EXPECT_THAT(help.out, HasSubstr("--time-limit"));
  }
}

TEST_F(Cli, HelpNamesEveryCommandAndTheExitCodes) {
  const Outcome help = tessera({"--help"});
  EXPECT_EQ(help.exit_code, kSuccess);
  for (const char* word : {"inspect", "run", "convert", "conformance", "operators", "Exit codes:"})
    EXPECT_THAT(help.out, HasSubstr(word));
}

TEST_F(Cli, WrongUsageIsItsOwnExitCode) {
  EXPECT_EQ(tessera({}).exit_code, kUsage);
  EXPECT_EQ(tessera({"frobnicate"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"inspect"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"inspect", "m.onnx", "--frobnicate"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"run", "m.onnx", "--engine", "magic"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"run", "m.onnx", "--threads", "0"}).exit_code, kUsage);
  EXPECT_EQ(tessera({"run", "m.onnx", "--tolerance", "-1"}).exit_code, kUsage);
}

TEST_F(Cli, UnknownNamesGetASuggestion) {
  EXPECT_THAT(tessera({"optimise", "m.onnx"}).err, HasSubstr("did you mean optimize?"));
  EXPECT_THAT(tessera({"compile", "m.onnx", "--thread", "2"}).err,
              HasSubstr("did you mean --threads?"));
  EXPECT_THAT(tessera({"rules", "prov"}).err, HasSubstr("did you mean prove?"));
  EXPECT_THAT(tessera({"xyzzy"}).err, Not(HasSubstr("did you mean")));
}

TEST_F(Cli, OldNamesOfFlagsStillWork) {
  folder.write("m.tessera", "graph(x: f32[2]) { return exp(x) }");
  EXPECT_EQ(tessera({"compile", "m.tessera", "--most-error", "0.1"}).exit_code, kSuccess);
  EXPECT_EQ(tessera({"compile", "m.tessera", "--max-error", "0.1"}).exit_code, kSuccess);
}

TEST_F(Cli, ListsEveryPassWithStageNumericsAndTarget) {
  const Outcome text = tessera({"passes"});
  EXPECT_THAT(text.out, ContainsRegex("stack_matmuls +target +reals +gpu"));
  const nlohmann::json list = nlohmann::json::parse(tessera({"passes", "--json"}).out)["passes"];
  EXPECT_EQ(list[0]["name"], "dce");
  EXPECT_EQ(list[0]["stage"], "canonical");
}

TEST_F(Cli, BadInputIsItsOwnExitCode) {
  folder.write("m.onnx", "not a model");
  EXPECT_EQ(tessera({"inspect", "m.onnx"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"run", "m.onnx"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"convert", "m.onnx", "out.tessera"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"conformance", "."}).exit_code, kBadInput);
}

TEST_F(Cli, InspectPrintsJson) {
  folder.write("m.tessera", kScaled);
  const nlohmann::json object = json({"inspect", "m.tessera", "--json"});
  EXPECT_EQ(object["nodes"], 1);
  EXPECT_EQ(object["operators"]["mul"], 1);
  EXPECT_EQ(object["inputs"][0]["name"], "x");
  EXPECT_EQ(object["inputs"][0]["type"], "f32[n, 3]");
  EXPECT_EQ(object["values"]["y"], "f32[n, 3]");
}

TEST_F(Cli, InspectPrintsAGraphThatCanBeReadAgain) {
  folder.write("m.tessera", kScaled);
  const Outcome first = tessera({"inspect", "m.tessera", "--text"});
  folder.write("again.tessera", first.out);
  EXPECT_EQ(tessera({"inspect", "again.tessera", "--text"}).out, first.out);
}

TEST_F(Cli, AFailurePrintsJsonToo) {
  const nlohmann::json object = json({"inspect", "missing.onnx", "--json"});
  EXPECT_EQ(object["error"]["id"], "file-unreadable");
  EXPECT_EQ(object["error"]["file"], "missing.onnx");
}

TEST_F(Cli, SavesOutputsThatReadBack) {
  folder.write("m.tessera", kScaled);
  ASSERT_EQ(
      tessera({"run", "m.tessera", "--fill", "sin", "--set", "n=2", "--save", "out"}).exit_code,
      kSuccess);
  const auto saved = read_npy(folder.path() / "out" / "y.npy");
  ASSERT_TRUE(saved);
  EXPECT_THAT(saved->shape, ElementsAre(2, 3));
  EXPECT_FLOAT_EQ(saved->as<float>()[5], static_cast<float>(2 * std::sin(5.0)));
}

TEST_F(Cli, ASavedOutputIsAnInput) {
  folder.write("m.tessera", kScaled);
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--set", "n=2", "--save", "a"}).exit_code,
            kSuccess);
  ASSERT_EQ(tessera({"run", "m.tessera", "--input", "x=a/y.npy", "--save", "b"}).exit_code,
            kSuccess);
  const auto saved = read_npy(folder.path() / "b" / "y.npy");
  ASSERT_TRUE(saved);
  EXPECT_FLOAT_EQ(saved->as<float>()[5], static_cast<float>(4 * std::sin(5.0)));
}

TEST_F(Cli, ASavedOutputOfASmallTypeIsAnInput) {
  folder.write("m.tessera",
               "graph(x: f32[20]) { a = cast(x) {to=\"f8e4m3fn\"}  b = quantize_linear(x, 0.25) "
               "{output_dtype=\"i4\"}  return a, b }");
  folder.write("n.tessera",
               "graph(a: f8e4m3fn[20], b: i4[20]) { c = cast(a) {to=\"f32\"}  d = cast(b) "
               "{to=\"f32\"}  return c, d }");
  for (const char* engine : {"native", "reference"}) {
    ASSERT_EQ(
        tessera({"run", "m.tessera", "--fill", "sin", "--save", "a", "--engine", engine}).exit_code,
        kSuccess);
    ASSERT_EQ(tessera({"run", "n.tessera", "--input", "a=a/a.npy", "--input", "b=a/b.npy", "--save",
                       "b", "--engine", engine})
                  .exit_code,
              kSuccess);
    const auto floats = read_npy(folder.path() / "b" / "c.npy");
    const auto integers = read_npy(folder.path() / "b" / "d.npy");
    ASSERT_TRUE(floats && integers);
    EXPECT_EQ(floats->as<float>()[1], 0.8125f);  // sin(1) is 0.841
    EXPECT_EQ(integers->as<float>()[1], 3);
  }
  // A number that the type does not have.
  ASSERT_TRUE(write_npy(folder.path() / "e.npy",
                        Tensor::of<std::int8_t>(DType::I8, {20}, std::vector<std::int8_t>(20, 8))));
  EXPECT_THAT(tessera({"run", "n.tessera", "--input", "a=a/a.npy", "--input", "b=e.npy"}).err,
              HasSubstr("b: error[run-input-type]: element 0 of the file is 8\n"
                        "  note: the input is of type i4"));
}

TEST_F(Cli, TheNameOfAnOutputIsNoPath) {
  folder.write("m.tessera", "graph(x: f32[2]) { '../y' = relu(x)  return '../y' }");
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--save", "out"}).exit_code, kSuccess);
  EXPECT_THAT(folder.files(), ElementsAre("m.tessera", "out"));
}

TEST_F(Cli, ReshapeReplacesTheShapeOfAnInput) {
  folder.write("m.tessera", kScaled);
  const nlohmann::json object =
      json({"run", "m.tessera", "--fill", "random:7", "--reshape", "x=5x3", "--json"});
  EXPECT_EQ(object["outputs"][0]["type"], "f32[5, 3]");
}

TEST_F(Cli, AFillOfTheSameSeedIsTheSame) {
  folder.write("m.tessera", kScaled);
  for (const char* out : {"a", "b"})
    tessera({"run", "m.tessera", "--fill", "random:7", "--set", "n=2", "--save", out});
  EXPECT_EQ(folder.read("a/y.npy"), folder.read("b/y.npy"));
}

TEST_F(Cli, FillsIndicesWithWhatTheyMayBe) {
  folder.write("m.tessera",
               "graph(i: i64[4, n], t: i32[n], x: f32[7, 2], w: f32[n]) {"
               "  k = reshape(i, [-1])  j = cast(k) {to=\"i32\"}  a = gather(x, j)"
               "  b = gather(w, t)  return a, b }");
  for (const char* fill : {"sin", "random:1"})
    for (const char* engine : {"native", "reference"}) {
      const Outcome outcome = tessera(
          {"run", "m.tessera", "--fill", fill, "--set", "n=3", "--engine", engine, "--save", fill});
      EXPECT_EQ(outcome.exit_code, kSuccess) << outcome.err;
    }
}

TEST_F(Cli, FillsIndicesOfSavedPrograms) {
  folder.write("m.tessera", "graph(i: i64[4, 3], x: f32[7, 2]) { y = gather(x, i)  return y }");
  ASSERT_EQ(tessera({"compile", "m.tessera", "-o", "m.tsr"}).exit_code, kSuccess);
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--save", "out"}).exit_code, kSuccess);
  EXPECT_EQ(tessera({"run", "m.tsr", "--fill", "sin", "--compare", "out"}).exit_code, kSuccess);
}

TEST_F(Cli, ComparesWithGoldenAnswers) {
  folder.write("m.tessera", kScaled);
  const auto golden = [&](double value) {
    const nlohmann::json output = {{"shape", {1, 3}},
                                   {"mean", (2 * std::sin(1.0) + 2 * std::sin(2.0)) / 3},
                                   {"l2", std::hypot(2 * std::sin(1.0), 2 * std::sin(2.0))},
                                   {"at", {1}},
                                   {"values", {value}}};
    folder.write("golden.json",
                 nlohmann::json{{"dims", {{"n", 1}}}, {"outputs", {{"y", output}}}}.dump());
    return tessera({"run", "m.tessera", "--fill", "sin", "--compare", "golden.json"});
  };
  EXPECT_EQ(golden(2 * std::sin(1.0)).exit_code, kSuccess);
  const Outcome wrong = golden(2 * std::sin(1.0) + 0.01);
  EXPECT_EQ(wrong.exit_code, kNegativeResult);
  EXPECT_THAT(wrong.out, HasSubstr("FAIL"));
  EXPECT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--compare", "golden.json", "--tolerance",
                     "0.1"})
                .exit_code,
            kSuccess);
}

TEST_F(Cli, ComparesWithAGoldenFileThatItWrote) {
  folder.write("m.tessera", kScaled);
  folder.write("other.tessera", "graph(x: f32[n, 3]) { y = mul(x, 2.001)  return y }");
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--set", "n=200", "--engine", "reference",
                     "--save-golden", "g.json"})
                .exit_code,
            kSuccess);
  const auto object = nlohmann::json::parse(folder.read("g.json"));
  EXPECT_EQ(object["outputs"]["y"]["at"].size(), 256U);
  EXPECT_EQ(object["inputs"], "--fill sin");
  EXPECT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--compare", "g.json"}).exit_code,
            kSuccess);
  EXPECT_EQ(tessera({"run", "other.tessera", "--fill", "sin", "--compare", "g.json"}).exit_code,
            kNegativeResult);
}

TEST_F(Cli, ComparesWithAFolderOfSavedOutputs) {
  folder.write("m.tessera",
               "graph(x: f32[2, 3]) { '../y' = mul(x, 2.0)  z = log(x)  return '../y', z }");
  folder.write("other.tessera",
               "graph(x: f32[2, 3]) { '../y' = mul(x, 2.0)  z = exp(x)  return '../y', z }");
  const auto compared = [&](const std::string& model) {
    return tessera({"run", model, "--fill", "sin", "--compare", "out"});
  };
  ASSERT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--save", "out"}).exit_code, kSuccess);
  EXPECT_EQ(compared("m.tessera").exit_code, kSuccess);  // with NaN, of negative numbers
  EXPECT_EQ(compared("other.tessera").exit_code, kNegativeResult);
  std::filesystem::remove(folder.path() / "out" / "z.npy");
  const Outcome missing = compared("m.tessera");
  EXPECT_EQ(missing.exit_code, kBadInput);
  EXPECT_THAT(missing.err, HasSubstr("out/z.npy: error[file-unreadable]"));
}

TEST_F(Cli, ComparesWithTestDataOfOnnx) {
  folder.write("m.tessera", "graph(x: f32[2]) { y = mul(x, 2.0)  return y }");
  ASSERT_EQ(tessera({"convert", "m.tessera", "m.onnx"}).exit_code, kSuccess);
  ASSERT_EQ(tessera({"compile", "m.onnx", "-o", "m.tsr"}).exit_code, kSuccess);
  std::filesystem::create_directory(folder.path() / "data");
  // TensorProtos: dims 2, data_type float, raw_data [1, 2] and [2, 4].
  const std::string head("\x08\x02\x10\x01\x4a\x08", 6);
  folder.write("data/input_0.pb", head + std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8));
  const auto expect = [&](const char* last) {
    folder.write("data/output_0.pb",
                 head + std::string("\x00\x00\x00\x40\x00\x00", 6) + std::string(last, 2));
  };
  for (const char* model : {"m.onnx", "m.tsr", "m.tessera"}) {
    expect("\x80\x40");  // 4
    EXPECT_EQ(tessera({"run", model, "--compare", "data"}).exit_code, kSuccess) << model;
    EXPECT_EQ(tessera({"run", model, "--compare", "data", "--fill", "sin"}).exit_code,
              kNegativeResult);
    expect("\xa0\x40");  // 5
    EXPECT_EQ(tessera({"run", model, "--compare", "data"}).exit_code, kNegativeResult) << model;
  }
  folder.write("data/input_0.pb", head.substr(0, 4));  // without elements
  EXPECT_EQ(tessera({"run", "m.onnx", "--compare", "data"}).exit_code, kBadInput);
}

TEST_F(Cli, ConvertsToOnnxAndBackWithoutAChangeOfMeaning) {
  folder.write("m.tessera",
               "graph(x: f32[1, 2, 5, 5]) {"
               "  w = const f32[1, 2, 3, 3] [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1]"
               "  a = conv(x, w) {pads=[1, 1, 1, 1]}  y = softmax(a) {axis=3}  return y }");
  ASSERT_EQ(tessera({"convert", "m.tessera", "m.onnx"}).exit_code, kSuccess);
  ASSERT_EQ(tessera({"convert", "m.onnx", "again.tessera"}).exit_code, kSuccess);
  ASSERT_EQ(tessera({"convert", "again.tessera", "again.onnx"}).exit_code, kSuccess);
  for (const char* model : {"m.tessera", "m.onnx", "again.tessera", "again.onnx"}) {
    const std::string out = std::string(model) + ".out";
    ASSERT_EQ(tessera({"run", model, "--fill", "sin", "--save", out}).exit_code, kSuccess) << model;
    EXPECT_EQ(folder.read(out + "/y.npy"), folder.read("m.tessera.out/y.npy")) << model;
  }
  EXPECT_EQ(folder.read("m.onnx"), folder.read("again.onnx"));
}

TEST_F(Cli, WhatCannotBeWrittenLeavesNothingBehind) {
  folder.write("m.tessera", kScaled);
  std::filesystem::create_directories(folder.path() / "taken.onnx" / "full");
  EXPECT_EQ(tessera({"convert", "m.tessera", "taken.onnx"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"convert", "m.tessera", "missing/m.onnx"}).exit_code, kBadInput);
  EXPECT_EQ(tessera({"run", "m.tessera", "--fill", "sin", "--set", "n=1", "--save", "m.tessera"})
                .exit_code,
            kBadInput);
  EXPECT_THAT(folder.files(), ElementsAre("m.tessera", "taken.onnx"));
  EXPECT_EQ(folder.read("m.tessera"), kScaled);
}

TEST_F(Cli, AFileIsReplacedAsAWhole) {
  folder.write("m.tessera", kScaled);
  folder.write("out.onnx", "something else");
  ASSERT_EQ(tessera({"convert", "m.tessera", "out.onnx"}).exit_code, kSuccess);
  EXPECT_THAT(folder.files(), ElementsAre("m.tessera", "out.onnx"));
  folder.write("bad.tessera", "graph(");
  const std::string before = folder.read("out.onnx");
  EXPECT_EQ(tessera({"convert", "bad.tessera", "out.onnx"}).exit_code, kBadInput);
  EXPECT_EQ(folder.read("out.onnx"), before);
}

TEST_F(Cli, ConvertsAFileOntoItself) {
  folder.write("m.tessera", kScaled);
  ASSERT_EQ(tessera({"convert", "m.tessera", "m.onnx"}).exit_code, kSuccess);
  const std::string before = folder.read("m.onnx");
  ASSERT_EQ(tessera({"convert", "m.onnx", "m.onnx"}).exit_code, kSuccess);
  EXPECT_EQ(folder.read("m.onnx"), before);
}

TEST_F(Cli, TheMemoryLimitHolds) {
  folder.write("m.tessera", kExpandBomb);
  const Outcome outcome = tessera({"run", "m.tessera", "--fill", "sin", "--memory-limit", "100MB"});
  EXPECT_EQ(outcome.exit_code, kLimit);
  EXPECT_THAT(outcome.err, HasSubstr("error[memory-limit]"));
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(outcome.peak_bytes, 100'000'000);
#endif
}

TEST_F(Cli, ABombNeedsNoLimitToBeDefused) {
  folder.write("m.tessera", kExpandBomb);
  EXPECT_EQ(tessera({"run", "m.tessera", "--fill", "sin"}).exit_code, kLimit);
  folder.write("rows.tessera", "graph(x: f32[1048576, 1048576]) { return relu(x) }");
  EXPECT_EQ(tessera({"run", "rows.tessera", "--fill", "sin"}).exit_code, kLimit);
}

TEST_F(Cli, TheTimeLimitHolds) {
  folder.write("m.tessera", kLoopBomb);
  const Outcome outcome = tessera({"run", "m.tessera", "--fill", "sin", "--time-limit", "1s"});
  EXPECT_EQ(outcome.exit_code, kLimit);
  EXPECT_THAT(outcome.err, HasSubstr("error[time-limit]: the time limit of 1s is reached"));
  EXPECT_LT(outcome.cpu_seconds, 10);
}

TEST_F(Cli, EveryCommandTakesLimits) {
  folder.write("m.tessera", kScaled);
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "m.tessera"},
      {"run", "m.tessera", "--fill", "sin", "--set", "n=1"},
      {"convert", "m.tessera", "m.onnx"},
      {"operators"}};
  const auto with = [](std::vector<std::string> command, const std::vector<std::string>& flags) {
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  };
  for (const std::vector<std::string>& command : commands) {
    const Outcome kept = tessera(with(command, {"--memory-limit", "1GiB", "--time-limit", "1h"}));
    EXPECT_EQ(kept.exit_code, kSuccess) << command[0] << ": " << kept.err;
    EXPECT_EQ(tessera(with(command, {"--memory-limit", "much"})).exit_code, kUsage) << command[0];
    EXPECT_EQ(tessera(with(command, {"--time-limit", "ages"})).exit_code, kUsage) << command[0];
  }
}

TEST_F(Cli, ConformanceCountsWhatItRan) {
  std::filesystem::create_directories(folder.path() / "tests" / "test_scaled" / "test_data_set_0");
  folder.write("m.tessera", "graph() { y = const f32[2] [1, 2]  return y }");
  ASSERT_EQ(tessera({"convert", "m.tessera", "tests/test_scaled/model.onnx"}).exit_code, kSuccess);
  // A TensorProto: dims 2, data_type float, raw_data, as [1, 2] and as [1, 3].
  const std::string tensor("\x08\x02\x10\x01\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40", 14);
  folder.write("tests/test_scaled/test_data_set_0/output_0.pb", tensor);
  const std::vector<std::string> command = {"conformance", "tests", "--json"};
  nlohmann::json object = json(command);
  EXPECT_EQ(object["passed"], 1) << object;
  EXPECT_EQ(object["wrong"], 0);
  EXPECT_EQ(object["unsupported"], 0);
  EXPECT_EQ(tessera(command).exit_code, kSuccess);

  std::string other = tensor;
  other[12] = '\x40';
  folder.write("tests/test_scaled/test_data_set_0/output_0.pb", other);
  object = json(command);
  EXPECT_EQ(object["wrong"], 1) << object;
  EXPECT_EQ(object["wrong_outputs"][0]["test"], "test_scaled");
  EXPECT_EQ(tessera(command).exit_code, kNegativeResult);
}

TEST_F(Cli, ConformanceHoldsTheTimeLimit) {
  std::filesystem::create_directories(folder.path() / "test_loop" / "test_data_set_0");
  folder.write("m.tessera",
               "graph() { v = const f32[2] [1, 2]"
               "  y = loop(_, _, v) {states=1} { body(i: i64[], c: bool[], v: f32[2]) {"
               "    return c, relu(v) } }  return y }");
  ASSERT_EQ(tessera({"convert", "m.tessera", "test_loop/model.onnx"}).exit_code, kSuccess);
  const Outcome outcome = tessera({"conformance", ".", "--time-limit", "1s"});
  EXPECT_EQ(outcome.exit_code, kLimit) << outcome.out << outcome.err;
  EXPECT_LT(outcome.cpu_seconds, 10);
}

}  // namespace
}  // namespace tessera
