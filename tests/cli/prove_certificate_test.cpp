/// `tessera prove --certificate` as a user meets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/certify/certificate.h"
#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using ProveCertificate = testing::TesseraCommand;

constexpr const char* kSource =
    "graph(x: f32[n, 3], y: f32[n, 3]) {\n"
    "  a = add(x, y)\n  b = mul(a, a)\n  c = exp(b)\n  return c\n}\n";
constexpr const char* kTarget =
    "graph(x: f32[n, 3], y: f32[n, 3]) {\n"
    "  a = mul(x, x)\n  b = mul(x, y)\n  c = add(b, b)\n  d = mul(y, y)\n"
    "  e = add(add(a, c), d)\n  f = exp(e)\n  return f\n}\n";

TEST_F(ProveCertificate, IsReplayedOnTheFilesThatItNames) {
  folder.write("a.tessera", kSource);
  folder.write("b.tessera", kTarget);
  const Outcome proved = tessera({"prove", "a.tessera", "b.tessera", "--certificate", "ab"});
  ASSERT_EQ(proved.exit_code, kSuccess) << proved.out << proved.err;
  const Outcome checked = tessera({"rules", "check-certificate", "ab"});
  EXPECT_EQ(checked.exit_code, kSuccess) << checked.out << checked.err;
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr("ab: accepted\nmodels a.tessera and b.tessera\n"),
                    HasSubstr("for all inputs x: f32[n, 3] y: f32[n, 3]"), HasSubstr("sha256 ")));

  const std::string text = folder.read("ab");
  const std::string body = text.substr(0, text.rfind("// seal "));
  const auto expect_rejected = [&](const std::string& from, const std::string& to) {
    std::string other = body;
    const std::size_t at = other.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), to);
    folder.write("forged", certify::sealed(other));
    EXPECT_EQ(tessera({"rules", "check-certificate", "forged"}).exit_code, kNegativeResult) << from;
  };
  expect_rejected("source \"a.tessera\"", "source \"b.tessera\"");
  expect_rejected("assume \"rounding\" \"floating-point operations do not round\"\n", "");
  expect_rejected("input \"x: f32[n, 3]\"", "input \"x: f32[n, 4]\"");
  expect_rejected("x[i0, i1] * y[i0, i1]", "x[i0, i1] + y[i0, i1]");
  expect_rejected(body.substr(body.find("lemma\n")), "");
  const std::size_t file = body.find("file \"") + 6;
  expect_rejected(body.substr(file, 64), std::string(64, '0'));

  // Another model under the same name.
  std::string other = kTarget;
  other.replace(other.find("exp(e)"), 6, "neg(e)");
  folder.write("b.tessera", other);
  EXPECT_EQ(tessera({"rules", "check-certificate", "ab"}).exit_code, kNegativeResult);
}

TEST_F(ProveCertificate, IsNotWrittenWhereThereIsNoProof) {
  folder.write("a.tessera", kSource);
  std::string other = kTarget;
  other.replace(other.find("exp(e)"), 6, "neg(e)");
  folder.write("b.tessera", other);
  EXPECT_EQ(tessera({"prove", "a.tessera", "b.tessera", "--certificate", "ab"}).exit_code,
            kNegativeResult);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ab"));
}

}  // namespace
}  // namespace tessera
