#include "tessera/driver/native_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tessera/driver/golden.h"
#include "tessera/interp/interp.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

Model model_of(const char* text) {
  Model model{.graph = testing::parsed(text), .output_names = {}};
  for (const ValueId output : model.graph.outputs()) {
    model.output_names.push_back(model.graph.name(output));
  }
  return model;
}

constexpr const char* kMlp =
    "graph(x: f32[n, 8], w: f32[8, 5]) { a = matmul(x, w)  b = relu(a)  y = softmax(b)  return y }";

std::vector<Datum> inputs_of(std::int64_t n) {
  return {testing::random_f32({n, 8}, static_cast<std::uint64_t>(n)),
          testing::random_f32({8, 5}, 99)};
}

void expect_same(const Model& model, NativeModel& native, const std::vector<Datum>& inputs) {
  const auto expected = interp::run(model.graph, inputs, {});
  const auto found = native.run(inputs);
  ASSERT_TRUE(expected);
  ASSERT_TRUE(found) << to_string(found.error());
  for (std::size_t i = 0; i < expected->size(); ++i) {
    testing::expect_near((*found)[i].tensor(), (*expected)[i].tensor(), 1e-5);
  }
}

TEST(NativeModel, EachShapeIsCompiledOnce) {
  const Model model = model_of(kMlp);
  NativeModel native(model, {}, {});
  for (const std::int64_t n : {3, 7, 3, 1, 7}) expect_same(model, native, inputs_of(n));
  EXPECT_EQ(native.programs().size(), 3U);
}

TEST(NativeModel, RefusesShapesThatTheModelDoesNotDeclare) {
  const Model model = model_of("graph(x: f32[n, 3], y: f32[n, 1]) { z = add(x, y)  return z }");
  NativeModel native(model, {}, {});
  const auto run = [&](std::int64_t n, std::int64_t width, std::int64_t m) {
    const std::vector<Datum> inputs = {testing::random_f32({n, width}, 1),
                                       testing::random_f32({m, 1}, 2)};
    const auto outputs = native.run(inputs);
    return outputs ? std::string() : outputs.error().id;
  };
  EXPECT_EQ(run(4, 3, 4), "");
  EXPECT_EQ(run(4, 2, 4), "run-input-shape");
  EXPECT_EQ(run(4, 3, 1), "run-input-shape");                        // n is 4 and 1
  ASSERT_TRUE(native.program_for(InputShapes{{{4, 2}}, {{4, 1}}}));  // asked for
  EXPECT_EQ(run(4, 2, 4), "");
}

// How many axes are left is known when the program runs.
TEST(NativeModel, SqueezesASizeThatDependsOnData) {
  const Model model = model_of(
      "graph(x: f32[3, 1, 2], c: bool[3]) { a = compress(x, c) {axis=0}  b = squeeze(a)"
      "  y = relu(b)  return y }");
  NativeModel native(model, {}, {});
  const Tensor x = testing::random_f32({3, 1, 2}, 1);
  for (const std::vector<std::uint8_t>& kept : {std::vector<std::uint8_t>{1, 0, 0}, {1, 0, 1}})
    expect_same(model, native, {x, Tensor::of<std::uint8_t>(DType::Bool, {3}, kept)});
}

// With one class, all of it is elementwise: indices are computed beside what they choose.
TEST(NativeModel, ChecksIndicesThatAreComputedInTheSameGroup) {
  const Model model = model_of(
      "graph(x: f32[1, 1], t: i32[1]) {"
      " y = negative_log_likelihood_loss(x, t) {ignore_index=1}  return y }");
  NativeModel native(model, {}, {});
  expect_same(model, native,
              {testing::random_f32({1, 1}, 3),
               Tensor::of<std::int32_t>(DType::I32, {1}, std::vector<std::int32_t>{0})});
}

// Multiplying by the inverse of the divisor, which is as good for other functions, would give
// another integer.
TEST(NativeModel, DividesBeforeItRounds) {
  const Model model = model_of(
      "graph(x: f32[97, 64]) { a = const i64[1] [1]  m = reduce_max(x, a)  q = div(x, m)"
      "  y = floor(q)  return y }");
  NativeModel native(model, {}, {});
  std::vector<double> numbers(97 * 64);  // row r has multiples of r + 1 up to that of 63
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<double>((i / 64 + 1) * (i % 64 + 1));
  expect_same(model, native, {testing::f32({97, 64}, numbers)});
}

TEST(NativeModel, SumsOfIntegersWrapAroundBeforeTheyAreScaled) {
  const Model model =
      model_of("graph(a: u16[1, 2], b: u16[2, 1]) { y = gemm(a, b) {alpha=0.5}  return y }");
  NativeModel native(model, {}, {});
  const auto u16 = [](std::vector<std::int64_t> shape, const std::vector<std::uint16_t>& numbers) {
    return Tensor::of<std::uint16_t>(DType::U16, std::move(shape), numbers);
  };
  expect_same(model, native, {u16({1, 2}, {65535, 32768}), u16({2, 1}, {7, 3})});
}

// The softmax alone is narrower than the operands.
TEST(NativeModel, AttentionOfDoublesMayHaveASoftmaxOfFloats) {
  const Model model = model_of(
      "graph(q: f64[1, 2, 5, 4], v: f64[1, 2, 5, 4]) {"
      " y = attention(q, v, v) {is_causal=1, left_window_size=0, softmax_precision=\"f32\"}"
      " return y }");
  NativeModel native(model, {}, {});
  std::vector<double> numbers(40);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = 1.0 / (3.0 + static_cast<double>(i));
  const Tensor v = testing::f64({1, 2, 5, 4}, numbers);
  const auto found = native.run(std::vector<Datum>{v, v});  // each row is its own value
  ASSERT_TRUE(found) << to_string(found.error());
  testing::expect_near((*found)[0].tensor(), v, 1e-15);
}

TEST(NativeModel, OnlyTheProgramsUsedLastAreKept) {
  const Model model = model_of("graph(x: f32[n]) { y = relu(x)  return y }");
  NativeModel native(model, {}, {});
  for (std::int64_t n = 1; n <= 20; ++n) {
    expect_same(model, native, {testing::random_f32({n}, 1)});
  }
  EXPECT_EQ(native.programs().size(), NativeModel::kMostPrograms);
}

TEST(NativeModel, ThreadsRunItAtTheSameTime) {
  const Model model = model_of(kMlp);
  NativeModel native(model, {}, {});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::int64_t n = 1; n <= 4; ++n)
    threads.emplace_back([&, n] {
      const std::vector<Datum> inputs = inputs_of(n % 2 + 1);  // two threads share a program
      const auto expected = interp::run(model.graph, inputs, {});
      for (int i = 0; i < 50; ++i) {
        const auto found = native.run(inputs);
        if (!found || distance((*found)[0].tensor(), (*expected)[0].tensor()).error > 1e-5) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(native.programs().size(), 2U);
}

TEST(NativeModel, ASavedProgramRunsOnItsOwnShapes) {
  const Model model = model_of(kMlp);
  const std::vector<Datum> inputs = inputs_of(3);
  auto compiled = compile_model(model, shapes_of(inputs), {});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const auto native = NativeModel::load(std::move(compiled->program), {});
  ASSERT_TRUE(native) << to_string(native.error());
  expect_same(model, **native, inputs);
  EXPECT_EQ((*native)->input_names(), (std::vector<std::string>{"x", "w"}));
  EXPECT_TRUE((*native)->is_saved_program());
  EXPECT_FALSE((*native)->is_for_gpu());
  const auto refused = (*native)->run(inputs_of(2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().id, "program-argument");
}

TEST(NativeModel, AMemoryLimitIsKept) {
  const Model model = model_of(kMlp);
  NativeModel native(model, {}, {.memory_limit = 1});
  const auto refused = native.run(inputs_of(2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().id, "memory-limit");
}

TEST(RunnableProgram, OutputsDoNotShareMemoryWithInputs) {
  const Model model =
      model_of("graph(x: f32[3], c: bool[3]) { a = compress(x, c) {axis=0} return a }");
  NativeModel native(model, {}, {});
  const Tensor x = testing::random_f32({3}, 1);
  const std::vector<Datum> inputs = {
      x, Tensor::of<std::uint8_t>(DType::Bool, {3}, std::vector<std::uint8_t>{1, 1, 1})};
  const auto found = native.run(inputs);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_NE((*found)[0].tensor().bytes.data(), x.bytes.data());
  EXPECT_FALSE(native.programs()[0]->runnable->has_static_arguments());
}

TEST(NativeModel, OutputsKeepTheirNames) {
  Model model = model_of(kMlp);
  model.output_names = {"answer"};
  NativeModel native(model, {}, {});
  const auto entry = native.program_for_arrays(shapes_of(inputs_of(2)));
  ASSERT_TRUE(entry) << to_string(entry.error());
  const runtime::Program& program = (*entry)->program();
  EXPECT_EQ(program.values[program.outputs[0]].name, "answer");
}

TEST(Specialized, ReplacesSymbolsEverywhere) {
  const Model model = model_of("graph(x: f32[n, 4], y: f32[m]) { z = transpose(x)  return z, y }");
  const auto graph = specialized(model.graph, {{{3, 4}}, {{5}}});
  ASSERT_TRUE(graph);
  EXPECT_EQ(to_string(graph->type(graph->outputs()[0])), "f32[4, 3]");
  EXPECT_EQ(to_string(graph->type(graph->outputs()[1])), "f32[5]");
}

TEST(Specialized, AnInputMayHaveAnotherShapeThanDeclared) {
  const Model model = model_of("graph(x: f32[1, 4]) { y = relu(x)  return y }");
  const auto graph = specialized(model.graph, {{{6, 4}}});
  ASSERT_TRUE(graph);
  EXPECT_EQ(to_string(graph->type(graph->outputs()[0])), "f32[6, 4]");
}

TEST(CompileModel, AutoStaysWithinItsBound) {
  const Model model =
      model_of("graph(x: f32[16, 64], w: f32[64, 32]) { y = matmul(x, w)  return y }");
  const InputShapes shapes = {{{16, 64}}, {{64, 32}}};
  const auto loose = compile_model(model, shapes, {.precision = Precision::Auto, .max_error = 0.5});
  ASSERT_TRUE(loose) << to_string(loose.error());
  const auto strict = compile_model(model, shapes, {.precision = Precision::Auto, .max_error = 0});
  ASSERT_TRUE(strict) << to_string(strict.error());
  EXPECT_TRUE(!strict->error || *strict->error == 0 || strict->contraction_dtype == DType::F32);
  if (loose->error) {
    EXPECT_LE(*loose->error, 0.5);
  }
}

TEST(NativeModel, InputsOfAnotherRankAreRefused) {
  const Model model = model_of("graph(x: f32[]) { y = relu(x)  return y }");
  NativeModel native(model, {}, {});
  const auto run = native.run(std::vector<Datum>{testing::random_f32({1}, 1)});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().id, "run-input-shape");
}

}  // namespace
}  // namespace tessera
