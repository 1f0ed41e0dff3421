#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/ir/graph.h"
#include "tessera/prove/claim.h"
#include "tessera/prove/reasons.h"
#include "tessera/prove/sizes.h"
#include "tessera/prove/verdict.h"

namespace tessera::prove {

struct Options {
  std::uint64_t seed = 1;
  int tries = 60;                           // random shapes on which a refutation is looked for
  std::int64_t most_terms = 2'000;          // of a normal form
  std::int64_t most_steps = 2'000;          // of the proof of one output
  bool splits = true;                       // terms by cases, where nothing else proves it
  bool cases = true;                        // also of maxima and of signs
  bool named_reals = true;                  // a constant within 2 ulp of 1/sqrt(2) may stand for it
  bool names_constants = false;             // it does, wherever there is one
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: give up soon
  std::map<std::size_t, Tensor> contents = {};  // of inputs, where known: for assumptions alone
  Arithmetic* arithmetic = nullptr;             // shared by the proofs of one thread
};

/// Whether two graphs with the same inputs (by position; types may hold symbolic sizes and
/// operators symbolic attributes) compute the same outputs (by position). Sizes that only the
/// source relates are solved for; what the target needs beyond that is the guard.
Verdict prove(const Graph& source, const Graph& target, const Options& options);

/// Size relations of a source graph: `given` always hold, `own` also equate sizes that broadcast
/// with each other.
struct SourceRelations {
  SizeRelations given, own;
};
Expected<SourceRelations> source_relations(const Graph& source);
/// prove() with the relations of the source computed before.
Verdict prove_related(const Graph& source, const Graph& target, const SourceRelations& relations,
                      const Options& options);

/// Both graphs with the sizes that make them fit together, and what that asks for.
struct Setting {
  Graph source, target;
  Guard guard;  // beyond what the source says
  Guard facts;
};
/// Those in which `prove` looks for a proof. No proof is tried.
Expected<std::vector<Setting>> settings_of(const Graph& source, const Graph& target);

/// What a proof says of the constants that stand for named reals, if it reads them so.
std::vector<Assumption> nameable_constants(const Graph& source, const Graph& target);

/// What a proof of a claim takes for granted.
std::vector<Assumption> assumptions_of(const GraphClaim& claim);

/// The same for a claim in terms of definitions; nothing but a reason `why` where there is no
/// proof.
std::optional<certify::Certificate> prove_claim(const certify::Claim& claim, const Options& options,
                                                std::string& why);

/// Only looks for an input that shows a difference, on sizes that satisfy the guard.
Verdict refute(const Graph& source, const Graph& target, const Guard& guard,
               const Options& options);

}  // namespace tessera::prove
