#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/egraph/saturate.h"
#include "tessera/rules/rule.h"

namespace tessera::superopt {

/// Limits of derivations.
struct TheoryOptions {
  egraph::Limits limits = {.nodes = 3'000, .iterations = 8, .matches = 2'000};
  int draws = 3;  // number of size assignments that a rule is tried on
  std::uint64_t seed = 1;
};

/// Set of rules, with a decision procedure (up to limits) for what follows from them.
///
/// A rule follows if its two sides become equal in an e-graph that is saturated with the rules in
/// both directions: for every rank that it applies to, on several draws of sizes that satisfy its
/// own guard and as little else as possible (prove/draw.h), so that it does not follow from a rule
/// with a stronger guard. A rule that is exact bit for bit has to follow from exact rules only.
class Theory {
 public:
  explicit Theory(const TheoryOptions& options) : options_(options) {}

  /// Adds a rule, which has to be true.
  Expected<Done> add(const rules::Rule& rule);

  /// Rules by which this one follows, in no particular order; nothing if it does not follow, or the
  /// limits were too small to tell.
  std::optional<std::vector<std::string>> derivation(const rules::Rule& rule);

 private:
  bool derive(const rules::Rule& instance, std::vector<std::string>& by);

  TheoryOptions options_;
  egraph::Rewrites rewrites_;
};

}  // namespace tessera::superopt
