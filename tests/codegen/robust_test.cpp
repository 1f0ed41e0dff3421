#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "tessera/codegen/compile.h"
#include "tessera/support/cpu_time.h"
#include "tessera/tile/interp.h"
#include "tests/codegen/both_ways.h"

namespace tessera::codegen {
namespace {

using tile::Argument;

std::shared_ptr<const CompiledKernel> compiled(const std::string& text,
                                               const Options& options = {}) {
  auto made = compile(parsed(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? *made : nullptr;
}

constexpr const char* kAdd = R"(kernel add(x: view f32[?], y: *f32, n: i64) {
  a: f32[16] = vload(x, mul(pid(), 16))
  lane: i64[16] = iota()
  at = add(lane, mul(pid(), 16))
  store(offset(y, at), a, lt(at, n))
})";

struct BadLaunch {
  const char* what;
  std::vector<Argument> arguments;
  tile::Grid grid;
  const char* id;
};

TEST(Launch, RefusesWhatDoesNotFit) {
  alignas(64) std::array<float, 64> memory{};
  float* x = memory.data();
  auto* odd = reinterpret_cast<std::byte*>(x) + 2;
  const Argument view = Argument::view(DType::F32, x, {20});
  const Argument pointer = Argument::pointer(DType::F32, x + 32, 80);
  const Argument n = Argument::integer(DType::I64, 20);
  Argument short_view = view;
  short_view.bytes = 76;
  Argument negative = pointer;
  negative.bytes = -4;
  const std::int64_t many = std::int64_t{1} << 31;
  const BadLaunch cases[] = {
      {"none", {}, {2, 1, 1}, "launch-argument"},
      {"too few", {view, pointer}, {2, 1, 1}, "launch-argument"},
      {"too many", {view, pointer, n, n}, {2, 1, 1}, "launch-argument"},
      {"order", {pointer, view, n}, {2, 1, 1}, "launch-argument"},
      {"null view",
       {Argument::view(DType::F32, nullptr, {20}), pointer, n},
       {2, 1, 1},
       "launch-argument"},
      {"null pointer",
       {view, Argument::pointer(DType::F32, nullptr, 80), n},
       {2, 1, 1},
       "launch-argument"},
      {"misaligned view",
       {Argument::view(DType::F32, odd, {20}), pointer, n},
       {2, 1, 1},
       "launch-argument"},
      {"misaligned",
       {view, Argument::pointer(DType::F32, odd, 80), n},
       {2, 1, 1},
       "launch-argument"},
      {"dtype", {Argument::view(DType::I32, x, {20}), pointer, n}, {2, 1, 1}, "launch-argument"},
      {"rank", {Argument::view(DType::F32, x, {20, 1}), pointer, n}, {2, 1, 1}, "launch-argument"},
      {"number dtype",
       {view, pointer, Argument::integer(DType::I32, 20)},
       {2, 1, 1},
       "launch-argument"},
      {"stride",
       {Argument::view(DType::F32, x, {20}, {2}), pointer, n},
       {2, 1, 1},
       "launch-argument"},
      {"extent", {Argument::view(DType::F32, x, {-20}), pointer, n}, {2, 1, 1}, "launch-argument"},
      {"huge extent",
       {Argument::view(DType::F32, x, {std::int64_t{1} << 62}), pointer, n},
       {2, 1, 1},
       "launch-argument"},
      {"short memory", {short_view, pointer, n}, {2, 1, 1}, "launch-argument"},
      {"negative bytes", {view, negative, n}, {2, 1, 1}, "launch-argument"},
      {"negative grid", {view, pointer, n}, {-1, 1, 1}, "launch-grid"},
      {"huge grid", {view, pointer, n}, {1, many + 1, 1}, "launch-grid"},
      {"too many programs", {view, pointer, n}, {many, many, many}, "launch-grid"},
  };
  const auto kernel = compiled(kAdd);
  ASSERT_TRUE(kernel);
  for (const BadLaunch& bad : cases) {
    const auto launched = kernel->launch(bad.arguments, bad.grid);
    ASSERT_FALSE(launched) << bad.what;
    EXPECT_EQ(launched.error().id, bad.id) << bad.what;
    EXPECT_FALSE(tile::interpret(kernel->kernel(), bad.arguments, bad.grid)) << bad.what;
  }
}

TEST(Launch, OfNoProgramsDoesNothing) {
  std::array<float, 20> x{}, y{};
  x.fill(1);
  const auto kernel = compiled(kAdd);
  for (const tile::Grid& grid : {tile::Grid{0, 1, 1}, {1, 0, 1}, {7, 5, 0}}) {
    const Argument arguments[] = {Argument::view(DType::F32, x.data(), {20}),
                                  Argument::pointer(DType::F32, y.data(), 80),
                                  Argument::integer(DType::I64, 20)};
    EXPECT_TRUE(kernel->launch(arguments, grid, 2));
  }
  EXPECT_EQ(std::accumulate(y.begin(), y.end(), 0.0f), 0.0f);
}

TEST(Launch, WorksFromSeveralThreadsAtOnce) {
  // Scratch, programs on several threads, and the variant for shared memory, made on first use.
  const auto kernel = compiled(R"(kernel sums(x: view i32[?, ?], out: view i32[?, ?]) {
    t: i32[16, 256] = vload(x, mul(pid(), 16), 0)
    s = scan(permute(t) {order = [1, 0]}) {fn = add, axis = 0}
    vstore(out, mul(pid(), 16), 0, permute(s) {order = [1, 0]})
  })");
  ASSERT_TRUE(kernel);
  std::vector<std::string> failed(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < failed.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        std::vector<std::int32_t> x(64 * 256, static_cast<std::int32_t>(t) + round);
        std::vector<std::int32_t> y(x.size());
        void* out = round % 3 == 0 ? x.data() : y.data();
        const Argument arguments[] = {Argument::view(DType::I32, x.data(), {64, 256}),
                                      Argument::view(DType::I32, out, {64, 256})};
        const std::int32_t each = x[0];
        const auto launched = kernel->launch(arguments, {4, 1, 1}, 1 + round % 2);
        if (!launched) failed[t] = to_string(launched.error());
        const auto* got = static_cast<const std::int32_t*>(out);
        for (int i = 0; i < 64 * 256; ++i) {
          if (got[i] != each * (i % 256 + 1)) failed[t] = fmt::format("round {} at {}", round, i);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& what : failed) EXPECT_EQ(what, "");
}

/// Launches on 20 floats, 20 floats and numbers 0 … 6 as i32.
std::string checked_error(const std::string& text, int threads = 1) {
  const auto kernel = compiled(text, {.checked = true});
  if (!kernel) return "not compiled";
  // Far from each other: what lies in the memory of another argument is not found.
  std::vector<float> x(1000), y(1000);
  std::vector<std::int32_t> z(1000);
  std::iota(z.begin() + 500, z.begin() + 507, 0);
  const Argument arguments[] = {Argument::pointer(DType::F32, x.data() + 500, 80),
                                Argument::pointer(DType::F32, y.data() + 500, 80),
                                Argument::view(DType::I32, z.data() + 500, {7})};
  const auto launched = kernel->launch(arguments, {4, 1, 1}, threads);
  if (launched) return "";
  const auto interpreted = tile::interpret(kernel->kernel(), arguments, {4, 1, 1});
  EXPECT_FALSE(interpreted) << text;
  if (!interpreted) {
    EXPECT_EQ(interpreted.error().id, launched.error().id) << text;
  }
  return launched.error().id + " " + launched.error().where.item;
}

TEST(DebugMode, NamesTheLineOfAnAccessOutsideOfItsMemory) {
  const std::string head =
      "kernel k(x: *f32, y: *f32, z: view i32[?]) {\n  lane: i64[8] = iota()\n";
  const auto body = [&](const std::string& text) { return checked_error(head + text + "\n}"); };
  EXPECT_EQ(body("store(offset(y, lane), load(offset(x, lane)))"), "");
  EXPECT_EQ(body("store(offset(y, lane),\n load(offset(x, add(lane, 13))))"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("store(offset(y, lane),\n load(offset(x, sub(lane, 1))))"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("a = load(offset(x, mul(lane, 4)), lt(lane, 5))\n store(offset(y, lane), a)"), "");
  EXPECT_EQ(body("a = load(offset(x, mul(lane, 4)), lt(lane, 6))\n store(offset(y, lane), a)"),
            "tile-out-of-bounds line 3");
  EXPECT_EQ(body("a: f32[8] = 1.0\n\n store(offset(y, mul(lane, 3)), a)"),
            "tile-out-of-bounds line 5");
  EXPECT_EQ(body("a: f32[8] = 1.0\n o = atomic(offset(y, mul(lane, 3)), a) {fn = add}"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("store(offset(y, 20), load(x))"), "tile-out-of-bounds line 3");
  EXPECT_EQ(body("store(offset(y, mul(pid(), 7)), load(x))"), "tile-out-of-bounds line 3");
  EXPECT_EQ(body("i: i32[8] = vload(z, 0)\n t = load(offset(x, lane))\n"
                 "store(offset(y, lane), gather(t, add(i, 2)))"),
            "tile-out-of-bounds line 5");
  EXPECT_EQ(body("v: view f32[4, 5] = view(x)\n t: f32[8, 8] = vload(v, 0, 0)\n"
                 "store(offset(y, lane), reduce(t) {fn = add, axis = 0})"),
            "");
  EXPECT_EQ(body("v: view f32[4, 6] = view(x)\n t: f32[8, 8] = vload(v, 0, 0)\n"
                 "store(offset(y, lane), reduce(t) {fn = add, axis = 0})"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("v: view f32[21] = view(x)\n t: f32[1] = vload(v, 20)\n"
                 "store(y, reshape(t): f32)"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("v: view f32[5, 5] = view(x)\n t: f32[5, 5] = vload(v, 0, 0)\n"
                 "z5: f32[5, 5] = 0\n d = dot(t, t, z5)\n"
                 "store(y, reduce(reshape(d): f32[25]) {fn = add})"),
            "tile-out-of-bounds line 4");
  EXPECT_EQ(body("t: i32[1] = vload(z, 9) {inside = [1]}\n store(y, cast(reshape(t): i32): f32)"),
            "tile-out-of-bounds line 3");
}

TEST(DebugMode, NamesTheLineOfAFalseAssertion) {
  const std::string head =
      "kernel k(x: *f32, y: *f32, z: view i32[?]) {\n  lane: i64[8] = iota()\n";
  const auto body = [&](const std::string& text) { return checked_error(head + text + "\n}"); };
  EXPECT_EQ(body("assert(lt(lane, 8)) {message = \"small\"}"), "");
  EXPECT_EQ(body("assert(lt(lane, 7)) {message = \"small\"}"), "tile-assertion line 3");
  EXPECT_EQ(body("\n\nassert(lt(pid(), 3)) {message = \"small\"}"), "tile-assertion line 5");
  EXPECT_EQ(body("for (i = 0 to 10 step 1) {\n assert(lt(i, 9)) {message = \"small\"}\n}"),
            "tile-assertion line 4");
  EXPECT_EQ(body("if (gt(pid(), 1)) {\n assert(lt(pid(), 2)) {message = \"small\"}\n}"),
            "tile-assertion line 4");
}

/// Compiles, runs and compares; the compilation is not endless.
void expect_quick(const std::string& text, const TestArguments& arguments, double tolerance = 0) {
  const auto kernel = tile::parse_kernel(text);
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const CpuStopwatch watch(CLOCK_PROCESS_CPUTIME_ID);
  ASSERT_TRUE(compile(*kernel));
  EXPECT_LT(watch.seconds(), 30) << kernel->name;
  expect_both_ways(*kernel, arguments, {1, 1, 1}, tolerance);
}

TEST(Compiling, TakesTilesOfAMillionElements) {
  TestArguments arguments(1);
  arguments.view(DType::F32, {1 << 20}).view(DType::F32, {1 << 20});
  expect_quick(R"(kernel large(x: view f32[?], out: view f32[?]) {
    t: f32[2097152] = vload(x, 0)
    u: f32[2048, 1024] = reshape(mul(t, 2.0))
    p = permute(u) {order = [1, 0]}
    vstore(out, 0, reshape(add(p, 1.0)): f32[2097152])
  })",
               arguments);
}

TEST(Compiling, TakesLongExpressions) {
  TestArguments arguments(2);
  arguments.view(DType::F32, {100}).view(DType::F32, {100});
  const std::string head = "(x: view f32[?], out: view f32[?]) {\n v0: f32[128] = vload(x, 0)\n";
  std::string chain = "kernel chain" + head, maths = "kernel maths" + head;
  for (int i = 0; i < 200; ++i) chain += fmt::format("v{} = add(mul(v{}, 0.5), v0)\n", i + 1, i);
  for (int i = 0; i < 50; ++i)
    maths += fmt::format("v{} = tanh(add(v{}, exp(neg(abs(v0)))))\n", i + 1, i);
  expect_quick(chain + "vstore(out, 0, v200)\n}", arguments, 1e-4);
  expect_quick(maths + "vstore(out, 0, v50)\n}", arguments, 1e-4);
  // Each value is used twice: as many uses as 2^40 if they were expanded.
  std::string doubled =
      "kernel doubled(x: view f32[?], out: view f32[?]) {\n v0: f32[128] = vload(x, 0)\n";
  for (int i = 0; i < 40; ++i)
    doubled += fmt::format("v{} = mul(add(v{}, v{}), 0.5)\n", i + 1, i, i);
  expect_quick(doubled + "vstore(out, 0, v40)\n}", arguments, 1e-5);
  std::string moved =
      "kernel moved(x: view f32[?], out: view f32[?]) {\n r: f32[128] = vload(x, 0)\n v0: f32[8, "
      "16] = reshape(r)\n";
  for (int i = 0; i < 30; ++i) {
    moved += fmt::format(
        "p{0} = permute(v{0}) {{order = [1, 0]}}\n q{0} = add(p{0}, p{0})\n v{1} = add(v{0}, "
        "permute(mul(q{0}, 0.25)) {{order = [1, 0]}})\n",
        i, i + 1);
  }
  expect_quick(moved + "vstore(out, 0, reshape(v30): f32[128])\n}", arguments, 1e-4);
  std::string folded =
      "kernel folded(x: view f32[?], out: view f32[?]) {\n v0: f32[128] = vload(x, 0)\n";
  for (int i = 0; i < 30; ++i)
    folded += fmt::format("m{0} = reduce(v{0}) {{fn = max}}\n v{1} = mul(add(v{0}, m{0}), 0.5)\n",
                          i, i + 1);
  expect_quick(folded + "vstore(out, 0, v30)\n}", arguments, 1e-4);
  std::string shifted =
      "kernel shifted(x: view f32[?], out: view f32[?]) {\n v0: f32[128] = vload(x, 0)\n";
  for (int i = 0; i < 24; ++i) {
    shifted += fmt::format(
        "a{0}: f32[{2}] = slice(v{0}) {{from = [0]}}\n b{0}: f32[{2}] = slice(v{0}) {{from = "
        "[1]}}\n v{1} = mul(add(a{0}, b{0}), 0.5)\n",
        i, i + 1, 127 - i);
  }
  expect_quick(shifted + "vstore(out, 0, v24)\n}", arguments, 1e-4);
}

TEST(Compiling, TakesDeepNests) {
  TestArguments arguments(3);
  arguments.view(DType::I32, {100}).view(DType::I32, {100}).integer(DType::I64, 1);
  std::string head =
      "kernel deep(x: view i32[?], out: view i32[?], n: i64) {\n v0: i32[8] = vload(x, 0)\n";
  std::string loops = head, ifs = head;
  for (int i = 0; i < 30; ++i) {
    loops += fmt::format("r{0} = for (i{0} = 0 to n step 1, v{1} = add(v{0}, 1)) {{\n", i, i + 1);
    ifs += fmt::format("r{0} = if (lt(n, {1})) {{ v{1} = add(v{0}, {1})\n", i, i + 1);
  }
  std::string ends, branches;
  for (int i = 29; i >= 0; --i) {
    ends += fmt::format("yield({})\n}}\n",
                        i == 29 ? std::string("mul(v30, 3)") : fmt::format("r{}", i + 1));
    branches += fmt::format("yield({})\n}} else {{ yield(v{}) }}\n",
                            i == 29 ? std::string("v30") : fmt::format("r{}", i + 1), i);
  }
  expect_quick(loops + ends + "vstore(out, 0, r0)\n}", arguments);
  expect_quick(ifs + branches + "vstore(out, 0, r0)\n}", arguments);
}

TEST(Compiling, TakesKernelsThatDoLittle) {
  TestArguments arguments(4);
  arguments.view(DType::F32, {10}).integer(DType::I64, 3);
  expect_quick("kernel nothing(x: view f32[?], n: i64) {}", arguments);
  expect_quick("kernel unused(x: view f32[?], n: i64) { a: f32[16] = vload(x, n)\n b = exp(a) }",
               arguments);
  expect_quick(
      "kernel scalar(x: view f32[?], n: i64) { p = base(x)\n a = load(offset(p, n))\n store(p, "
      "mul(a, sqrt(abs(a)))) }",
      arguments, 1e-6);
  expect_quick("kernel prints(x: view f32[?], n: i64) { print(n) {message = \"n\"} }", arguments);
  expect_quick(
      "kernel endless(x: view f32[?], n: i64) { k = while (i = n) { yield(lt(i, 100)) } do { "
      "yield(mul(i, 2)) } }",
      arguments);
  TestArguments none(5);
  expect_quick("kernel none() {}", none);
}

TEST(Compiling, TakesManyParametersAndStatements) {
  std::string params, body;
  TestArguments arguments(6);
  for (int i = 0; i < 60; ++i) {
    params += fmt::format("{}p{}: view i32[?, ?] by [?, ?]", i ? ", " : "", i);
    body +=
        fmt::format("t{0}: i32[3, 5] = vload(p{0}, 0, 0)\n vstore(p{1}, 0, 0, add(t{0}, {0}))\n", i,
                    (i + 1) % 60);
    arguments.view(DType::I32, {4, 5});
  }
  expect_quick(fmt::format("kernel many({}) {{\n{}}}", params, body), arguments);
}

TEST(Compiling, RefusesScratchThatNoMemoryHolds) {
  std::string text =
      "kernel huge(x: view f64[?], out: view f64[?]) {\n v0: f64[67108864] = vload(x, 0)\n";
  for (int i = 0; i < 200; ++i) text += fmt::format("v{1} = scan(v{0}) {{fn = add}}\n", i, i + 1);
  for (int i = 0; i < 200; ++i) text += fmt::format("vstore(out, {0}, v{0})\n", i);
  const auto kernel = tile::parse_kernel(text + "}");
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const auto made = compile(*kernel);
  ASSERT_FALSE(made) << (*made)->scratch_bytes();
  EXPECT_EQ(made.error().id, "tile-memory");
}

}  // namespace
}  // namespace tessera::codegen
