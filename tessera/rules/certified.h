#pragma once

#include "tessera/rules/proof.h"

namespace tessera::rules {

/// The certificate of a rule without `*s`: it names the rule, the operators that the definitions are
/// of, what is assumed, and sizes for which it says something.
Expected<certify::Certificate> certified(const Rule& instance, const prove::Proved& proved);

/// What a certificate shows.
struct CertifiedRule {
  Rule rule;  // one instance
  std::vector<prove::Assumption> assumptions;
  std::vector<std::string> conditions;  // the facts in terms of which it was proved

  /// The claim in words.
  std::string words() const;
};

/// Replays a certificate. Nothing in it is believed: the claim has to be that of its rule by the
/// catalog, the assumptions those that it needs, and the witness one. A rule that has the name of
/// one of the `book` has to be that one.
Expected<CertifiedRule> check_certificate(const certify::Certificate& certificate,
                                          const std::vector<Rule>& book);

}  // namespace tessera::rules
