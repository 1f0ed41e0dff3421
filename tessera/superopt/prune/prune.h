#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/superopt/prune/theory.h"

namespace tessera::superopt {

/// Options of prune() and covers().
struct PruneOptions {
  TheoryOptions theory = {};  // its limits may hold a cancellation flag
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// Basis of a set of rules, with counts of what was dropped.
struct Basis {
  std::vector<rules::Rule> rules;  // small ones first
  std::size_t renamed = 0;         // dropped: duplicates up to renaming, and trivial rules
  std::size_t common = 0;          // dropped: another rule in a common context
  std::size_t derived = 0;         // dropped: follows from rules that are kept
  std::size_t unusable = 0;        // dropped: neither side determines the other's variables
  bool stopped = false;            // cancelled; rules that were not examined are kept
};

/// Removes redundant rules. The rules have to be true; rules/proof.h decides whether they are.
///
/// Rules are processed in order of size, so that the basis consists of the elementary laws. A rule
/// is dropped if it follows from smaller ones wherever its own guard holds; one that follows only
/// under a stronger guard is kept.
Expected<Basis> prune(std::vector<rules::Rule> rules, const PruneOptions& options);

/// Coverage of a rule by a basis.
struct Coverage {
  enum class Kind { Direct, Derivable, Missing };
  std::string name;
  Kind kind = Kind::Missing;
  std::vector<std::string> by = {};  // rules that it follows from
};
std::string_view to_string(Coverage::Kind kind);

/// For each rule, whether it is in the basis or follows from it.
Expected<std::vector<Coverage>> covers(const std::vector<rules::Rule>& rules,
                                       const std::vector<rules::Rule>& basis,
                                       const PruneOptions& options);

}  // namespace tessera::superopt
