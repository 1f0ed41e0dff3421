#include "tessera/rules/explain.h"

#include <gtest/gtest.h>

#include "tests/rules/rule_check.h"

namespace tessera {
namespace {

using testing::rules_of;

const char* const kHoistRule =
    "rule hoist { about \"a common factor\" found \"by hand\" "
    "source (x: f32[m, k], a: f32[k, n], b: f32[k, n]) { return matmul(x, add(a, neg(b))) } "
    "target { return sub(matmul(x, a), matmul(x, b)) } }";

TEST(Explain, WritesAnEquation) {
  EXPECT_EQ(equation(rules_of(kHoistRule)[0]), "matmul(x, a + -b) = matmul(x, a) - matmul(x, b)");
}

TEST(Explain, KeepsBracketsThatAreNeeded) {
  const auto rule = rules_of(
      "rule r { source (x: f32[n], y: f32[n]) { return mul(add(x, y), sub(x, sub(y, x))) } "
      "target { return add(add(x, y), mul(x, y)) } }");
  EXPECT_EQ(equation(rule[0]), "(x + y) * (x - (y - x)) = x + y + x * y");
}

TEST(Explain, SaysWhatEachElementIs) {
  EXPECT_EQ(explain(rules_of(kHoistRule)[0]),
            "hoist: a common factor\n"
            "\n"
            "  matmul(x, a + -b) = matmul(x, a) - matmul(x, b)\n"
            "\n"
            "for    x: f32[m, k], a: f32[k, n], b: f32[k, n]\n"
            "holds  from left to right, over the reals; each side rounds in its own way\n"
            "found  by hand\n"
            "\n"
            "source\n"
            "  t0[i0, i1] = -b[i0, i1]\n"
            "  t1[i0, i1] = a[i0, i1] + t0[i0, i1]\n"
            "  t2[m, n] = sum(k) x[m, k] * t1[k, n]\n"
            "  and that is t2\n"
            "\n"
            "target\n"
            "  t0[m, n] = sum(k) x[m, k] * a[k, n]\n"
            "  t1[m, n] = sum(k) x[m, k] * b[k, n]\n"
            "  t2[i0, i1] = t0[i0, i1] - t1[i0, i1]\n"
            "  and that is t2\n");
}

TEST(Explain, DrawsBothSides) {
  const std::string dot = to_dot(
      rules_of("rule r { source (x: f32[n]) { return add(x, 0.0) } target { return x } }")[0]);
  EXPECT_EQ(dot,
            "digraph \"r\" {\n"
            "  rankdir=TB;\n"
            "  subgraph cluster_source {\n"
            "    label=source;\n"
            "    source_v0 [label=\"x\", shape=ellipse];\n"
            "    source_v1 [label=\"0.0\", shape=plaintext];\n"
            "    source_n0 [label=\"add\", shape=box];\n"
            "    source_v0 -> source_n0;\n"
            "    source_v1 -> source_n0;\n"
            "    source_out0 [label=\"\", shape=doublecircle];\n"
            "    source_n0 -> source_out0;\n"
            "  }\n"
            "  subgraph cluster_target {\n"
            "    label=target;\n"
            "    target_v0 [label=\"x\", shape=ellipse];\n"
            "    target_out0 [label=\"\", shape=doublecircle];\n"
            "    target_v0 -> target_out0;\n"
            "  }\n"
            "}\n");
}

}  // namespace
}  // namespace tessera
