#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/as_rule.h"

namespace tessera::superopt {

/// What became of a candidate.
struct Decision {
  enum class Verdict : std::uint8_t { Proved, Refuted, Unknown, Trivial, Derivable };
  Verdict verdict = Verdict::Unknown;
  Form form = Form::General;       // in which it was proved
  Guard forth = {};                // from source to target
  std::optional<Guard> back = {};  // from target to source, where that can be used so

  bool operator==(const Decision&) const = default;
};

/// Proves a candidate in its most general form, or in one that says more of sizes.
Decision decide(const Terms& terms, const Candidate& candidate, const std::atomic<bool>* stop);

/// The rules that a candidate that is proved makes: one, or one for each way where their guards
/// differ. Sizes that the source makes equal have one name, and names are short.
std::vector<rules::Rule> rules_of(const Terms& terms, const Candidate& candidate,
                                  const Decision& decision);

}  // namespace tessera::superopt
