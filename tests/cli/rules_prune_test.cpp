/// `tessera rules prune` and `tessera rules covers` as a user meets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using PruneCli = testing::TesseraCommand;

constexpr const char* kAgain =
    "rule add_again {\n"
    "  numerics reals\n"
    "  source (x: f32[n], y: f32[n], z: f32[n]) { return add(add(x, y), z) }\n"
    "  target { return add(x, add(y, z)) }\n"
    "}\n";
constexpr const char* kRenamed =
    "rule renamed {\n"
    "  numerics reals\n"
    "  source (c: f32[k], b: f32[k], a: f32[k]) { return add(a, add(b, c)) }\n"
    "  target { return add(add(a, b), c) }\n"
    "}\n";
constexpr const char* kFollows =
    "rule follows {\n"
    "  numerics reals\n"
    "  source (a: f32[n], b: f32[n], c: f32[n], d: f32[n]) { return add(add(a, b), add(c, d)) }\n"
    "  target { return add(a, add(c, add(b, d))) }\n"
    "}\n";
constexpr const char* kOther =
    "rule other {\n"
    "  numerics exact\n"
    "  source (x: f32[n]) { return relu(relu(x)) }\n"
    "  target { return relu(x) }\n"
    "}\n";
constexpr const char* kTasoWithRefutedRule =
    "rule 4: 2 -> 2 ops, 1 output(s); inputs t1:2D, t4:2D, t5:2D\n"
    "   src s0 = matmul(t1, t4)\n"
    "   src s1 = matmul(s0, t5)\n"
    "   dst d0 = matmul(t4, t5)\n"
    "   dst d1 = matmul(t1, d0)\n"
    "   map s1 == d1\n"
    "rule 5: 1 -> 1 ops, 1 output(s); inputs t1:2D, t4:2D\n"
    "   src s0 = matmul(t1, t4)\n"
    "   dst d0 = matmul(t4, t1)\n"
    "   map s0 == d0\n";

TEST_F(PruneCli, HelpShowsAnExample) {
  for (const std::string command : {"prune", "covers"}) {
    const Outcome help = tessera({"rules", command, "--help"});
    EXPECT_EQ(help.exit_code, kSuccess);
    EXPECT_THAT(help.out, AllOf(HasSubstr("Example"), HasSubstr("  tessera rules " + command)));
  }
  EXPECT_EQ(tessera({"rules", "prune", "a.rules"}).exit_code, kUsage);
}

TEST_F(PruneCli, PruneWritesWhatIsKeptAndCountsWhatIsNot) {
  folder.write("all.rules", std::string(kFollows) + kAgain + kRenamed + kOther);
  const nlohmann::json object =
      json({"rules", "prune", "all.rules", "--out", "basis.rules", "--json"});
  EXPECT_EQ(object["rules"], 4);
  EXPECT_EQ(object["basis"], 2);
  EXPECT_EQ(object["renamed"], 1);
  EXPECT_EQ(object["common_subgraph"], 0);
  EXPECT_EQ(object["derivable"], 1);
  EXPECT_FALSE(object["stopped"]);
  const nlohmann::json listed = json({"rules", "list", "basis.rules", "--json"});
  ASSERT_EQ(listed["rules"].size(), 2u);
  EXPECT_EQ(listed["rules"][0]["name"], "other");
  EXPECT_EQ(listed["rules"][1]["name"], "add_again");
  EXPECT_THAT(tessera({"rules", "prune", "all.rules", "--out", "basis.rules"}).out,
              HasSubstr("4 rules: 2 kept; dropped: 1 by renaming, 0 by a common subgraph, 1 "
                        "derivable; "));
}

TEST_F(PruneCli, CoversTellsWhatIsThereFollowsAndIsMissing) {
  folder.write("all.rules", std::string(kFollows) + kRenamed + kOther);
  folder.write("basis.rules", kAgain);
  const nlohmann::json object =
      json({"rules", "covers", "all.rules", "--rules", "basis.rules", "--json"});
  EXPECT_EQ(object["total"], 3);
  EXPECT_EQ(object["direct"], 1);
  EXPECT_EQ(object["derivable"], 1);
  EXPECT_EQ(object["missing"], 1);
  EXPECT_EQ(object["missing_names"][0], "other");
  EXPECT_EQ(object["rules"][0]["by"][0], "add_again");
  const Outcome text = tessera({"rules", "covers", "all.rules", "--rules", "basis.rules", "-v"});
  EXPECT_EQ(text.exit_code, kNegativeResult);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("derivable follows: add_again\n"),
                    HasSubstr("direct    renamed: add_again\n"), HasSubstr("missing   other\n"),
                    HasSubstr("3 rules: 1 direct, 1 derivable, 1 missing in ")));
  folder.write("some.rules", kFollows);
  EXPECT_EQ(tessera({"rules", "covers", "some.rules", "--rules", "basis.rules"}).exit_code,
            kSuccess);
  for (const char* flag : {"--iterations", "--rounds"})  // the latter is its former name
    EXPECT_EQ(
        tessera({"rules", "covers", "some.rules", "--rules", "basis.rules", flag, "4"}).exit_code,
        kSuccess);
}

TEST_F(PruneCli, TasosRulesAreProvedFirst) {
  folder.write("taso.txt", kTasoWithRefutedRule);
  const nlohmann::json pruned =
      json({"rules", "prune", "taso.txt", "--out", "basis.rules", "--json"});
  EXPECT_EQ(pruned["basis"], 1);
  EXPECT_EQ(pruned["refuted"][0], "taso_5");
  const nlohmann::json covered =
      json({"rules", "covers", "taso.txt", "--rules", "basis.rules", "--json"});
  EXPECT_EQ(covered["direct"], 1);
  EXPECT_EQ(covered["missing"], 0);
  EXPECT_EQ(covered["refuted"][0], "taso_5");
}

TEST_F(PruneCli, BadFilesAreDiagnostics) {
  folder.write("bad.rules", "rule half {");
  folder.write("empty.rules", "");
  for (const char* file : {"bad.rules", "empty.rules", "absent.rules"}) {
    EXPECT_EQ(tessera({"rules", "prune", file, "--out", "x.rules"}).exit_code, kBadInput);
    EXPECT_EQ(tessera({"rules", "covers", file}).exit_code, kBadInput);
  }
  folder.write("good.rules", kAgain);
  EXPECT_EQ(tessera({"rules", "covers", "good.rules", "--rules", "bad.rules"}).exit_code,
            kBadInput);
  EXPECT_EQ(tessera({"rules", "prune", "good.rules", "--out", "no/such/folder"}).exit_code,
            kBadInput);
}

}  // namespace
}  // namespace tessera
