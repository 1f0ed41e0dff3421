#include "tessera/rules/taso.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tessera/prove/prove.h"
#include "tessera/prove/refute.h"
#include "tessera/prove/sizes.h"
#include "tessera/support/file.h"
#include "tests/support/graph_check.h"

namespace tessera::rules {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = TESSERA_SOURCE_DIR;

struct File {
  std::vector<Rule> rules;
  std::set<std::string> unsound;  // by the notes
};

File read(const fs::path& path) {
  const auto text = read_text(path);
  EXPECT_TRUE(text) << to_string(text.error());
  if (!text) return {};
  auto rules = parse_taso(*text, path.filename().string());
  EXPECT_TRUE(rules) << to_string(rules.error());
  if (!rules) return {};
  File file{.rules = *std::move(rules), .unsound = {}};
  // A note stands between the beginning of its rule and that of the next.
  for (std::size_t at = text->find("\n   UNSOUND"); at != std::string::npos;
       at = text->find("\n   UNSOUND", at + 1)) {
    const std::size_t begin = text->rfind("\nrule ", at) + 6;
    file.unsound.insert("taso_" + text->substr(begin, text->find(':', begin) - begin));
  }
  return file;
}

/// What the target needs beyond the source.
Expected<Guard> needs(const Rule& rule) {
  TESSERA_TRY(const prove::SizeRelations given,
              prove::relate_sizes(rule.source, {}, prove::Broadcasting::Open));
  TESSERA_TRY(const prove::SizeRelations own, prove::relate_sizes(rule.source));
  TESSERA_TRY(const prove::SizeRelations both, prove::relate_sizes(rule.target, own));
  TESSERA_TRY(const prove::SizeRelations all,
              prove::relate_outputs(rule.source, rule.target, both));
  return prove::beyond(given, all);
}

/// Those that are refuted even where the target fits, and how, are the unsound ones.
void expect_refuted_if_unsound(const File& file) {
  for (const Rule& rule : file.rules) {
    const auto guard = needs(rule);
    ASSERT_TRUE(guard) << rule.name << ": " << to_string(guard.error());
    const prove::Verdict verdict = prove::refute(rule.source, rule.target, *guard, {.tries = 20});
    const auto* refuted = std::get_if<prove::Refuted>(&verdict);
    EXPECT_EQ(refuted != nullptr, file.unsound.contains(rule.name))
        << rule.name << " where " << to_text(*guard) << ": "
        << (refuted != nullptr ? refuted->what : std::get<prove::Unknown>(verdict).why);
    if (refuted == nullptr) continue;
    const auto again = prove::replay(rule.source, rule.target, *refuted);
    ASSERT_TRUE(again) << rule.name << ": " << to_string(again.error());
    EXPECT_TRUE(*again) << rule.name;
  }
}

const Rule& named(const File& file, const std::string& name) {
  const auto rule = std::ranges::find(file.rules, name, &Rule::name);
  TESSERA_CHECK(rule != file.rules.end(), "there is no {}", name);
  return *rule;
}

class TasoSmall : public ::testing::Test {
 protected:
  const File file = read(kSource / "tests/fixtures/taso_small.txt");
};

TEST_F(TasoSmall, SaysWhatItsTextSays) {
  ASSERT_EQ(file.rules.size(), 16);
  const Rule& rule = named(file, "taso_0");
  EXPECT_EQ(rule.about, "matmul(matmul(t1, t4), t5)  ==  matmul(t1, matmul(t4, t5))");
  testing::expect_graph(rule.source,
                        "graph(t1: f32[t1.0, t1.1], t4: f32[t4.0, t4.1], t5: f32[t5.0, t5.1]) {"
                        " return matmul(matmul(t1, t4), t5) }");
}

TEST_F(TasoSmall, WindowsAreAnyOddOnesAndEachConvHasItsGroups) {
  testing::expect_graph(
      named(file, "taso_3").target,
      "graph(t7: f32[t7.0, t7.1, t7.2, t7.3],"
      " t10: f32[t10.0, t10.1, 2*t10.2r + 1, 2*t10.3r + 1],"
      " t11: f32[t11.0, t11.1, 2*t11.2r + 1, 2*t11.3r + 1]) {"
      " return conv(t7, concat(t10, t11) {axis=0}) {auto_pad=\"SAME_UPPER\", strides=[1, 1],"
      " group=$d1.group} }");
}

TEST_F(TasoSmall, WindowsAreAsWrittenBesidesWindowsOfConstants) {
  const Rule& rule = named(file, "taso_10");
  testing::expect_graph(
      rule.source,
      "graph(t7: f32[t7.0, t7.1, t7.2, t7.3], t10: f32[t10.0, t10.1, 1, 3]) {"
      " return relu(conv(t7, t10) {auto_pad=\"SAME_UPPER\", strides=[1, 1], group=$s0.group}) }");
  const Graph& pooled = named(file, "taso_6").source;
  EXPECT_EQ(to_string(pooled.type(pooled.inputs()[1])), "f32[like0.0]");
}

TEST_F(TasoSmall, ACommentMayFixAShape) {
  const Graph& graph = named(file, "taso_15").source;
  EXPECT_EQ(to_string(graph.type(graph.inputs()[1])), "f32[1, 1, 3, 3]");
}

TEST_F(TasoSmall, AnyRankIsSaidSo) {
  const Graph& graph = named(file, "taso_1").source;
  EXPECT_TRUE(is_any_rank(graph.type(graph.inputs()[0]).shape->at(0)));
}

TEST_F(TasoSmall, OnlyTheUnsoundOneIsRefuted) {
  EXPECT_EQ(file.unsound, std::set<std::string>{"taso_3"});
  expect_refuted_if_unsound(file);
}

TEST_F(TasoSmall, TheGuardIsWhatTheTargetNeeds) {
  const auto guard = needs(named(file, "taso_2"));
  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(to_text(*guard), "s2.group == s0.group, t8.2 == t7.2, t8.3 == t7.3");
}

TEST(Taso, SlowPublishedRulesAreRefutedIfUnsound) {
  const fs::path path = kSource / "../shared/data/taso_rules.txt";
  if (!fs::exists(path)) return;
  const File file = read(path);
  EXPECT_EQ(file.rules.size(), 133);
  EXPECT_EQ(file.unsound.size(), 11);
  expect_refuted_if_unsound(file);
}

void expect_taso_error(std::string_view lines, std::string_view expected) {
  const std::string text = fmt::format("rule 3: 1 -> 1 ops; inputs t1:2D, t7:4D\n{}", lines);
  const auto rules = parse_taso(text, "a.txt");
  ASSERT_FALSE(rules) << text;
  EXPECT_EQ(to_string(rules.error()), expected);
}

TEST(Taso, SaysWhatItCannotRead) {
  expect_taso_error("src s0 = sigmoid(t1)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: there is no operator sigmoid");
  expect_taso_error("src s0 = relu(t1, t1)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: relu has 2 arguments\n  note: it takes 1");
  expect_taso_error("src s0 = relu(t2)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: t2 is not there\n"
                    "  note: a value is an input or made before");
  expect_taso_error("src s0 = relu(t1)\nmap s0.1 == t1",
                    "a.txt: line 3: error[taso-syntax]: s0 has no result 1");
  expect_taso_error("src s0 = conv[s=1,1](t7, t7)\nmap s0 == t7",
                    "a.txt: line 2: error[taso-syntax]: conv has no window");
  expect_taso_error("src s0 = conv3x99[s=1,1](t7, t7)\nmap s0 == t7",
                    "a.txt: line 2: error[taso-syntax]: the window is 3x99\n"
                    "  note: it has at most 31 rows and columns");
  expect_taso_error("src s0 = conv3x3[s=1,1 pad=SAME act=tanh](t7, t7)\nmap s0 == t7",
                    "a.txt: line 2: error[taso-syntax]: act is tanh\n  note: it is none or relu");
  expect_taso_error("src s0 = concat[axis=3 ndim=2](t1, t1)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: the axis is 3\n  note: t1 has 2 axes");
  expect_taso_error("src s0 = split[axis=0 n=2](t1)\nmap s0.0 == t1",
                    "a.txt: line 2: error[taso-syntax]: 2 parts are split along axis 0\n"
                    "  note: 0 were put together");
  expect_taso_error("src s0 = relu[alpha=1](t1)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: there is no option alpha");
  expect_taso_error("src s0 = matmul(t1, t7)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: t7 has 4 axes\n  note: 2 are expected");
  expect_taso_error("src s0 = ewadd(t1, t7)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: t7 has 4 axes\n  note: 2 are expected");
  expect_taso_error("src s0 = transpose[perm=0,0](t1)\nmap s0 == t1",
                    "a.txt: line 2: error[op-operands]: axis 0 is named twice");
  expect_taso_error("src s0 = constant_one\nsrc s1 = concat[axis=0 ndim=99](s0, s0)\nmap s1 == t1",
                    "a.txt: line 3: error[taso-syntax]: concat has 99 axes\n"
                    "  note: there are at most 8");
  expect_taso_error("src s0 = relu(t1\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: the line ends here\n  note: ) is expected");
  expect_taso_error("scr s0 = relu(t1)\nmap s0 == t1",
                    "a.txt: line 2: error[taso-syntax]: found 'scr s0 = relu(t1)'\n"
                    "  note: src, dst or map is expected");
  expect_taso_error("src s0 = relu(t1)",
                    "a.txt: line 1: error[taso-syntax]: rule 3 maps no output");
}

}  // namespace
}  // namespace tessera::rules
