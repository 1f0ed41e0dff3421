#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "tessera/superopt/generate/candidates.h"
#include "tessera/superopt/generate/workspace_pool.h"

namespace tessera::superopt {

class OneStepRewriter;

/// Redundancy filter of rule generation: candidates that hold, and what follows from them by one
/// rewrite at the root of either side and by equations between smaller terms inside.
class Derivations {
 public:
  /// Terms reachable in one step from the sides of a candidate, as far as explored.
  struct ReachableTerms {
    std::map<std::uint64_t, std::size_t>
        nodes;  // with the number of operators of the smallest such term
    std::unordered_set<std::uint64_t> structures;
  };
  struct Attempt {
    ReachableTerms sides[2];
    std::size_t seen = 0;  // number of patterns that were tried
    std::size_t total = 0;
  };
  /// Rewrite pattern: one side of a candidate, with the other as the replacement.
  struct Pattern {
    NamedTerm from, to;
    std::size_t candidate = 0;
  };
  using ByRoot = std::map<std::uint32_t, std::vector<std::size_t>>;

  explicit Derivations(const Enumeration& made);
  ~Derivations();

  /// Whether a candidate follows; a failed attempt is continued where it ended. Thread-safe.
  bool derivable(const Candidate& candidate, Attempt& attempt);

  void add(const Candidate& candidate, std::size_t number);
  /// Removes a candidate; attempts that used it have to restart.
  void remove(std::size_t number);

 private:
  friend class OneStepRewriter;
  const Enumeration& made_;
  std::vector<Pattern> patterns_;
  ByRoot by_root_;
  std::unique_ptr<WorkspacePool<OneStepRewriter>> workspaces_;
};

}  // namespace tessera::superopt
