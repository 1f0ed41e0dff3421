#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/egraph/saturate.h"
#include "tessera/rules/rule.h"

namespace tessera::superopt {

struct TheoryOptions {
  egraph::Limits limits = {.nodes = 3'000, .rounds = 8, .matches = 2'000};
  int draws = 3;  // of sizes that a rule is tried on
  std::uint64_t seed = 1;
};

/// Rules, and what follows from them.
///
/// A rule follows if its two sides meet in an e-graph that is saturated with the rules, used both
/// ways: for every rank that it is for, on several draws of sizes that satisfy its own guard and as
/// little else as possible (prove/draw.h). So a rule is not said to follow from one that needs more
/// than it. A rule that keeps results bit for bit has to follow from such rules alone.
class Theory {
 public:
  explicit Theory(const TheoryOptions& options) : options_(options) {}

  /// Adds a rule, which has to be true.
  Expected<Done> add(const rules::Rule& rule);

  /// The names of rules by which this one follows, in no particular order; nothing where it does
  /// not, or where the limits were too narrow to tell.
  std::optional<std::vector<std::string>> derivation(const rules::Rule& rule);

 private:
  bool derive(const rules::Rule& instance, std::vector<std::string>& by);

  TheoryOptions options_;
  egraph::Rewrites rewrites_;
};

}  // namespace tessera::superopt
