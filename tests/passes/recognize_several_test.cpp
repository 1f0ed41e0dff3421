#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/passes/pass_check.h"
#include "tests/passes/respelling.h"

namespace tessera {
namespace {

using testing::only;
using testing::parsed;

/// What the pass says it found, after the others.
std::vector<std::string> named(const Graph& graph, const passes::Options& options = {}) {
  const auto result = passes::optimize(graph, options);
  EXPECT_TRUE(result) << to_string(result.error());
  std::vector<std::string> names;
  if (!result) return names;
  testing::expect_same_results(graph, result->graph, 1e-4);
  for (const passes::Record& record : result->log)
    if (record.pass == "recognize")
      for (const passes::Change& change : record.changes)
        names.push_back(change.what.substr(0, change.what.find(" of ")));
  return names;
}

bool is_named(const Graph& graph, const std::string& name, const passes::Options& options = {}) {
  const auto names = named(graph, options);
  return std::ranges::find(names, name) != names.end();
}

const std::string kHeads = "q: f32[2, 3, 5, 8], k: f32[2, 3, 7, 8], v: f32[2, 3, 7, 4]";

TEST(RecognizeSeveral, AttentionHoweverItIsSpelled) {
  for (const char* body : {
           // scaled scores
           "s = mul(matmul(q, transpose(k) {perm=[0, 1, 3, 2]}), 0.35355338)  "
           "return matmul(softmax(s), v)",
           // both factors scaled by the root, the softmax written out, divided at the end
           "s = add(matmul(mul(q, 0.59460354), mul(transpose(k) {perm=[0, 1, 3, 2]}, 0.59460354)), "
           "m)  e = exp(sub(s, reduce_max(s, [-1])))  return div(matmul(e, v), reduce_sum(e, [3]))",
           // a mask that is added, and one that chooses
           "s = div(matmul(q, transpose(k) {perm=[0, 1, 3, 2]}), 2.828427)  "
           "return matmul(softmax(add(m, s)), v)",
           "s = div(matmul(q, transpose(k) {perm=[0, 1, 3, 2]}), 2.828427)  "
           "return matmul(softmax(where(less(m, 0.0), s, -1e9)), v)",
           "s = einsum(q, k) {equation=\"bhid,bhjd->bhij\"}  "
           "return einsum(softmax(s), v) {equation=\"bhij,bhje->bhie\"}",
       }) {
    SCOPED_TRACE(body);
    const std::string mask = ", m: f32[2, 1, 5, 7]";
    const bool masked = std::string_view(body).find("m") != std::string::npos;
    const Graph graph =
        parsed(fmt::format("graph({}{}) {{ {} }}", kHeads, masked ? mask : "", body));
    EXPECT_TRUE(is_named(graph, "attention"));
  }
}

TEST(RecognizeSeveral, AttentionIsWrittenAsOneKernelComputesIt) {
  testing::expect_pass(
      {.passes = {"recognize", "dce"},
       .before = "graph(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, 4]) { "
                 "e = exp(matmul(mul(q, 0.25), transpose(k) {perm=[0, 2, 1]}))  "
                 "return div(matmul(e, v), reduce_sum(e, [2])) }",
       .after =
           "graph(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, 4]) { "
           "return matmul(softmax(mul(matmul(q, transpose(k) {perm=[0, 2, 1]}), 0.25)), v) }"});
}

TEST(RecognizeSeveral, RotaryEmbeddings) {
  for (const char* body : {
           "r = concat(neg(slice(x, [4], [8], [-1])), slice(x, [0], [4], [-1])) {axis=-1}  "
           "return add(mul(x, c), mul(r, s))",
           "a, b = split(x) {axis=-1, num_outputs=2}  r = concat(neg(b), a) {axis=-1}  "
           "return add(mul(r, s), mul(c, x))",
       }) {
    SCOPED_TRACE(body);
    EXPECT_TRUE(is_named(
        parsed(fmt::format("graph(x: f32[2, 3, 5, 8], c: f32[5, 8], s: f32[5, 8]) {{ {} }}", body)),
        "rotary_embedding"));
  }
  EXPECT_TRUE(is_named(
      parsed("graph(x: f32[2, 3, 5, 8], c: f32[5, 4], s: f32[5, 4]) { "
             "a = slice(x, [0], [4], [-1])  b = slice(x, [4], [8], [-1])  "
             "return concat(sub(mul(a, c), mul(b, s)), add(mul(b, c), mul(s, a))) {axis=-1} }"),
      "rotary_embedding"));
  // Pairs of neighbours.
  EXPECT_TRUE(is_named(
      parsed("graph(x: f32[2, 5, 8], c: f32[5, 4], s: f32[5, 4]) { "
             "p = reshape(x, [2, 5, 4, 2])  a = gather(p, 0) {axis=3}  b = gather(p, 1) {axis=3}  "
             "e = unsqueeze(sub(mul(a, c), mul(b, s)), [3])  "
             "o = unsqueeze(add(mul(a, s), mul(b, c)), [3])  "
             "return reshape(concat(e, o) {axis=3}, [2, 5, 8]) }"),
      "rotary_embedding"));
}

TEST(RecognizeSeveral, WhatIsOnlyAlikeHasNoName) {
  for (const char* text : {
           "graph(x: f32[2, 3, 5, 8], c: f32[5, 8], s: f32[5, 8]) { "
           "r = concat(slice(x, [4], [8], [-1]), slice(x, [0], [4], [-1])) {axis=-1}  "
           "return add(mul(x, c), mul(r, s)) }",
           // the softmax runs along the queries
           "graph(q: f32[2, 7, 8], k: f32[2, 7, 8], v: f32[2, 7, 4]) { "
           "return matmul(softmax(matmul(q, transpose(k) {perm=[0, 2, 1]})) {axis=1}, v) }",
           // rows that are masked as a whole are zeros, not NaN
           "graph(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, 4], m: f32[2, 5, 7]) { "
           "w = softmax(add(matmul(q, transpose(k) {perm=[0, 2, 1]}), m))  "
           "return matmul(where(is_nan(w), 0.0, w), v) }",
           "graph(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, 4], m: f32[2, 5, 7]) { "
           "s = add(matmul(q, transpose(k) {perm=[0, 2, 1]}), m)  "
           "return matmul(where(equal(reduce_max(s, [-1]), -inf), 0.0, softmax(s)), v) }",
           // two masks, one of them with another number: a proof would be looked for very long
           "graph(q: f32[3, 33, 1], k: f32[3, 16, 1], v: f32[3, 16, 1], m: f32[33, 16], "
           "n: f32[33, 1]) { s = matmul(q, transpose(k) {perm=[0, 2, 1]})  "
           "return matmul(where(less(n, 0.0), 0.0, softmax(where(less(m, 0.0), s, -1e4))), v) }",
       })
    EXPECT_TRUE(named(parsed(text), only({"recognize"})).empty()) << text;
}

/// Ways to say the same, of these inputs.
struct Equation {
  const char *inputs, *equation;
};

constexpr Equation kRespellings[] = {
    {"x: f32[*s], y: f32[*s]", "add(x, y) = add(y, x)"},
    {"x: f32[*s], y: f32[*s]", "mul(x, y) = mul(y, x)"},
    {"x: f32[*s], y: f32[*s]", "add(x, y) = sub(x, neg(y))"},
    {"x: f32[*s], y: f32[*s]", "sub(x, y) = add(x, neg(y))"},
    {"x: f32[*s], y: f32[*s]", "mul(x, y) = mul(neg(x), neg(y))"},
    {"x: f32[*s], y: f32[]", "mul(x, y) = div(x, reciprocal(y))"},
    {"x: f32[*s], y: f32[]", "mul(x, y) = mul(mul(x, 2.0), mul(y, 0.5))"},
    {"x: f32[*s]", "neg(x) = mul(x, -1.0)"},
    {"x: f32[*s]", "neg(x) = sub(0.0, x)"},
    {"x: f32[*s]", "exp(x) = reciprocal(exp(neg(x)))"},
    {"x: f32[*s], y: f32[*s]", "div(x, y) = mul(x, reciprocal(y))"},
    {"x: f32[m, k], y: f32[k, n]", "matmul(x, y) = neg(matmul(neg(x), y))"},
    {"x: f32[m, k], y: f32[k, n]", "matmul(x, y) = matmul(mul(x, 2.0), mul(y, 0.5))"},
    {"x: f32[m, k], y: f32[k, n]",
     "matmul(x, y) = "
     "transpose(matmul(transpose(y) {perm=[1, 0]}, transpose(x) {perm=[1, 0]})) {perm=[1, 0]}"},
    {"x: f32[m, 6]",
     "softmax(x) {axis=-1} = "
     "div(exp(x), reduce_sum(exp(x), [1]))"},
    {"x: f32[m, 6]",
     "softmax(x) {axis=-1} = "
     "div(exp(sub(x, reduce_max(x, [1]))), reduce_sum(exp(sub(x, reduce_max(x, [1]))), [1]))"},
};

TEST(SlowRecognizeSeveral, RespelledByRandomRules) {
  const std::pair<const char*, const char*> composites[] = {
      {"attention",
       "graph(q: f32[5, 4], k: f32[6, 4], v: f32[6, 3], m: f32[5, 6]) { return matmul(softmax("
       "add(mul(matmul(q, transpose(k) {perm=[1, 0]}), 0.5), m)) {axis=-1}, v) }"},
      {"rotary_embedding",
       "graph(x: f32[5, 8], c: f32[5, 8], s: f32[5, 8]) { r = concat(neg(slice(x, [4], [8], "
       "[-1])), slice(x, [0], [4], [-1])) {axis=-1}  return add(mul(x, c), mul(r, s)) }"},
  };
  const int count = testing::respellings_asked_for(200);
  testing::Equations equations;
  for (const Equation& one : kRespellings) equations.add(one.inputs, one.equation);
  const rules::RuleSet rules = testing::all_instances(equations.rules());
  std::map<std::string, int> known;
  for (int i = 0; i < count; ++i) {
    const auto& [name, text] = composites[i % 2];
    Rng rng(static_cast<std::uint64_t>(i));
    const Graph graph = testing::respelled(parsed(text), rules, rng, 1 + i / 2 % 8);
    const bool is_known = is_named(graph, name);
    known[name] += is_known ? 1 : 0;
    if (!is_known && std::getenv("TESSERA_VERBOSE") != nullptr)
      fmt::print("{}\n{}", name, to_text(testing::optimized(graph)));
  }
  for (const auto& [name, times] : known) {
    fmt::print("{:<20} {} of {}\n", name, times, count / 2);
    EXPECT_GE(times, count / 2 * 95 / 100) << name;
  }
}

}  // namespace
}  // namespace tessera
