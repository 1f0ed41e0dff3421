#include "tessera/engine/engine.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tessera/engine/tessera.h"
#include "tessera/runtime/program_file.h"
#include "tests/runtime/hand_made.h"
#include "tests/support/command.h"

namespace tessera::engine {
namespace {

namespace fs = std::filesystem;
using runtime::testing::elements_of;
using runtime::testing::Maker;
using runtime::testing::numbers;
using testing::run_command;
using testing::TemporaryFolder;
namespace step = runtime::step;

constexpr const char* kTopK = R"(graph top(a: i32[6], k: i64[1]) {
  best, at = top_k(a, k)
  return best, at
})";
constexpr const char* kNonZero = "graph where(x: i32[6]) { return non_zero(x) }";
constexpr const char* kIf = R"(graph choose(flag: bool[], x: i32[6]) {
  y: i32[6] = if_else(flag, x) {
    then(p: i32[6]) {
      q = neg(p)
      return q
    }
    else(p: i32[6]) {
      return p
    }
  }
  return y
})";
constexpr const char* kLoop = R"(graph triple(x: i32[6]) {
  rounds = const i64[] 2
  y: i32[6], _ = loop(rounds, _, x, x) {states=2} {
    body(i: i64[], go: bool[], sum: i32[6], term: i32[6]) {
      next = add(sum, term)
      return go, next, term
    }
  }
  return y
})";

/// All that has no machine code, beside what has: x -> 2 x + 1 -> the best two, where x is not 0,
/// -x or x, 3 x + (1 or 100).
runtime::Program opaque_and_control_flow() {
  Maker maker;
  const auto x = maker.input("x", {6}), flag = maker.input("flag", {}, DType::Bool);
  const auto a = maker.arena("a", {6}), k = maker.arena("k", {1}, DType::I64);
  const auto best = maker.output("best", {2}), at = maker.output("at", {2}, DType::I64);
  const auto places = maker.boxed("places");
  maker.program.outputs.push_back(places);
  const auto chosen = maker.output("chosen", {6}), tripled = maker.output("tripled", {6});
  const auto sum = maker.arena("sum", {6});
  maker.twice({x}, {a}, 3, 2);
  maker.host("graph two() { k = const i64[1] [2] return k }", {}, {k});
  maker.host(kTopK, {a, k}, {best, at});
  maker.host(kNonZero, {x}, {places});
  maker.host(kIf, {flag, x}, {chosen});
  maker.host("graph done(x: i32[6]) { return identity(x) }", {x}, {sum});
  maker.host(kLoop, {sum}, {tripled});
  return maker.program;
}

class Engine : public ::testing::Test {
 protected:
  void save(const runtime::Program& program) {
    const auto saved = runtime::save(program, file_);
    ASSERT_TRUE(saved) << to_string(saved.error());
  }
  testing::Outcome run(const char* binary) {
    return run_command(binary, {file_.string()}, folder_.path());
  }
  TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "model.tsr";
};

TEST_F(Engine, RunsOpaqueOperatorsAndControlFlowFromC) {
  save(opaque_and_control_flow());
  const auto outcome = run(TESSERA_USE_FROM_C);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "input x 6\n"
            "input flag\n"
            "output best 2\n"
            "output at 2\n"
            "output places ?\n"
            "output chosen 6\n"
            "output tripled 6\n"
            "result 9 5\n"
            "result 4 2\n"
            "result 1 2 3 4 5\n"
            "result 0 1 -2 3 -4 5\n"
            "result 0 -3 6 -9 12 -15\n"
            "places: error[program-argument]: its size is not known before a run\n"
            "  note: such values are given and returned as data\n");
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(Engine, RunsInMemoryOfTheCallerFromC) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  maker.twice({x}, {y}, 2, 2);
  save(maker.program);
  const auto outcome = run(TESSERA_USE_FROM_C);
  EXPECT_EQ(outcome.out, "input x 4\noutput y 4\nresult 1 -1 5 -5\nthe same in place\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(Engine, RunsFromCByTheSharedLibrary) {
  Maker maker;
  const auto x = maker.input("x", {4}), y = maker.output("y", {4});
  maker.twice({x}, {y}, 2, 2);
  save(maker.program);
  const auto outcome = run(TESSERA_USE_FROM_C_SHARED);
  EXPECT_EQ(outcome.out, "input x 4\noutput y 4\nresult 1 -1 5 -5\nthe same in place\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(Engine, TheSharedLibraryExportsTheCApiAlone) {
  const auto outcome = run_command(
      "/usr/bin/env", {"nm", "-D", "--defined-only", TESSERA_SHARED_LIBRARY}, folder_.path());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::size_t functions = 0;
  for (std::string address, kind, name; lines >> address >> kind >> name; ++functions)
    EXPECT_TRUE(name.starts_with("tessera_")) << name;
  EXPECT_EQ(functions, 13U) << outcome.out;
}

TEST_F(Engine, RunsFromCpp) {
  save(opaque_and_control_flow());
  const auto outcome = run(TESSERA_USE_FROM_CPP);
  EXPECT_EQ(outcome.out,
            "result 1 1\nresult 0 1\nresult\nresult 0 0 0 0 0 0\nresult 0 0 0 0 0 0\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(Engine, NeedsNoCompiler) {
  for (const char* binary : {TESSERA_USE_FROM_C, TESSERA_USE_FROM_CPP, TESSERA_USE_FROM_C_SHARED}) {
    const auto outcome = run_command("/usr/bin/env", {"ldd", binary}, folder_.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("libc.so"), std::string::npos);
    for (const char* library : {"LLVM", "protobuf", "libz3"})
      EXPECT_EQ(outcome.out.find(library), std::string::npos) << outcome.out;
  }
}

TEST_F(Engine, SaysWhatIsWrongWithAFile) {
  folder_.write("model.tsr", "not a program");
  const auto outcome = run(TESSERA_USE_FROM_C);
  EXPECT_EQ(outcome.err, "open: " + file_.string() +
                             ": error[program-malformed]: this is no saved program\n"
                             "  help: make one with tessera compile\n");
  EXPECT_EQ(outcome.exit_code, 1);
}

TEST(InterpreterHost, RefusesWhatIsNoGraph) {
  const runtime::Host host = interpreter_host();
  const std::vector<Datum> inputs = {numbers({1, 2})};
  EXPECT_FALSE(host("a cat", inputs));
  const auto other = host("graph two(a: i32[2], b: i32[2]) { return a }", inputs);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "1 operands of a host step");
  const auto same = host("graph one(a: i32[2]) { return neg(a) }", inputs);
  ASSERT_TRUE(same) << to_string(same.error());
  EXPECT_EQ(elements_of(same->front()), (std::vector<std::int32_t>{-1, -2}));
}

TEST(CInterface, AnswersAnyMisuse) {
  tessera_program* program = nullptr;
  tessera_session* session = nullptr;
  tessera_value value;
  EXPECT_NE(tessera_open(nullptr, &program), 0);
  EXPECT_STREQ(tessera_error(), "error[program-argument]: a null pointer is given");
  EXPECT_NE(tessera_open("no_such_file.tsr", &program), 0);
  EXPECT_EQ(program, nullptr);
  EXPECT_NE(tessera_input(nullptr, 0, &value), 0);
  EXPECT_NE(tessera_start(nullptr, 1, &session), 0);
  EXPECT_NE(tessera_run(nullptr, nullptr, 0, nullptr, 0), 0);
  EXPECT_NE(tessera_run_tensors(nullptr, nullptr, 0, nullptr, 0), 0);
  EXPECT_EQ(tessera_input_count(nullptr), 0u);
  tessera_close(nullptr);
  tessera_stop(nullptr);

  TemporaryFolder folder;
  const std::string file = (folder.path() / "model.tsr").string();
  ASSERT_TRUE(runtime::save(opaque_and_control_flow(), file));
  ASSERT_EQ(tessera_open(file.c_str(), &program), 0) << tessera_error();
  EXPECT_STREQ(tessera_error(), "");
  EXPECT_NE(tessera_output(program, 5, &value), 0);
  ASSERT_EQ(tessera_start(program, 1, &session), 0) << tessera_error();
  EXPECT_NE(tessera_run(session, nullptr, 2, nullptr, 5), 0);
  const std::array<std::int32_t, 6> x{};
  const std::int64_t six = 6, minus = -6;
  const bool flag = true;
  const tessera_tensor right{TESSERA_I32, 1, &six, x.data(), sizeof x};
  std::array<tessera_tensor, 2> inputs = {right, {TESSERA_BOOL, 0, nullptr, &flag, 1}};
  std::array<tessera_tensor, 5> outputs{};
  const auto run = [&] {
    return tessera_run_tensors(session, inputs.data(), inputs.size(), outputs.data(),
                               outputs.size());
  };
  EXPECT_EQ(run(), 0) << tessera_error();
  for (const tessera_tensor& wrong : std::initializer_list<tessera_tensor>{
           {TESSERA_F32, 1, &six, x.data(), sizeof x},
           {TESSERA_STRING, 1, &six, x.data(), sizeof x},
           {static_cast<tessera_dtype>(99), 1, &six, x.data(), sizeof x},
           {TESSERA_I32, 1, &minus, x.data(), sizeof x},
           {TESSERA_I32, 1, nullptr, x.data(), sizeof x},
           {TESSERA_I32, 1, &six, nullptr, sizeof x},
           {TESSERA_I32, 1, &six, x.data(), 8}}) {
    inputs[0] = wrong;
    EXPECT_NE(run(), 0);
    EXPECT_NE(std::string(tessera_error()).find("program-argument"), std::string::npos);
  }
  tessera_stop(session);
  tessera_close(program);
}

}  // namespace
}  // namespace tessera::engine
