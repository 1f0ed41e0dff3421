#include "tessera/rules/certified.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

constexpr const char* kScaledRelu =
    "rule scaled_relu {\n"
    "  numerics reals\n"
    "  where    m == n\n"
    "  source (x: f32[n, k], y: f32[m, k]) { return relu(mul(sub(x, y), 2.0)), add(x, y) }\n"
    "  target { return mul(relu(sub(x, y)), 2.0), add(y, x) }\n"
    "}\n";

Rule parsed(const std::string& text) {
  auto rules = parse_rules(text);
  EXPECT_TRUE(rules) << to_string(rules.error());
  return rules ? std::move((*rules)[0]) : Rule{};
}

/// The certificate of a rule that is proved.
certify::Certificate certificate_of(const Rule& rule) {
  const RuleProof proof = prove_rule(rule, Guards::Stated, {});
  const auto* proved = std::get_if<prove::Proved>(&proof.verdict);
  EXPECT_NE(proved, nullptr);
  if (proved == nullptr) return {};
  auto made = certified(proof.instances[0], *proved);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? *std::move(made) : certify::Certificate{};
}

Expected<CertifiedRule> checked(const std::string& text, const KnownRules& known = {}) {
  TESSERA_TRY(const certify::Certificate certificate, certify::parse_certificate(text));
  return check_certificate(certificate, known);
}

/// A certificate with a piece of its text replaced, and sealed again.
std::string forged(std::string text, const std::string& from, const std::string& to) {
  text.erase(text.rfind("// seal "));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return certify::sealed(text);
}

TEST(Certified, SaysWhatItIsAbout) {
  const Rule rule = parsed(kScaledRelu);
  const std::string text = to_text(certificate_of(rule));
  const auto shown = checked(text, {.rules = {rule}, .only = true});
  ASSERT_TRUE(shown) << to_string(shown.error());
  EXPECT_EQ(shown->words(),
            "rule scaled_relu\n"
            "  for all inputs x: f32[n, k], y: f32[m, k]\n"
            "  of all sizes of at least 1 that the source accepts, where m == n\n"
            "  source { return relu(mul(sub(x, y), 2.0)), add(x, y) }\n"
            "  and target { return mul(relu(sub(x, y)), 2.0), add(y, x) }\n"
            "  have the same outputs over the reals\n"
            "  assuming (rounding) that floating-point operations do not round\n"
            "  assuming (non-finite) that no input and no result is infinite or NaN\n"
            "  assuming (empty) that all sizes are at least 1\n");
}

/// An edit of a certificate after which it claims something else.
struct Forgery {
  const char *from, *to;
};

constexpr const char* kNorm =
    "rule norm {{\n"
    "  source (x: f32[n, c], k: f32[c], b: f32[c], m: f32[c], v: f32[c], e: f32[]) {{ "
    "return batch_normalization(x, k, b, m, v) {{epsilon=$e}} }}\n"
    "  target {{ return add(mul(div(sub(x, m), sqrt(add(v, {}))), k), b) }}\n"
    "}}\n";

TEST(Certified, AFloatAttributeIsAnyNumber) {
  const Rule rule = parsed(fmt::format(kNorm, "e"));
  const auto shown = checked(to_text(certificate_of(rule)), {.rules = {rule}, .only = true});
  ASSERT_TRUE(shown) << to_string(shown.error());
  EXPECT_THAT(shown->words(), ::testing::HasSubstr("{epsilon=$e}"));
}

TEST(Certified, ARuleForOneValueOfAFloatAttributeIsRefuted) {
  for (const char* value : {"1e-05", "mul(e, 2.0)", "mul(e, e)"}) {
    const RuleProof proof = prove_rule(parsed(fmt::format(kNorm, value)), Guards::Stated, {});
    EXPECT_TRUE(std::holds_alternative<prove::Refuted>(proof.verdict)) << value;
  }
}

TEST(Certified, ForgeriesAreRejected) {
  const std::string text = to_text(certificate_of(parsed(kScaledRelu)));
  ASSERT_TRUE(checked(text));
  for (const auto& [from, to] : std::initializer_list<Forgery>{
           {"max(x[i0, i1], 0.0)", "x[i0, i1]"},                  // relu is the identity
           {"x[i0, i1] - y[i0, i1]", "x[i0, i1] + y[i0, i1]"},    // a difference is a sum
           {"of \"sub ", "of \"add "},                            // another operator
           {"(f32[m, k], f32[m, k])", "(f32[k, m], f32[m, k])"},  // other operands
           {" 0 (x0, x1) define", " 0 (x1, x0) define"},          // inputs are exchanged
           {"input x0: f32[", "input x0: f64["},                  // another type
           {"input x0: f32[m, k]", "input x0: f32[m, 1]"},        // another size
           {"= 2.0 is", "= 3.0 is"},                              // another constant
           {"f32[] 2.0", "f32[] 3.0"},
           {"  where    m == n\n", ""},                     // no guard
           {"where    m == n", "where    m == n, k == 1"},  // a guard that adds something
           {"mul(relu(sub(x, y)), 2.0)", "mul(relu(sub(y, x)), 2.0)"},  // another rule
           {"numerics reals", "numerics exact"},
           {"assume \"rounding\" \"floating-point operations do not round\"\n", ""},
           {"assume \"rounding\"", "assume \"domain\""},
           {"witness k = 1", "witness k = 0"},
           {"witness k = 1\n", ""},
           {"pair ", "fact k <= 0\npair "},  // nothing satisfies it
           {"pair ", "fact k == 1\npair "},  // more than the guard says
           {"input x0", "named_reals\ninput x0"},
           {"certificate 2\n", "certificate 1\n"},
           {"  unfold 0 [0] 0 []", "  unfold 1 [0] 0 []"},
           {"=> \"1 * ", "=> \"2 * "},  // a sum that is not made
       })
    EXPECT_FALSE(checked(forged(text, from, to))) << from << " => " << to;
}

TEST(Certified, NothingIsLeftOut) {
  const std::string text = to_text(certificate_of(parsed(kScaledRelu)));
  const std::string body = text.substr(0, text.rfind("// seal "));
  const std::size_t first = body.find("pair "), second = body.find("pair ", first + 1);
  ASSERT_NE(second, std::string::npos);
  EXPECT_FALSE(checked(certify::sealed(body.substr(0, first)))) << "no pair";
  EXPECT_FALSE(checked(certify::sealed(body.substr(0, second)))) << "one output";
  EXPECT_FALSE(checked(certify::sealed("certificate 2\n"))) << "nothing at all";
  std::string loose = body;
  loose.erase(loose.find("rule "), loose.find("\n}\n") + 3 - loose.find("rule "));
  EXPECT_FALSE(checked(certify::sealed(loose))) << "no rule";
  // One step at a time.
  std::size_t steps = 0;
  for (std::size_t at = body.find("  unfold ", first); at != std::string::npos;
       at = body.find("  unfold ", at + 1), ++steps) {
    std::string shorter = body;
    shorter.erase(at, body.find('\n', at) + 1 - at);
    EXPECT_FALSE(checked(certify::sealed(shorter))) << shorter;
  }
  EXPECT_GE(steps, 4u);
}

TEST(Certified, ARuleThatIsKnownIsThatOne) {
  const Rule rule = parsed(kScaledRelu);
  const std::string text = to_text(certificate_of(rule));
  Rule other = rule;
  other.both_ways = true;
  EXPECT_FALSE(checked(text, {.rules = {other}}));
  other = rule;
  other.guard.clear();
  EXPECT_FALSE(checked(text, {.rules = {other}}));
  EXPECT_TRUE(checked(text, {.rules = {other}, .guards = Guards::Found}));
  other.name = "another";
  EXPECT_TRUE(checked(text, {.rules = {other}}));
  EXPECT_FALSE(checked(text, {.rules = {other}, .only = true}));
  EXPECT_FALSE(checked(forged(text, "rule scaled_relu", "rule another"), {.rules = {other}}));
}

TEST(Certified, AFalseRuleHasNoCertificate) {
  // The proof of one rule does not prove another that has the same shapes.
  const certify::Certificate good = certificate_of(parsed(kScaledRelu));
  std::string other = kScaledRelu;
  other.replace(other.find("2.0), add(y, x)"), 3, "3.0");
  certify::Certificate bad = good;
  bad.subject.rule = to_text(parsed(other));
  EXPECT_FALSE(check_certificate(bad, {}));
  const auto claims = claims_of(parsed(other));
  ASSERT_TRUE(claims);
  ASSERT_FALSE(claims->empty());
  bad.claim = claims->front().claim;
  EXPECT_FALSE(check_certificate(bad, {}));
}

}  // namespace
}  // namespace tessera::rules
