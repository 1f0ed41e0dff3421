#include "tessera/tile/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/tile/random_kernel.h"

namespace tessera::tile {
namespace {

using ::testing::HasSubstr;

/// What a text prints as, or its diagnostic.
std::string reprinted(const std::string& text) {
  const auto kernel = parse_kernel(text, "k.tile");
  return kernel ? to_text(*kernel) : to_string(kernel.error());
}

/// A kernel of these statements, over parameters of every kind.
std::string around(const std::string& body) {
  return "kernel k(x: f32, n: i64, p: *f32, q: *i32, v: view f32[?, 8], w: view f32[?]) {\n" +
         body + "\n}\n";
}

void expect_prints(const std::string& body, const std::string& printed) {
  const std::string text = reprinted(around(body));
  EXPECT_EQ(text, around(printed));
  EXPECT_EQ(reprinted(text), text);
}

void expect_diagnostic(const std::string& body, const std::string& diagnostic) {
  EXPECT_THAT(reprinted(around(body)), HasSubstr(diagnostic));
}

TEST(TileText, PrintsWhatItReads) {
  const std::string text =
      "kernel 'a b'(x: view f32[?, 64] by [?, 2], p: *bool, n: u64) {\n"
      "  i: i64 = pid() {axis = 2}\n"
      "  zero: i64 = 0\n"
      "  t: f32[8, 64] = vload(x, i, zero) {pad = -inf, inside = [0, 1]}\n"
      "  s: f32[8, 64] = scan(t) {fn = add, axis = 1, reverse = 1}\n"
      "  h: i64 = hint(i) {multiple_of = [16]}\n"
      "  c: u64 = 18446744073709551615\n"
      "  b: bool = lt(n, c)\n"
      "  assert(b) {message = \"a \\\"b\\\"\"}\n"
      "  part: f32[2, 3] = slice(s) {from = [1, 0]}\n"
      "  turned: f32[3, 2] = permute(part) {order = [1, 0]}\n"
      "  vstore(x, h, zero, turned)\n"
      "  old: bool = load(p, b)\n"
      "  print(old, turned)\n"
      "  barrier()\n"
      "}\n";
  EXPECT_EQ(reprinted(text), text);
}

TEST(TileText, ReadsRequestsOfBlocks) {
  for (const std::string request :
       {"block(stages = 3)", "block(stages = 2, warps = 8)", "block(producers = tma)",
        "block(stages = 4, warps = 4, producers = none)", "block(producers = async)"}) {
    const std::string text = "kernel k(x: f32) " + request + " {\n}\n";
    EXPECT_EQ(reprinted(text), text);
  }
  EXPECT_EQ(reprinted("kernel k(x: f32) block() { }"), "kernel k(x: f32) {\n}\n");
  EXPECT_THAT(reprinted("kernel k(x: f32) block(stages = 0) { }"), HasSubstr("stages is 0"));
  EXPECT_THAT(reprinted("kernel k(x: f32) block(lanes = 2) { }"), HasSubstr("no lanes"));
  EXPECT_THAT(reprinted("kernel k(x: f32) block(producers = all) { }"), HasSubstr("all are no"));
}

TEST(TileText, InfersTypesThatFollow) {
  expect_prints("i = pid()\n  y = load(p)\n  z = exp(y)\n  c = lt(y, z)",
                "  i: i64 = pid() {axis = 0}\n  y: f32 = load(p)\n  z: f32 = exp(y)\n"
                "  c: bool = lt(y, z)");
}

TEST(TileText, GivesNumbersTheTypeOfWhatStandsBeside) {
  expect_prints("y = mul(2, x)", "  v0: f32 = 2.0\n  y: f32 = mul(v0, x)");
  expect_prints("c = select(true, x, -1)",
                "  v0: bool = true\n  v1: f32 = -1.0\n  c: f32 = select(v0, x, v1)");
  expect_prints("store(q, -7)", "  v0: i32 = -7\n  store(q, v0)");
  expect_prints("y = load(p, true, nan)",
                "  v0: bool = true\n  v1: f32 = nan\n  y: f32 = load(p, v0, v1)");
  expect_prints("y: f32[4] = add(1.0, 2.0)",
                "  v0: f32[4] = 1.0\n  v1: f32[4] = 2.0\n  y: f32[4] = add(v0, v1)");
}

TEST(TileText, StartsADotFromANumber) {
  expect_prints("a: bf16[2, 3] = 1.0\n  c = dot(a, permute(a) {order = [1, 0]}, 0)",
                "  a: bf16[2, 3] = 1.0\n  v0: bf16[3, 2] = permute(a) {order = [1, 0]}\n"
                "  v1: f32[2, 2] = 0.0\n  c: f32[2, 2] = dot(a, v0, v1)");
}

TEST(TileText, SpreadsScalarsBesideTiles) {
  expect_prints("i: i64[4] = iota()\n  y = load(offset(p, i), lt(i, n), 1)",
                "  i: i64[4] = iota()\n  v0: *f32[4] = broadcast(p)\n"
                "  v1: *f32[4] = offset(v0, i)\n  v2: i64[4] = broadcast(n)\n"
                "  v3: bool[4] = lt(i, v2)\n  v4: f32[4] = 1.0\n"
                "  y: f32[4] = load(v1, v3, v4)");
}

TEST(TileText, TakesTheTypeOfANestedOperationAfterIt) {
  expect_prints("y = exp(broadcast(x): f32[2, 2])",
                "  v0: f32[2, 2] = broadcast(x)\n  y: f32[2, 2] = exp(v0)");
}

TEST(TileText, ReadsLoopsAndBranches) {
  expect_prints(
      "s = for (i = 0 to n step 2, acc: f32[4] = 0) unroll 4 { yield(acc) }\n"
      "w2 = while (h = x) { yield(gt(h, 1)) } do { yield(mul(h, 0.5)) }\n"
      "if (gt(n, 0)) { store(p, w2) }",
      "  v0: i64 = 0\n  v1: i64 = 2\n  v2: f32[4] = 0.0\n"
      "  s: f32[4] = for (i: i64 = v0 to n step v1, acc: f32[4] = v2) stages 0 unroll 4 {\n"
      "    yield(acc)\n  }\n"
      "  w2: f32 = while (h: f32 = x) {\n    v3: f32 = 1.0\n    v4: bool = gt(h, v3)\n"
      "    yield(v4)\n  } do {\n    v5: f32 = 0.5\n    v6: f32 = mul(h, v5)\n    yield(v6)\n  }\n"
      "  v7: i64 = 0\n  v8: bool = gt(n, v7)\n  if (v8) {\n    store(p, w2)\n  }");
}

TEST(TileText, MakesNamesUnique) {
  Kernel kernel = *parse_kernel(around("a = neg(x)\n  b = neg(a)\n  'true' = neg(b)"));
  for (Value& value : kernel.values) value.name = "y";
  const std::string text = to_text(kernel);
  EXPECT_THAT(text, HasSubstr("y_8: f32 = neg(y_7)"));
  EXPECT_EQ(reprinted(text), text);
}

TEST(TileText, QuotesNamesThatReadAsNumbers) {
  expect_prints("'true' = neg(x)\n  'inf' = neg('true')",
                "  'true': f32 = neg(x)\n  'inf': f32 = neg('true')");
}

TEST(TileText, KeepsEveryRandomKernel) {
  testing::for_each_random_kernel(1, 150, {.exact = false}, [](const auto& random) {
    const std::string text = to_text(random.kernel);
    EXPECT_EQ(reprinted(text), text);
  });
}

TEST(TileText, KnowsTheLineOfEachOperation) {
  const auto kernel = parse_kernel(around("a = neg(x)\n\n  b = abs(neg(a))"), "k.tile");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->ops[0].source, (Source{"k.tile", 2}));
  EXPECT_EQ(kernel->ops[2].source, (Source{"k.tile", 4}));
}

TEST(TileText, ExamplesOfTheDocumentationAreRead) {
  std::ifstream file(TESSERA_SOURCE_DIR "/docs/tile.md");
  std::stringstream all;
  all << file.rdbuf();
  const std::string page = all.str();
  int read = 0;
  for (std::size_t at = page.find("```\n"); at != std::string::npos;) {
    const std::size_t end = page.find("```\n", at + 4);
    ASSERT_NE(end, std::string::npos);
    const std::string example = page.substr(at + 4, end - at - 4);
    at = page.find("```\n", end + 4);
    if (example.find("NAME") != std::string::npos) continue;  // the schema
    const auto kernel = parse_kernel(example);
    EXPECT_TRUE(kernel) << example << to_string(kernel.error());
    ++read;
  }
  EXPECT_EQ(read, 6);
}

TEST(TileText, SubstitutesConstants) {
  const std::string text =
      "kernel k(x: view f32[?, D], D: const = 8, out: view f32[?, D], B: const = 4) {\n"
      "  a: f32[B, D] = vload(x, mul(pid(), B), 0)\n"
      "  vstore(out, mul(pid(), B), 0, add(a, B))\n}\n";
  EXPECT_FALSE(parse_kernel(text));  // D is used before it is declared
  const std::string ordered =
      "kernel k(D: const = 8, x: view f32[?, D], out: view f32[?, D], B: const = 4) {\n"
      "  a: f32[B, D] = vload(x, mul(pid(), B), 0)\n"
      "  vstore(out, mul(pid(), B), 0, add(a, B))\n}\n";
  const auto kernel = parse_kernel(ordered, {}, {{"B", 16}, {"unknown", 3}});
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->constants, (std::vector<Constant>{{"D", 8}, {"B", 16}}));
  EXPECT_EQ(kernel->params().size(), 2u);
  std::string plain = ordered;  // the same with numbers in place of the names
  for (const auto& [from, to] : {std::pair{"D: const = 8, ", ""},
                                 {", B: const = 4", ""},
                                 {"[B, D]", "[16, 8]"},
                                 {"?, D]", "?, 8]"},
                                 {"?, D]", "?, 8]"},
                                 {", B)", ", 16)"},
                                 {", B)", ", 16)"},
                                 {", B)", ", 16)"}})
    plain.replace(plain.find(from), std::string_view(from).size(), to);
  EXPECT_EQ(to_text(*kernel), to_text(*parse_kernel(plain)));
}

TEST(TileText, RefusesConstantsThatAreNone) {
  const auto message = [](const std::string& params) {
    const auto kernel = parse_kernel("kernel k(" + params + ") {}");
    return kernel ? "parsed" : kernel.error().message;
  };
  EXPECT_EQ(message("B: const = 4"), "parsed");
  EXPECT_EQ(message("B: const = 0"), "constant B is 0");
  EXPECT_EQ(message("B: const"), "found )");
  EXPECT_EQ(message("B: const = 1.5"), "found 1.5");
  EXPECT_EQ(message("B: const = 4, B: const = 8"), "found B");
  EXPECT_EQ(message("B: i64, B: const = 8"), "B is defined again");
}

TEST(TileText, NamesTheLineOfAMistake) {
  expect_diagnostic("a = neg(x)\n  b = add(a, n)",
                    "k.tile: line 3: error[tile-type]: add(f32, i64) does not fit\n"
                    "  note: operands of equal types");
}

TEST(TileText, RefusesWhatIsNotDefined) {
  expect_diagnostic("a = neg(y)", "error[tile-structure]: y is not defined here");
  expect_diagnostic("if (gt(x, 0)) { a = neg(x) }\n  b = neg(a)", "a is not defined here");
  expect_diagnostic("a = sqr(x)", "error[tile-structure]: sqr is not an operation");
  expect_diagnostic("a = map(x)", "map is not an operation");
  expect_diagnostic("a = exchange(x, x)", "exchange is not an operation");
  expect_diagnostic("a = neg(x) {axis = 1}", "neg has no attribute axis");
}

TEST(TileText, RefusesANameThatIsGivenTwice) {
  expect_diagnostic("a = neg(x)\n  a = neg(a)",
                    "line 3: error[tile-structure]: a is defined again");
  expect_diagnostic("for (n = 0 to 4 step 1) {}", "n is defined again");
}

TEST(TileText, RefusesNumbersThatDoNotFit) {
  expect_diagnostic("store(q, 2147483648)", "2147483648 does not fit into i32");
  expect_diagnostic("store(q, 1.5)", "1.5 does not fit into i32");
  expect_diagnostic("a: u8 = -1", "-1 does not fit into u8");
  expect_diagnostic("a: u64 = 18446744073709551616", "this integer exceeds 64 bits");
  expect_diagnostic("a = add(x, true)", "true does not fit into f32");
  expect_diagnostic("vstore(w, 0, 1.0)", "the type of 1.0 does not follow");
  expect_diagnostic("a = 1.0", "this constant has no type");
}

TEST(TileText, AsksForTypesThatDoNotFollow) {
  expect_diagnostic("a = broadcast(x)", "error[tile-type]: a has no type");
  expect_diagnostic("a = neg(cast(n))", "error[tile-type]: cast has no type");
  expect_diagnostic("a = neg(store(p, x))", "error[tile-type]: store has no type");
}

TEST(TileText, RefusesTypesThatAreNone) {
  for (const char* type :
       {"string", "f32[0]", "f32[?]", "f32[67108865]", "f32[4294967296, 4294967296]",
        "f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "view f32[]",
        "view f32[4] by [1, 1]", "view f32[9223372036854775807, 9223372036854775807, 3]"}) {
    EXPECT_THAT(reprinted(around(std::string("a: ") + type + " = 0")),
                HasSubstr("error[tile-type]: this is not a type of a value"))
        << type;
  }
  expect_diagnostic("a: f33 = 0", "error[text-syntax]: found f33");
  EXPECT_THAT(reprinted("kernel k(x: f32[4]) {}"), HasSubstr("parameter x is f32[4]"));
}

TEST(TileText, RefusesTextThatStopsAnywhere) {
  const std::string text = around(
      "s = for (i = 0 to n step 2, acc: f32[4] = 0.5) unroll 4 { yield(add(acc, 1)) }\n"
      "(m, j) = reduce(s, s) {axis = 0} (a, b, c, d) { yield(a, d) }\n"
      "t: f32[2, 8] = vload(v, n, 0) {pad = -inf, inside = [0, 1]}");
  ASSERT_THAT(reprinted(text), HasSubstr("kernel k("));
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(parse_kernel(text.substr(0, length))) << text.substr(0, length);
  }
}

TEST(TileText, RefusesWhatIsNestedTooDeeply) {
  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  expect_diagnostic("a = " + repeated("neg(", 100000), "this is nested too deeply");
  expect_diagnostic(repeated("if (gt(x, 0)) {", 100000), "this is nested too deeply");
  const int fits = 150;
  const std::string nested = repeated("if (gt(x, 0)) {", fits) + repeated("}", fits);
  EXPECT_THAT(reprinted(around(nested)), HasSubstr("kernel k("));
}

}  // namespace
}  // namespace tessera::tile
