#pragma once

#include <optional>

#include "tessera/prove/verdict.h"
#include "tessera/rules/rule.h"
#include "tessera/support/rng.h"

namespace tessera::testing {

/// A rule whose target was damaged by one random edit (`graph_edit.h`).
struct BrokenRule {
  rules::Rule rule;
  std::string edit;        // in words
  prove::Refuted refuted;  // shows it, on sizes that source and target take
};

/// Nothing where no edit was found whose effect the interpreter shows, also without groups.
std::optional<BrokenRule> broken(const rules::Rule& rule, Rng& rng);

}  // namespace tessera::testing
