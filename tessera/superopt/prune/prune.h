#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/superopt/prune/theory.h"

namespace tessera::superopt {

struct PruneOptions {
  TheoryOptions theory = {};  // its limits may hold a flag that stops the work
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// Rules that say what many say.
struct Basis {
  std::vector<rules::Rule> rules;  // small ones first
  std::size_t renamed = 0;         // dropped: another one with other names, or true by its form
  std::size_t common = 0;          // dropped: another one with the same around or inside both sides
  std::size_t derived = 0;         // dropped: follows from those that are kept
  std::size_t unusable = 0;        // dropped: neither side tells what the other needs
  bool stopped = false;            // what was not looked at is kept
};

/// Drops rules that others make superfluous. They have to be true; whether they are is for
/// rules/proof.h to say.
///
/// Rules are taken small ones first, so that what is kept is what a person would call the laws. A
/// rule is kept unless it follows from smaller ones wherever its own guard holds; one that
/// follows only where more does is kept.
Expected<Basis> prune(std::vector<rules::Rule> rules, const PruneOptions& options);

/// How a rule is covered by others.
struct Cover {
  enum class Kind { Direct, Derivable, Missing };
  std::string name;
  Kind kind = Kind::Missing;
  std::vector<std::string> by = {};  // names of the rules that it follows from
};
std::string_view to_string(Cover::Kind kind);

/// For each rule whether it is among those of the basis or follows from them.
Expected<std::vector<Cover>> covers(const std::vector<rules::Rule>& rules,
                                    const std::vector<rules::Rule>& basis,
                                    const PruneOptions& options);

}  // namespace tessera::superopt
