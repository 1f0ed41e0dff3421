#include "tessera/certify/witness.h"

#include "tessera/support/rng.h"

namespace tessera::certify {
namespace {

Diagnostic no_witness(std::string message) {
  return {.id = "certificate-wrong", .message = std::move(message)};
}

std::set<std::string> symbols_of(const Claim& claim) {
  std::set<std::string> symbols;
  for (const Input& input : claim.inputs)
    for (const Dim& size : input.type.shape) size.collect_symbols(symbols);
  for (const Condition& fact : claim.facts) {
    fact.left.collect_symbols(symbols);
    fact.right.collect_symbols(symbols);
  }
  return symbols;
}

/// The facts, and that no size of an input that is not a number is less than 1.
Guard conditions_of(const Claim& claim) {
  Guard conditions = claim.facts;
  for (const Input& input : claim.inputs)
    for (const Dim& size : input.type.shape)
      if (!size.constant()) conditions.push_back(at_most(1, size));
  return conditions;
}

}  // namespace

std::optional<SizeValues> witness_of(const Claim& claim) {
  constexpr int kPlain = 9, kTries = 20'000;
  const std::set<std::string> symbols = symbols_of(claim);
  const Guard conditions = conditions_of(claim);
  Rng rng(1);
  for (int attempt = 1; attempt <= kTries; ++attempt) {
    SizeValues sizes;
    for (const std::string& symbol : symbols)
      sizes[symbol] =
          attempt <= kPlain ? attempt : 1 + static_cast<std::int64_t>(rng.below(kPlain));
    if (const auto holds = tessera::holds(conditions, sizes); holds && *holds) return sizes;
    if (symbols.empty()) break;
  }
  return std::nullopt;
}

Expected<Done> check_witness(const Claim& claim, const SizeValues& sizes) {
  const std::set<std::string> symbols = symbols_of(claim);
  for (const auto& [name, value] : sizes) {
    if (!symbols.contains(name)) return no_witness(fmt::format("there is no size {}", name));
    if (value < 1) return no_witness(fmt::format("the size {} is less than 1", name));
  }
  if (sizes.size() != symbols.size()) return no_witness("the witness leaves out a size");
  TESSERA_TRY(const bool holds, tessera::holds(conditions_of(claim), sizes));
  if (!holds) return no_witness("the witness does not satisfy the facts: the claim may be empty");
  return Done{};
}

}  // namespace tessera::certify
