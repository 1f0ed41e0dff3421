#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/adversary/corpus.h"

namespace tessera::testing {

/// What the prover says of an entry that is looked at in one way.
struct View {
  std::string way;                         // "rule", "models", "models reversed"
  std::string verdict;                     // "proved", "refuted", "unknown"
  std::set<std::string> assumptions = {};  // kinds, of what is proved
  std::string why = {};                    // in words
  bool replayed = false;                   // the interpreter shows the difference again
  double seconds = 0;                      // of CPU time
};

/// A rule is looked at as a rule, and as two models in both orders if it has neither a guard, nor
/// symbolic attributes, nor any number of axes; models in both orders.
std::vector<View> views_of(const Entry& entry);

struct Judgement {
  std::vector<View> views = {};
  /// Where the interpreter computes different outputs, in words: on the entry's witness, else on
  /// random inputs. Not looked for where a view has a counterexample of a false entry.
  std::optional<std::string> difference = {};
};
Judgement judged(const Entry& entry);

inline constexpr double kMostSeconds = 30;

/// What is wrong: proved though false, refuted though true, a verdict that depends on the order of
/// the arguments, a counterexample that shows nothing, too much time; or the entry itself, where
/// evaluation contradicts its truth or nothing shows that it is false. Empty if nothing is.
std::vector<std::string> faults(const Entry& entry, const Judgement& judgement);

/// Whether a true entry is proved, and one that is false over the reals refuted, in every view;
/// of others, whether there are no faults.
bool is_decided(const Entry& entry, const Judgement& judgement);

}  // namespace tessera::testing
