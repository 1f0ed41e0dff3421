#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "tessera/superopt/generate/candidates.h"
#include "tessera/superopt/generate/pool.h"

namespace tessera::superopt {

class Steps;

/// Candidates that are known to hold, and what follows from them: by a step at the root of either
/// side, and from equations between smaller terms inside.
class Derivations {
 public:
  /// What one step makes of the sides of a candidate, as far as it has been looked at.
  struct Reached {
    std::map<std::uint64_t, std::size_t> nodes;  // with the operators of the smallest that has it
    std::unordered_set<std::uint64_t> structures;
  };
  struct Attempt {
    Reached sides[2];
    std::size_t seen = 0;  // patterns
    std::size_t total = 0;
  };
  /// One side of a candidate, as a pattern for the other.
  struct Pattern {
    Named from, to;
    std::size_t candidate = 0;
  };
  using ByRoot = std::map<std::uint32_t, std::vector<std::size_t>>;

  explicit Derivations(const Enumeration& made);
  ~Derivations();

  /// Whether a candidate follows; an attempt that failed is taken up where it ended. May be called
  /// by several threads.
  bool derivable(const Candidate& candidate, Attempt& attempt);

  void add(const Candidate& candidate, std::size_t number);
  /// Takes back what was added; attempts that were made with it have to begin anew.
  void remove(std::size_t number);

 private:
  friend class Steps;
  const Enumeration& made_;
  std::vector<Pattern> patterns_;
  ByRoot by_root_;
  std::unique_ptr<Pool<Steps>> places_;
};

}  // namespace tessera::superopt
