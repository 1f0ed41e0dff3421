/// `tessera rules` and `tessera explain` as a user meets them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/support/file.h"
#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using RulesCli = testing::TesseraCommand;

constexpr const char* kTrue =
    "rule sum_into_matmul {\n"
    "  about    \"x·(y + z) = x·y + x·z\"\n"
    "  numerics reals\n"
    "  both ways\n"
    "  source (x: f32[m, k], y: f32[k, n], z: f32[k, n]) { return matmul(x, add(y, z)) }\n"
    "  target { return add(matmul(x, y), matmul(x, z)) }\n"
    "}\n";
constexpr const char* kAnyRank =
    "rule relu_twice {\n"
    "  about    \"the second relu does nothing\"\n"
    "  numerics exact\n"
    "  source (x: f32[*s]) { return relu(relu(x)) }\n"
    "  target { return relu(x) }\n"
    "}\n";
constexpr const char* kFalse =
    "rule wrong {\n"
    "  numerics reals\n"
    "  source (x: f32[n], y: f32[n]) { return sub(x, y) }\n"
    "  target { return sub(y, x) }\n"
    "}\n";
// Equal only where a row has one element.
constexpr const char* kGuarded =
    "rule guarded {\n"
    "  numerics reals\n"
    "  where    n == 1\n"
    "  source (x: f32[n]) { return mul(x, x) }\n"
    "  target { return mul(x, reduce_sum(x, [0]) {keepdims=1}) }\n"
    "}\n";
constexpr const char* kUnguarded =
    "rule unguarded {\n"
    "  numerics reals\n"
    "  source (x: f32[n]) { return mul(x, x) }\n"
    "  target { return mul(x, reduce_sum(x, [0]) {keepdims=1}) }\n"
    "}\n";
constexpr const char* kTaso =
    "rule 4: 2 -> 2 ops, 1 output(s); inputs t1:2D, t4:2D, t5:2D\n"
    "   src s0 = matmul(t1, t4)\n"
    "   src s1 = matmul(s0, t5)\n"
    "   dst d0 = matmul(t4, t5)\n"
    "   dst d1 = matmul(t1, d0)\n"
    "   map s1 == d1\n";

TEST_F(RulesCli, HelpShowsAnExample) {
  for (const std::string command : {"prove", "fuzz", "list", "show", "check-certificate"}) {
    const Outcome help = tessera({"rules", command, "--help"});
    EXPECT_EQ(help.exit_code, kSuccess);
    EXPECT_THAT(help.out, AllOf(HasSubstr("Example"), HasSubstr("  tessera rules " + command)));
  }
  EXPECT_THAT(tessera({"explain", "--help"}).out, HasSubstr("Example:\n  tessera explain"));
  EXPECT_EQ(tessera({"rules"}).exit_code, kUsage);
}

TEST_F(RulesCli, ProveSaysTheVerdictOfEachRule) {
  folder.write("my.rules", std::string(kTrue) + kAnyRank + kFalse);
  const nlohmann::json object = json({"rules", "prove", "my.rules", "--json"});
  EXPECT_EQ(object["total"], 3);
  EXPECT_EQ(object["proved"], 2);
  EXPECT_EQ(object["refuted"], 1);
  EXPECT_EQ(object["unknown"], 0);
  EXPECT_GE(object["seconds"], 0.0);
  EXPECT_EQ(object["rules"][0]["name"], "sum_into_matmul");
  EXPECT_EQ(object["rules"][0]["verdict"], "proved");
  EXPECT_EQ(object["rules"][0]["guard"], "");
  const nlohmann::json& shown = object["rules"][2]["counterexample"];
  EXPECT_NE(shown["source"], shown["target"]);
  EXPECT_EQ(shown["inputs"][0]["name"], "x");
  EXPECT_EQ(shown["inputs"][0]["shape"][0], shown["sizes"]["n"]);

  const Outcome text = tessera({"rules", "prove", "my.rules"});
  EXPECT_EQ(text.exit_code, kNegativeResult);
  EXPECT_THAT(text.out, AllOf(HasSubstr("refuted  wrong: output 0 at ["),
                              HasSubstr("3 rules: 2 proved, 1 refuted, 0 unknown in ")));
  EXPECT_THAT(tessera({"rules", "prove", "my.rules", "-v"}).out,
              HasSubstr("proved   sum_into_matmul\n"));
}

TEST_F(RulesCli, ARuleHoldsWhereItsOwnGuardDoes) {
  folder.write("guarded.rules", kGuarded);
  const Outcome guarded = tessera({"rules", "prove", "guarded.rules", "-v"});
  EXPECT_EQ(guarded.exit_code, kSuccess) << guarded.out;
  EXPECT_THAT(guarded.out, HasSubstr("proved   guarded where n == 1\n"));
  EXPECT_EQ(tessera({"rules", "fuzz", "guarded.rules"}).exit_code, kSuccess);

  folder.write("unguarded.rules", kUnguarded);
  EXPECT_THAT(tessera({"rules", "prove", "unguarded.rules"}).out, HasSubstr("refuted  unguarded"));
  EXPECT_EQ(tessera({"rules", "fuzz", "unguarded.rules"}).exit_code, kNegativeResult);
}

TEST_F(RulesCli, TasosFormIsKnownByItsContent) {
  folder.write("taso.txt", kTaso);
  folder.write("taso", std::string("# from elsewhere\n\n") + kTaso);
  for (const char* file : {"taso.txt", "taso"}) {
    const Outcome outcome = tessera({"rules", "prove", file, "-v"});
    EXPECT_EQ(outcome.exit_code, kSuccess);
    EXPECT_THAT(outcome.out, HasSubstr("proved   taso_4\n"));
  }
}

TEST_F(RulesCli, AFolderIsReadFileByFile) {
  folder.write("b.rules", kTrue);
  folder.write("a.rules", kAnyRank);
  folder.write("readme.md", "not a rule");
  const nlohmann::json object = json({"rules", "list", ".", "--json"});
  ASSERT_EQ(object["rules"].size(), 2u);
  EXPECT_EQ(object["rules"][0]["name"], "relu_twice");
  EXPECT_EQ(object["rules"][0]["numerics"], "exact");
  EXPECT_EQ(object["rules"][1]["both_ways"], true);
  EXPECT_EQ(tessera({"rules", "list", "absent.rules"}).exit_code, kBadInput);
}

TEST_F(RulesCli, TheShippedRulesAreInTheBinary) {
  EXPECT_THAT(tessera({"rules", "list"}).out, HasSubstr("batch_norm_into_conv "));
  EXPECT_THAT(tessera({"rules", "show", "batch_norm_into_conv"}).out,
              HasSubstr("rule batch_norm_into_conv {\n"));
}

TEST_F(RulesCli, SlowTheShippedRulesAreProvedAndTheirCertificatesAccepted) {
  const Outcome proved = tessera({"rules", "prove", "--certificates", "proofs"});
  EXPECT_EQ(proved.exit_code, kSuccess) << proved.out << proved.err;
  std::vector<std::string> check = {"rules", "check-certificate"};
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "proofs"))
    check.push_back(entry.path().string());
  const Outcome checked = tessera(check);
  EXPECT_EQ(checked.exit_code, kSuccess) << checked.err;
}

TEST_F(RulesCli, SlowTheShippedRulesAgreeOnRandomShapes) {
  const Outcome outcome = tessera({"rules", "fuzz", "--tries", "20"});
  EXPECT_EQ(outcome.exit_code, kSuccess) << outcome.out;
}

TEST_F(RulesCli, VerdictsAndCertificatesDoNotDependOnTheNumberOfThreads) {
  std::string rules = std::string(kTrue) + kAnyRank + kFalse;
  for (int i = 0; i < 8; ++i) {
    std::string copy = kTrue;
    const std::string name = "sum_into_matmul";
    copy.replace(copy.find(name), name.size(), fmt::format("copy_{}", i));
    rules += copy;
  }
  folder.write("my.rules", rules);
  const auto proved = [&](const std::string& threads) {
    nlohmann::json object = json({"rules", "prove", "my.rules", "--json", "--threads", threads,
                                  "--certificates", "proofs" + threads});
    object.erase("seconds");
    for (nlohmann::json& rule : object["rules"]) rule.erase("seconds");
    for (const auto& entry :
         std::filesystem::directory_iterator(folder.path() / ("proofs" + threads)))
      object["texts"][entry.path().filename().string()] = *read_text(entry.path());
    return object;
  };
  const nlohmann::json one = proved("1");
  EXPECT_EQ(one["total"], 11);
  EXPECT_GE(one["texts"].size(), 10u);
  EXPECT_EQ(proved("4"), one);
  EXPECT_EQ(tessera({"rules", "prove", "my.rules", "--threads", "0"}).exit_code, kUsage);
}

TEST_F(RulesCli, ShowPrintsWhatCanBeReadAgain) {
  folder.write("my.rules", kTrue);
  const std::string text = tessera({"rules", "show", "sum_into_matmul", "my.rules"}).out;
  folder.write("again.rules", text);
  EXPECT_EQ(tessera({"rules", "show", "sum_into_matmul", "again.rules"}).out, text);
  EXPECT_EQ(json({"rules", "show", "sum_into_matmul", "my.rules", "--json"})["text"], text);
}

TEST_F(RulesCli, FuzzFindsADifference) {
  folder.write("my.rules", std::string(kTrue) + kFalse);
  const Outcome outcome = tessera({"rules", "fuzz", "my.rules", "--tries", "5", "--seed", "3"});
  EXPECT_EQ(outcome.exit_code, kNegativeResult);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("differs  wrong: output 0 at ["), HasSubstr("1 agree, 1 differ")));
  EXPECT_EQ(
      tessera({"rules", "fuzz", "my.rules", "--tries", "5", "--seed", "3", "-q"}).out.substr(0, 40),
      outcome.out.substr(0, 40));
  EXPECT_EQ(tessera({"rules", "fuzz", "my.rules", "--tries", "0"}).exit_code, kUsage);
}

TEST_F(RulesCli, CertificatesAreWrittenPerInstanceAndChecked) {
  folder.write("my.rules", std::string(kTrue) + kAnyRank + kFalse);
  EXPECT_EQ(tessera({"rules", "prove", "my.rules", "--certificates", "proofs"}).exit_code,
            kNegativeResult);
  for (const char* name : {"sum_into_matmul", "relu_twice.0", "relu_twice.4"}) {
    const std::string file = std::string("proofs/") + name + ".certificate";
    const Outcome outcome = tessera({"rules", "check-certificate", file, "--rules", "my.rules"});
    EXPECT_EQ(outcome.exit_code, kSuccess) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr(file + ": accepted\nrule "), HasSubstr("for all inputs x: f32["),
                      HasSubstr("have the same outputs over the reals"),
                      HasSubstr("assuming (non-finite) that ")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "proofs" / "wrong.certificate"));

  std::string changed = folder.read("proofs/sum_into_matmul.certificate");
  changed.replace(changed.find("unfold 0"), 8, "unfold 1");
  folder.write("changed", changed);
  folder.write("short", changed.substr(0, changed.size() / 2));
  folder.write("empty", "");
  folder.write("another.rules", kGuarded);
  EXPECT_EQ(tessera({"rules", "check-certificate", "proofs/sum_into_matmul.certificate", "--rules",
                     "another.rules"})
                .exit_code,
            kNegativeResult);
  for (const char* file : {"changed", "short", "empty"}) {
    const Outcome outcome = tessera({"rules", "check-certificate", file, "--rules", "my.rules"});
    EXPECT_EQ(outcome.exit_code, kNegativeResult);
    EXPECT_EQ(outcome.out, std::string(file) + ": rejected\n");
  }
  EXPECT_EQ(tessera({"rules", "check-certificate", "absent"}).exit_code, kBadInput);
}

TEST_F(RulesCli, CertificatesOfTasosRulesNameTheGuardThatWasFound) {
  folder.write("taso.txt", kTaso);
  EXPECT_EQ(tessera({"rules", "prove", "taso.txt", "--certificates", "proofs"}).exit_code,
            kSuccess);
  const Outcome outcome =
      tessera({"rules", "check-certificate", "proofs/taso_4.certificate", "--rules", "taso.txt"});
  EXPECT_EQ(outcome.exit_code, kSuccess) << outcome.err;
}

TEST_F(RulesCli, OperatorsPrintTheDefinitionsOfRules) {
  folder.write("my.rules", kTrue);
  const Outcome outcome = tessera({"operators", "--definitions", "--rules", "my.rules"});
  EXPECT_EQ(outcome.exit_code, kSuccess);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("operator add (f32[k, n], f32[k, n])\ndefine(x: f32[#i0, #i1]"),
                    HasSubstr("defaults softmax {axis=-1}\n")));
}

TEST_F(RulesCli, ExplainSaysHowTheProofGoes) {
  folder.write("my.rules", std::string(kTrue) + kGuarded);
  const Outcome outcome = tessera({"explain", "sum_into_matmul", "my.rules"});
  EXPECT_EQ(outcome.exit_code, kSuccess);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("matmul(x, y + z) = matmul(x, y) + matmul(x, z)"),
                                 HasSubstr("proved for all sizes\n"), HasSubstr(" steps: "),
                                 HasSubstr(" unfold")));
  EXPECT_THAT(tessera({"explain", "guarded", "my.rules"}).out,
              AllOf(HasSubstr("where  n is 1\n"), HasSubstr("proved for all sizes where n is 1")));
  const nlohmann::json object = json({"explain", "sum_into_matmul", "my.rules", "--json"});
  EXPECT_EQ(object["verdict"], "proved");
  EXPECT_GT(object["steps"]["unfold"], 0);
}

TEST_F(RulesCli, ExplainDrawsAPicture) {
  folder.write("my.rules", kTrue);
  const Outcome dot = tessera({"explain", "sum_into_matmul", "my.rules", "--dot"});
  EXPECT_THAT(dot.out, HasSubstr("digraph \"sum_into_matmul\" {"));
  EXPECT_EQ(tessera({"explain", "sum_into_matmul", "my.rules", "-o", "picture.dot"}).exit_code,
            kSuccess);
  EXPECT_EQ(folder.read("picture.dot"), dot.out);
  // Whether Graphviz is there depends on the machine.
  const Outcome svg = tessera({"explain", "sum_into_matmul", "my.rules", "-o", "picture.svg"});
  if (svg.exit_code == kSuccess) {
    EXPECT_THAT(folder.read("picture.svg"), HasSubstr("<svg"));
  } else {
    EXPECT_EQ(svg.exit_code, kBadInput);
    EXPECT_THAT(svg.err, AllOf(HasSubstr("error[picture-graphviz]: "), HasSubstr("help: ")));
  }
}

TEST_F(RulesCli, TheTimeLimitHolds) {
  EXPECT_EQ(tessera({"rules", "fuzz", "--tries", "1000000", "--time-limit", "300ms"}).exit_code,
            kLimit);
}

}  // namespace
}  // namespace tessera
