#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tessera/certify/check.h"
#include "tessera/ir/text.h"
#include "tessera/prove/claim.h"
#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"
#include "tests/rules/rule_check.h"
#include "tests/support/broken_rules.h"

namespace tessera {
namespace {

using certify::Certificate;
using rules::Rule;

/// A rule at one rank, and the certificate of it.
struct Shipped {
  Rule rule;
  prove::Proved proved;
};

std::vector<Rule> shipped_rules() {
  auto rules = rules::load_rules(std::filesystem::path(TESSERA_SOURCE_DIR) / "rules");
  EXPECT_TRUE(rules) << to_string(rules.error());
  return rules ? *std::move(rules) : std::vector<Rule>{};
}

/// All that are proved, or so many of them.
std::vector<Shipped> certificates(std::size_t most) {
  std::vector<Shipped> result;
  for (const Rule& rule : shipped_rules()) {
    for (const Rule& instance : rules::instances(rule)) {
      if (result.size() == most) return result;
      const auto verdict = prove::prove(instance.source, instance.target, {});
      const auto* proved = std::get_if<prove::Proved>(&verdict);
      EXPECT_NE(proved, nullptr) << to_text(rule);
      if (proved != nullptr) result.push_back({instance, *proved});
    }
  }
  return result;
}

bool is_accepted(const std::string& text) {
  const auto certificate = certify::parse_certificate(text);
  return certificate && certify::check(*certificate);
}

TEST(SlowCertificates, ThoseOfAllShippedRulesAreAccepted) {
  const std::vector<Shipped> all = certificates(1'000'000);
  EXPECT_GE(all.size(), 100u);
  for (const auto& [rule, proved] : all)
    EXPECT_TRUE(is_accepted(to_text(proved.certificate))) << to_text(rule);
}

/// Another text: a byte, a line or a number changed.
std::string damaged(std::string text, Rng& rng) {
  const auto line_at = [&](std::size_t at) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return std::pair(begin, text.find('\n', at) + 1 - begin);
  };
  const std::size_t at = rng.below(text.size() - 1);
  switch (rng.below(4)) {
    case 0: text[at] = static_cast<char>(text[at] ^ static_cast<char>(1 + rng.below(127))); break;
    case 1: {
      const auto [begin, size] = line_at(at);
      text.erase(begin, size);
      break;
    }
    case 2: {
      const auto [begin, size] = line_at(at);
      const std::string line = text.substr(begin, size);
      text.erase(begin, size);
      text.insert(line_at(rng.below(text.size() - 1)).first, line);
      break;
    }
    default: {
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos)
        text[digit] =
            static_cast<char>('0' + (text[digit] - '0' + 1 + static_cast<char>(rng.below(9))) % 10);
      break;
    }
  }
  return text;
}

TEST(Certificates, EditsWithoutANewSealAreRejected) {
  const std::vector<Shipped> some = certificates(20);
  Rng rng(1);
  int tried = 0;
  while (tried < 1000) {
    const std::string text = to_text(some[rng.below(some.size())].proved.certificate);
    const std::string other = damaged(text, rng);
    if (other == text) continue;
    ++tried;
    EXPECT_FALSE(certify::parse_certificate(other)) << other;
  }
}

/// A step changed in some way, or left out, or twice.
void disturb(certify::Proof& proof, Rng& rng) {
  if (proof.empty()) return;
  const std::size_t at = rng.below(proof.size());
  certify::Step& step = proof[at];
  switch (rng.below(8)) {
    case 0: proof.erase(proof.begin() + static_cast<std::ptrdiff_t>(at)); return;
    case 1:
      proof.insert(proof.begin() + static_cast<std::ptrdiff_t>(at), certify::Step(step));
      return;
    case 2: step.kind = static_cast<certify::Kind>(rng.below(certify::kKinds)); return;
    case 3: step.side = 1 - step.side; return;
    case 4: step.item = rng.below(4); return;
    case 5:
      if (!step.place.empty()) step.place[rng.below(step.place.size())] = rng.below(3);
      return;
    case 6:
      if (!step.dims.empty())
        step.dims[rng.below(step.dims.size())] = static_cast<std::int64_t>(rng.below(3));
      return;
    default:
      for (certify::Reason& reason : step.reasons)
        for (auto& [premise, often] : reason.multiples) premise = rng.below(6);
      return;
  }
}

/// The claim of a damaged rule, under what makes both sides fit.
std::optional<certify::Claim> claim_of(const Rule& rule) {
  const auto given = prove::relate_sizes(rule.source);
  if (!given) return std::nullopt;
  const auto all = prove::relate_sizes(rule.target, *given);
  if (!all) return std::nullopt;
  const auto source = prove::with_sizes(rule.source, all->solved);
  const auto target = prove::with_sizes(rule.target, all->solved);
  if (!source || !target) return std::nullopt;
  auto claim = prove::claim_of(*source, *target, all->open);
  if (!claim) return std::nullopt;
  return std::move(claim->claim);
}

TEST(SlowCertificates, ProofsOfFalseClaimsAreRejected) {
  const std::vector<Shipped> all = certificates(1'000'000);
  Rng rng(2);
  int tried = 0, accepted = 0;
  for (int round = 0; tried < 1000 && round < 4000; ++round) {
    const auto& [rule, proved] = all[rng.below(all.size())];
    Certificate other = proved.certificate;
    if (rng.below(2) == 0) {
      // The claim of a rule that the interpreter refutes.
      const auto broken = testing::broken(rule, rng);
      if (!broken) continue;
      auto claim = claim_of(broken->rule);
      if (!claim) continue;
      other.claim = *std::move(claim);
      // Values are numbered in the order of both graphs: those that are the same keep their names.
      other.proofs.resize(other.claim.pairs.size());
    } else {
      // A target that is one more; nothing else is computed from it.
      const std::size_t pair = rng.below(other.claim.pairs.size());
      const std::string& name = other.claim.pairs[pair].second;
      const auto value = std::ranges::find(other.claim.values, name, &certify::Value::name);
      const bool used = std::ranges::any_of(other.claim.values, [&](const certify::Value& user) {
        return std::ranges::find(user.operands, name) != user.operands.end();
      });
      if (value == other.claim.values.end() || used || name == other.claim.pairs[pair].first)
        continue;
      Definition definition = *value->definition;
      Output& output = definition.outputs[value->output];
      if (output.value.sort() != Sort::Value) continue;
      output.value = output.value + like(output.value, 1);
      value->definition = std::make_shared<const Definition>(std::move(definition));
    }
    for (std::uint64_t edits = rng.below(4); edits > 0; --edits)
      for (certify::Proof& proof : other.proofs) disturb(proof, rng);
    ++tried;
    if (!is_accepted(to_text(other))) continue;
    ++accepted;
    ADD_FAILURE() << to_text(rule) << to_text(other);
    if (accepted == 3) return;
  }
  EXPECT_EQ(tried, 1000);
}

}  // namespace
}  // namespace tessera
