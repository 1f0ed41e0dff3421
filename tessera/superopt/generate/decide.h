#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/as_rule.h"

namespace tessera::superopt {

/// Decision about a candidate.
struct Decision {
  enum class Verdict : std::uint8_t { Proved, Refuted, Unknown, Trivial, Derivable };
  Verdict verdict = Verdict::Unknown;
  Form form = Form::General;       // generality in which it was proved
  Guard forth = {};                // guard from source to target
  std::optional<Guard> back = {};  // guard from target to source, if that direction is usable

  bool operator==(const Decision&) const = default;
};

/// Proves a candidate in its most general form, or else in one with more specific sizes.
Decision decide(const Terms& terms, const Candidate& candidate, const std::atomic<bool>* stop);

/// Rule with one short symbol for the sizes that its source equates.
rules::Rule renamed(const rules::Rule& rule);

/// Rules of a proved candidate: one, or one per direction if their guards differ. Sizes that the
/// source equates share one symbol, and names are short.
std::vector<rules::Rule> rules_of(const Terms& terms, const Candidate& candidate,
                                  const Decision& decision);

}  // namespace tessera::superopt
