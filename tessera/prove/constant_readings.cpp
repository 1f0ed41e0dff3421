#include "tessera/prove/constant_readings.h"

#include <algorithm>

namespace tessera::prove {
namespace {

bool is_reading(const Assumption& assumption) {
  return assumption.kind == Assumption::Kind::Constant;
}

}  // namespace

void ConstantReadings::add(const Graph& source, const Graph& target, const Options& options,
                           const std::vector<Assumption>& assumptions) {
  if (std::ranges::none_of(assumptions, is_reading)) {
    exact_.push_back({source, target, options});
    return;
  }
  for (const Assumption& assumption : assumptions)
    if (is_reading(assumption)) named_.insert(assumption);
}

bool ConstantReadings::agree(const Prover& prover, std::set<Assumption>& assumptions) {
  for (std::size_t i = 0; i < exact_.size() && !named_.empty();) {
    Shown& shown = exact_[i];
    const std::vector<Assumption> nameable = nameable_constants(shown.source, shown.target);
    if (std::ranges::none_of(nameable, [&](const Assumption& a) { return named_.contains(a); })) {
      ++i;
      continue;
    }
    shown.options.names_constants = true;
    const Verdict verdict = prover(shown.source, shown.target, shown.options);
    const auto* proved = std::get_if<Proved>(&verdict);
    if (proved == nullptr || !proved->guard.empty() ||
        std::ranges::none_of(proved->assumptions, is_reading))
      return false;
    assumptions.insert(proved->assumptions.begin(), proved->assumptions.end());
    named_.insert(nameable.begin(), nameable.end());
    exact_.erase(exact_.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;  // further constants are named now
  }
  return true;
}

}  // namespace tessera::prove
