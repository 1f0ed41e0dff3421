/// `tessera mutants` as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using MutantsCli = testing::TesseraCommand;

constexpr const char* kTwoConvs =
    "graph(x: f32[n, c, h, w], y: f32[n, c, h, w], k: f32[f, c, 2*s + 1, 2*r + 1]) {\n"
    "  return concat(conv(x, k) {auto_pad=\"SAME_UPPER\"},\n"
    "                conv(y, k) {auto_pad=\"SAME_UPPER\"}) {axis=3}\n"
    "}\n";
constexpr const char* kOneConv =
    "graph(x: f32[n, c, h, w], y: f32[n, c, h, w], k: f32[f, c, 2*s + 1, 2*r + 1]) {\n"
    "  return conv(concat(x, y) {axis=3}, k) {auto_pad=\"SAME_UPPER\"}\n"
    "}\n";

TEST_F(MutantsCli, RegionSaysWhereTheMutantIsWrongAndWritesACorrectedModel) {
  folder.write("two.tessera", kTwoConvs);
  folder.write("one.tessera", kOneConv);
  const Outcome found = tessera({"mutants", "region", "two.tessera", "one.tessera", "-o",
                                 "corrected.tessera", "--picture", "region.svg"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr("wrong output 0 where max(0, -r + w) <= axis 3 < r + w\n"),
                               HasSubstr("the corrected program is proved equal\n")));
  const Outcome proof = tessera({"prove", "two.tessera", "corrected.tessera"});
  EXPECT_EQ(proof.exit_code, 0) << proof.out << proof.err;
  EXPECT_EQ(tessera({"prove", "two.tessera", "one.tessera"}).exit_code, 1);
}

TEST_F(MutantsCli, RegionOfEqualModelsIsEmpty) {
  folder.write("two.tessera", kTwoConvs);
  const Outcome found = tessera({"mutants", "region", "two.tessera", "two.tessera", "--json"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr("\"proved\""), HasSubstr("\"wrong\"")));
}

TEST_F(MutantsCli, HelpHasExamples) {
  for (const char* command : {"find", "region"})
    EXPECT_THAT(tessera({"mutants", command, "--help"}).out,
                HasSubstr(std::string("Example:\n  tessera mutants ") + command));
}

}  // namespace
}  // namespace tessera
