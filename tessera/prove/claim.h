#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tessera/certify/certificate.h"
#include "tessera/ir/graph.h"

namespace tessera::prove {

/// What operators mean where graphs call them, as text, by the call: an operator with all its
/// attributes and what is known of its operands.
struct CallMeanings {
  std::map<std::string, std::string> definitions = {};  // and `asks k == m` for equal sizes
  std::map<std::string, std::string> bodies = {};       // of composites, as graphs
  std::map<std::string, std::string> results = {};      // of what has neither: types

  void merge(const CallMeanings& other);
};

/// Adds the calls of a graph, and those inside of the bodies of its composites.
Expected<Done> add_calls(const Graph& graph, CallMeanings& meanings);

/// That two graphs with the same inputs compute the same outputs, in terms of definitions.
struct GraphClaim {
  certify::Claim claim;
  std::set<std::string> shared = {};             // values that both graphs compute in the same way
  std::map<std::string, Tensor> constants = {};  // inputs that are weights of the graphs
  CallMeanings meanings = {};                    // of bound claims
};

/// The name of an input of the graphs in a claim.
std::string input_name(std::size_t input);

/// Composites are expanded. What has no definition (opaque operators, control flow) is taken to be
/// given, and to be the same where the same operator is applied to the same operands.
Expected<GraphClaim> claim_of(const Graph& source, const Graph& target, const Guard& facts);

/// The same, with the operator that each definition is of, and the elements of constants: what
/// binds a claim to the catalog.
Expected<GraphClaim> bound_claim_of(const Graph& source, const Graph& target, const Guard& facts);

/// The claim with weights of few numbers as values that are computed from their positions; nothing
/// where there are none.
std::optional<GraphClaim> with_contents(const GraphClaim& claim);

}  // namespace tessera::prove
